"""A chat model without a language model: the fake for tests, examples and measurements.

Its replies depend on the chat and the seed alone, never on the order in which it is asked.
"""

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from typing import Literal

from sweetrl.errors import ModelError, UsageError, suggestion
from sweetrl.seeds import derive_seed
from sweetrl.types import Completion, Message, Role, Sampling, Usage

Script = Callable[[Sequence[Message], int], str]
"""(chat, seed) -> the model's next message."""

_WORD = re.compile(r"\s*\S+")
_WORDS = (
    "the list number should be sorted first and then returned as one string unless empty which means zero "
    "every key with its value counts only once before after between when none given default keep order"
)


class ScriptedModel:
    """A `ChatModel` with fixed lines, one for each of its turns, or with a function that makes them up."""

    def __init__(
        self,
        script: Sequence[str] | Script,
        *,
        name: str = "scripted",
        latency: float | Callable[[int], float] = 0.0,
    ) -> None:
        """`latency`: seconds that a reply takes, or a function from the seed to them."""
        if isinstance(script, str):
            raise TypeError("a script is a list of lines or a function, not one text")
        self._script = script
        self.name = name
        self._latency = latency

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        """The line for this turn, `n` times; a function is called with `n` different seeds."""
        latency = self._latency(seed) if callable(self._latency) else self._latency
        if latency > 0:
            await asyncio.sleep(latency)
        prompt_tokens = sum(_count(message.text) for message in messages)
        return [
            _completion(
                self._line(messages, seed if index == 0 else derive_seed(seed, index)), sampling, prompt
            )
            for index, prompt in enumerate([prompt_tokens] + [0] * (n - 1))
        ]

    async def close(self) -> None:
        """Nothing to release."""

    def _line(self, messages: Sequence[Message], seed: int) -> str:
        if callable(self._script):
            return self._script(messages, seed)
        turn = _turns(messages)
        if turn >= len(self._script):
            raise ModelError(
                f"script_over: the script has {len(self._script)} lines, turn {turn + 1} needs one more",
                kind="script_over",
            )
        return self._script[turn]


def _turns(messages: Sequence[Message]) -> int:
    return sum(message.role is Role.ASSISTANT for message in messages)


def _count(text: str) -> int:
    """Its tokens are words."""
    return len(text.split())


def _completion(line: str, sampling: Sampling, prompt_tokens: int) -> Completion:
    finish: Literal["stop", "length"] = "stop"
    words = _WORD.findall(line)
    if len(words) > sampling.max_tokens:
        line, finish = "".join(words[: sampling.max_tokens]), "length"
    ends = [line.find(stop) for stop in sampling.stop if stop in line]
    if ends:
        line, finish = line[: min(ends)], "stop"
    return Completion(text=line, finish=finish, usage=Usage(prompt_tokens, _count(line)))


# ---------------------------------------------------------------- scripts with a name


def _echo(messages: Sequence[Message], _seed: int) -> str:
    return messages[-1].text


def _unsure(_messages: Sequence[Message], _seed: int) -> str:
    return "I don't know."


def _babble(messages: Sequence[Message], seed: int) -> str:
    draw = random.Random(derive_seed(seed, messages[-1].text))  # noqa: S311  not a secret
    words = _WORDS.split()
    return " ".join(draw.choice(words) for _ in range(draw.randint(5, 30)))


def _curious(messages: Sequence[Message], seed: int) -> str:
    if _turns(messages) < 2:
        return f"What should happen to {_babble(messages, seed)}?"
    return "I WANT TO ANSWER:\ndef answer(*args, **kwargs):\n    return None\n"


SCRIPTS: dict[str, Script] = {
    "babble": _babble,  # words drawn by the seed
    "curious": _curious,  # an agent: two questions, then a function that does nothing
    "echo": _echo,  # the last message again
    "unsure": _unsure,  # a collaborator who never knows
}


def script_named(name: str) -> Script:
    """The script that ships under `name`."""
    if name in SCRIPTS:
        return SCRIPTS[name]
    raise UsageError(f"there is no script '{name}'; {suggestion(name, sorted(SCRIPTS))}")
