"""Judging outcomes: task and episode in, verdict out."""
