"""A language model as a critic: it is shown the reference and asked which of two turns is better.

Every comparison is made twice with the turns in swapped places, so that a position bias cancels out. A
reply that cannot be read is an abstention, not a tie. A turn that is alone, as when stored dialogues get
credit, is graded instead of compared.
"""

import re
from collections.abc import Iterator, Sequence
from statistics import fmean

from sweetrl import prompts
from sweetrl.critics.critic_type import CriticTools, CriticType
from sweetrl.domains.registry import reference_text
from sweetrl.errors import ModelError
from sweetrl.models.concurrency import all_of
from sweetrl.prompts import Prompt
from sweetrl.protocols import ChatModel
from sweetrl.seeds import derive_seed
from sweetrl.types import Message, Role, Sampling, Task, digest

ROUNDS = 2
"""Each candidate meets twice as many others: 16 candidates take 64 requests, all against all would take 240."""

NOT_WRITTEN_DOWN = "(Nobody wrote it down: judge by the request and the conversation.)"
"""In place of a reference that there is not."""

_COMPARED, _GRADED = ("first", "second"), ("output",)
"""Fields that a prompt must have."""
_CONTEXT = ("problem_description", "hidden_information", "dialogue_history")
"""Fields that it may have."""

_SAMPLING = Sampling(temperature=0.0, max_tokens=512)
_CHOICE = r"(FIRST|SECOND|SAME|TIE|EQUAL|NEITHER|BOTH)"
_BETTER = re.compile(rf"\bBETTER\W+(?:is\s+)?(?:the\s+)?(?:message\s+)?\W*{_CHOICE}\b", re.IGNORECASE)
_BARE_CHOICE = re.compile(rf"\W*{_CHOICE}\W*", re.IGNORECASE)
_GRADE = re.compile(r"\bGRADE\W*?([+\-\u2212]?\s?\d+)(?!\.?\d)", re.IGNORECASE)
_BARE_GRADE = re.compile(r"\s*([+\-\u2212]?\d+)\W*")
_PREFERENCE = {"first": 1.0, "second": -1.0}


class JudgeCritic:
    """A `TurnCritic` over any chat model.

    Of several outputs, the advantage is the mean result of an output's comparisons: from -1, always worse,
    to 1, always better. Of a single one it is a grade: from -1, harmful, to 1, decisive.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        rounds: int = ROUNDS,
        comparing: Prompt | None = None,
        grading: Prompt | None = None,
    ) -> None:
        """Custom prompts: `comparing` has the fields {first} and {second}, `grading` has {output}."""
        self._model = model
        self._rounds = rounds
        self._comparing = comparing or prompts.load("judge-pair")
        self._comparing.check(needed=_COMPARED, offered=[*_COMPARED, *_CONTEXT])
        self._grading = grading or prompts.load("judge-grade")
        self._grading.check(needed=_GRADED, offered=[*_GRADED, *_CONTEXT])
        self._grading_open = grading or prompts.load("judge-grade-open")
        """For tasks without a reference."""
        own = [
            f" by {each.source} {digest(each.text)[:8]}" for each in (comparing, grading) if each is not None
        ]
        rounds_named = "" if rounds == ROUNDS else f" in {rounds} rounds"
        self.name = f"judge:{model.name}{rounds_named}{''.join(own)}"
        """The model's specification, and what of it is not as usual."""

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        """One advantage per output; equal outputs get equal advantages."""
        distinct = list(dict.fromkeys(outputs))
        if len(distinct) == 1:
            graded = 0.0 if len(outputs) > 1 else await self._grade(task, history, distinct[0])
            return [graded] * len(outputs)
        results = await self._tournament(task, history, distinct)
        if not all(results.values()):
            raise ModelError(f"{self.name}: none of its replies on a turn could be read", kind="unreadable")
        return [fmean(results[output]) for output in outputs]

    async def _tournament(
        self, task: Task, history: Sequence[Message], outputs: Sequence[str]
    ) -> dict[str, list[float]]:
        """The results of each output: 1 for a comparison won, -1 for one lost, 0 for a tie."""
        games = [game for pair in meetings(len(outputs), self._rounds) for game in (pair, pair[::-1])]
        asked = [self._compare(task, history, outputs[one], outputs[other]) for one, other in games]
        results: dict[str, list[float]] = {output: [] for output in outputs}
        for (one, other), preference in zip(games, await all_of(asked), strict=True):
            if preference is not None:
                results[outputs[one]].append(preference)
                results[outputs[other]].append(-preference)
        return results

    async def _compare(self, task: Task, history: Sequence[Message], first: str, second: str) -> float | None:
        return parse_preference(await self._ask(self._comparing, task, history, first=first, second=second))

    async def _grade(self, task: Task, history: Sequence[Message], output: str) -> float:
        prompt = self._grading if reference_text(task) else self._grading_open
        grade = parse_grade(await self._ask(prompt, task, history, output=output))
        if grade is None:
            raise ModelError(f"{self.name}: its grade of a turn could not be read", kind="unreadable")
        return grade

    async def _ask(self, prompt: Prompt, task: Task, history: Sequence[Message], **material: str) -> str:
        fields = {
            "problem_description": task.request,
            "hidden_information": reference_text(task) or NOT_WRITTEN_DOWN,
            "dialogue_history": _transcript(history),
            **material,
        }
        text = prompt.render(**{name: fields[name] for name in prompt.fields})
        messages = [Message(Role.USER, text)]
        seed = derive_seed("judge", text)
        [completion] = await self._model.complete(messages, n=1, sampling=_SAMPLING, seed=seed)
        return completion.text


