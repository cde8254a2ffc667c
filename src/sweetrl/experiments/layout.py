"""Names of the files in the folder of a run."""

EPISODES, VERDICTS, CREDIT = "episodes.jsonl", "verdicts.jsonl", "credit.jsonl"
METRICS = "metrics.json"
"""The metrics of an evaluation."""
SCREENSHOTS = "screenshots"
"""The folder of the rendered pages, each named by the hash of its content."""
