"""What a set of verdicts says, and how sure one can be of it."""
