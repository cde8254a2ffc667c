"""Leaks: code of a reference in a collaborator's replies."""
