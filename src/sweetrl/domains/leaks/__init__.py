"""Leaks: code of a reference in what a collaborator says."""
