"""Experiments: a recipe or a study becomes a plan of stages, which is scheduled, run, journalled and read back."""
