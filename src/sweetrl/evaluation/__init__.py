"""Metrics of verdicts and episodes, with intervals."""
