"""Candidates: alternative messages of the agent at a turn, and the critic's rating of them."""
