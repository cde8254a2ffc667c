"""A model that plays the client and sees pictures; `tests/e2e/test_frontend_road.py` has a real endpoint."""

import asyncio

import pytest

from pages.painted import PaintedPages, shop
from sweetrl.domains.frontend.domain import FRONTEND
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.frontend.vision import VisionCollaborator
from sweetrl.errors import ConfigError, NoReplyError, PageError
from sweetrl.prompts import Prompt
from sweetrl.types import Completion, Message, Reply, Role, Task, picture_digest

WANTED, DRAFT, BAD = "<html>wanted</html>", "<html>draft</html>", "<html>bad</html>"
PAGES = {WANTED: shop(), DRAFT: shop(footer=False), BAD: PageError("it never comes to rest")}
TASK = Task(id="shop", domain="frontend", request="A shop.", secret=FrontendSecret(WANTED))


class Eyes:
    """A `ChatModel` that remembers what it was given."""

    name = "eyes"

    def __init__(self, text: str = "It should be red.") -> None:
        self.text = text
        self.given: list[Message] = []

    async def complete(self, messages, *, n, sampling, seed):
        self.given += messages
        return [Completion(text=self.text, finish="stop")] * n

    async def close(self):
        pass


def reply(said: str, model: Eyes, **options: object) -> Reply:
    prompt = FRONTEND.pictures.collaborator_prompt
    client = VisionCollaborator(model, prompt, PaintedPages(PAGES), **options)  # type: ignore[arg-type]
    history = [Message(Role.USER, TASK.request), Message(Role.ASSISTANT, said)]
    return asyncio.run(client.reply(TASK, history, seed=0))


def test_it_is_shown_the_wanted_page_first_and_the_draft_second():
    eyes = Eyes()
    assert reply(f"Here: {DRAFT}", eyes) == Reply("It should be red.", picture_digest(PAGES[DRAFT].png))
    [message] = eyes.given
    assert message.images == (PAGES[WANTED].png, PAGES[DRAFT].png)
    assert "second picture is the designer's current draft" in message.text
    assert "A shop." in message.text
    assert "Here: (a draft of the page)" in message.text
    assert "<html" not in message.text


def test_without_a_draft_it_sees_the_wanted_page_only():
    eyes = Eyes()
    assert reply("Which colours?", eyes).screenshot is None
    assert eyes.given[0].images == (PAGES[WANTED].png,)
    assert "has not shown a draft yet" in eyes.given[0].text


def test_a_draft_that_cannot_be_shown_is_told():
    eyes = Eyes()
    reply(BAD, eyes)
    assert "cannot be shown: it never comes to rest." in eyes.given[0].text


def test_silence_is_no_reply():
    with pytest.raises(NoReplyError, match="said nothing"):
        reply(DRAFT, Eyes(" "))


def test_a_prompt_that_asks_for_the_source_is_refused():
    with pytest.raises(ConfigError, match="hidden_information"):
        VisionCollaborator(
            Eyes(), Prompt("{dialogue_history} {hidden_information}", source="mine"), PaintedPages({})
        )
