"""Backend tasks: a Python function, specified by a person who knows the reference and scored by hidden tests."""
