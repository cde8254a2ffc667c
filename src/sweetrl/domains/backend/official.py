"""The rules of the paper's own scorer, for comparing results with published ones.

It looks for words in the answer and gives nothing if it finds one, takes the code between fences by its own
rule, and runs it inside a function, where helpers do not see each other. The sandbox around it is ours.
"""

FORBIDDEN = (
    *("import os", "from os", "import sys", "from sys"),
    *("sudo", "transformers", "exit(", "quit(", "argparse"),
)


def forbidden_word(answer: str) -> str | None:
    """The first forbidden word, anywhere in the answer; such answers get nothing."""
    return next((word for word in FORBIDDEN if word in answer), None)


def reading(answer: str) -> str:
    """The code between the first fences: first those marked `python` in lower case, then any."""
    for fence in ("```python", "```"):
        if fence in answer:
            answer = answer.split(fence)[1].split("```")[0]
    return answer
