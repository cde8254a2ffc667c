"""Preferences: which of two dialogues, or of two turns, is the better one. Pure functions of records."""
