"""Candidates: what else the agent might have said at a turn, and what a critic thinks of it."""
