"""Who is to blame when a side of a dialogue fails: the agent's words, or something of ours.

An agent must gain nothing by breaking its collaborator. So a failure that its words cause is the agent's: a fixed
sentence takes the place of the reply, the dialogue goes on, and it is scored. To find out, the side that failed is
asked again without the agent's words. If that works and the words fail again, the words are to blame. If it fails
too, something of ours is broken, and so is the dialogue. Where an endpoint itself objects to the words
(`NoReplyError`), they are not tried a second time.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sweetrl.errors import EndpointDown, ModelError, NoReplyError, StageError, UsageError, WordsError
from sweetrl.outputs import last_page
from sweetrl.protocols import Agent, Collaborator
from sweetrl.types import Message, Reply, Role, Task

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

NEUTRAL = "Could you tell me more about what you need?"
"""Stands in for the agent's words when a side is asked without them."""
UNREADABLE = "I could not read that; please say it in other words."
EXCUSES = {
    "context_length": "I could not read that; please write a shorter message.",
    "no_content": "I have no answer to that; please ask in other words.",
}
"""The fixed sentence in place of a reply, by cause; `UNREADABLE` for any other cause."""
PLACEHOLDER = "(a message that could not be read)"

_SENTENCES = {UNREADABLE, *EXCUSES.values()}
_ROUNDS = 2
"""How often the words must fail while everything else works."""
_OWN_OUTPUT = ("no_content", "reply_filtered", "reply_too_large")
"""Failures caused by a model's own output, whatever it was asked."""


def cause(error: BaseException) -> str:
    """One word for why something failed."""
    return error.kind if isinstance(error, EndpointDown | ModelError | WordsError) else type(error).__name__


async def reply_or_excuse(
    collaborator: Collaborator, task: Task, history: Sequence[Message], *, seed: int
) -> Reply:
    """The collaborator's reply, or a fixed sentence if the agent's words are the reason that there is none."""
    known = readable(history)
    neutral = [known[0], Message(Role.ASSISTANT, _neutral(known[1:], seed))]
    try:
        reply = await ask_fairly(
            lambda: collaborator.reply(task, known, seed=seed),
            lambda: collaborator.reply(task, neutral, seed=seed),
        )
    except WordsError as error:
        return Reply(EXCUSES.get(error.kind, UNREADABLE), excuse=error.kind)
    if not isinstance(reply, Reply):  # a collaborator may be anybody's code
        given = type(reply).__name__
        raise TypeError(f"the collaborator {collaborator.name} returned a {given} instead of a sweetrl.Reply")
    return reply


def _neutral(said: Sequence[Message], seed: int) -> str:
    """Words in the place of those that were said; a plain page in the place of a page.

    It differs for each seed: renderings of earlier pages are cached, so a browser that has broken down meanwhile
    would go unnoticed.
    """
    shown = last_page([message.text for message in said if message.role is Role.ASSISTANT])
    return NEUTRAL if shown is None else f"{NEUTRAL}\n<html><body><p>Draft {seed}</p></body></html>"


def readable(history: Sequence[Message]) -> list[Message]:
    """The dialogue as the collaborator knows it: without the messages that it could not read.

    Otherwise one such message would leave it speechless for the rest of the dialogue.
    """
    excused = [message.role is Role.USER and message.text in _SENTENCES for message in history[1:]]
    return [
        Message(message.role, PLACEHOLDER) if unread else message
        for message, unread in zip(history, [*excused, False], strict=True)
    ]


async def sample_or_blame(agent: Agent, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
    """The agent's raw outputs; `WordsError` if it fails because of what it has said or is writing."""
    try:
        if len(history) == 1:  # it has not said anything yet
            return await agent.sample(history, n=n, seed=seed)
        return await ask_fairly(
            lambda: agent.sample(history, n=n, seed=seed),
            lambda: agent.sample(history[:1], n=1, seed=seed),
        )
    except NoReplyError as error:
        if error.kind not in _OWN_OUTPUT:
            raise
        raise WordsError(str(error), kind=error.kind) from error


async def ask_fairly(ask: Callable[[], Awaitable[_T]], probe: Callable[[], Awaitable[object]]) -> _T:
    """The result of `ask`; `WordsError` if it fails while `probe`, the same without the agent's words, works.

    If both fail, the error of `ask` is raised: it is not the words.
    """
    for _ in range(_ROUNDS):
        try:
            return await ask()
        except (UsageError, WordsError):
            raise
        except Exception as error:
            failed = error
        if not await _works(probe):
            raise failed
        if isinstance(failed, NoReplyError):
            break
    if not isinstance(failed, StageError):
        logger.error("words of an agent met a bug", exc_info=failed)
    raise WordsError(str(failed), kind=cause(failed)) from failed


async def _works(probe: Callable[[], Awaitable[object]]) -> bool:
    try:
        await probe()
    except UsageError:
        raise
    except Exception:
        return False
    return True
