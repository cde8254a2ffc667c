"""A critic that prefers short turns: a baseline that shows how much of a result is brevity alone."""

from sweetrl.critics.critic_type import CriticType
from sweetrl.critics.scripted import ScriptedCritic

CHARACTERS = 1000
"""A turn of this length scores -1."""

CRITIC = CriticType(
    name="length",
    usage="length, which prefers short turns",
    open=lambda _rest, _tools: ScriptedCritic(
        lambda _task, _history, output: -len(output) / CHARACTERS, name="length"
    ),
    needs_reference=False,
)
