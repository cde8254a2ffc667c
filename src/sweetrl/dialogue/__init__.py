"""Dialogues: an agent and a collaborator work on a task, turn by turn, until there is an answer."""