def meetings(count: int, rounds: int) -> list[tuple[int, int]]:
    """The pairs to compare: each candidate with the next `rounds` in a circle; all with all if that is no more."""
    pairs = {
        (min(one, other), max(one, other))
        for one in range(count)
        for step in range(1, rounds + 1)
        if (other := (one + step) % count) != one
    }
    return sorted(pairs)


def parse_preference(reply: str) -> float | None:
    """1 if the first message is said to be better, -1 if the second, 0 for a tie; None if nothing is said.

    The last statement counts: models change their minds while they reason.
    """
    stated = _BETTER.findall(reply) or [match[1] for match in _last_line(_BARE_CHOICE, reply)]
    return _PREFERENCE.get(stated[-1].lower(), 0.0) if stated else None


def parse_grade(reply: str) -> float | None:
    """The last grade from -2 to 2 in the reply, halved; None if there is none or it is out of range."""
    stated = _GRADE.findall(reply) or [match[1] for match in _last_line(_BARE_GRADE, reply)]
    if not stated:
        return None
    grade = int(stated[-1].replace("\u2212", "-").replace(" ", ""))
    return grade / 2 if -2 <= grade <= 2 else None


def _last_line(pattern: re.Pattern[str], reply: str) -> Iterator[re.Match[str]]:
    """A match of the whole last line, for models that leave out the word before the choice."""
    lines = reply.strip().splitlines()
    if lines and (match := pattern.fullmatch(lines[-1])):
        yield match


def _transcript(history: Sequence[Message]) -> str:
    names = {Role.USER: "Person", Role.ASSISTANT: "Agent"}
    return "\n\n".join(f"{names.get(message.role, 'Note')}: {message.text}" for message in history)


def open_judge(spec: str, tools: CriticTools) -> JudgeCritic:
    """A judge over the chat model of that name."""
    comparing, grading = tools.judge_prompts
    rounds = tools.judge_rounds or ROUNDS
    return JudgeCritic(tools.chat_model(spec), rounds=rounds, comparing=comparing, grading=grading)


CRITIC = CriticType(
    name="judge",
    usage="judge:MODEL, a language model that is asked",
    open=open_judge,
    takes=("judge",),
    argument="model",
    needs_reference=False,
)
