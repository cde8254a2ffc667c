"""The frontend domain: web pages, described by a designer and scored by how similar they look."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sweetrl.domains.domain import Domain, Labels, Pictures, Prompts, SecretPart
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.outputs import last_page, without_page
from sweetrl.prompts import load
from sweetrl.types import Message, Role, Task

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sweetrl.browser.session import BrowserSession
    from sweetrl.domains.leaks.detection import Reference
    from sweetrl.domains.scoring import ScoringBackend, ScoringOptions
    from sweetrl.protocols import Collaborator

MINI = "mini-frontend"
TEXTS = "sweetrl.domains.frontend"


def _scoring(options: "ScoringOptions") -> "AbstractContextManager[ScoringBackend]":
    from contextlib import nullcontext

    from sweetrl.domains.frontend.scoring import PageScoring

    return nullcontext(PageScoring(options))


def _make_tasks(split: str, count: int, seed: int) -> Iterator[Task]:
    from sweetrl.domains.frontend.mini_frontend import make_tasks

    return make_tasks(split, count, seed)


def _designer(session: "BrowserSession", *, quote: bool = False) -> "Collaborator":
    from sweetrl.domains.frontend.designer import ScriptedDesigner

    return ScriptedDesigner(session.renderer, quote=quote, keep=session.keep)


def _quoting_designer(session: "BrowserSession") -> "Collaborator":
    return _designer(session, quote=True)


def _seeing_collaborator(*given: Any, **options: Any) -> "Collaborator":
    from sweetrl.domains.frontend.vision import VisionCollaborator

    return VisionCollaborator(*given, **options)


def _published_line(task: Task) -> bytes:
    from sweetrl.domains.colbench import published_line

    return published_line(task)


def _leak_index(page: str) -> "Reference":
    from sweetrl.domains.leaks.detection import Reference

    return Reference(page, is_page=True)


def _page(secret: FrontendSecret) -> str:
    return secret.page


def _parts(secret: FrontendSecret) -> list[SecretPart]:
    return [SecretPart("page", secret.page, "html")]


def _without_page(said: str) -> str:
    return without_page(said, "(a draft of the page)")


def _current_page(history: Sequence[Message]) -> dict[str, str]:
    said = [message.text for message in history if message.role is Role.ASSISTANT]
    return {"current_page": last_page(said) or "(nothing has been shown yet)"}


FRONTEND = Domain(
    name="frontend",
    secret=FrontendSecret,
    reference=_page,
    prompts=Prompts(
        agent=load("agent-frontend", TEXTS),
        single_turn=load("agent-frontend-single-turn", TEXTS),
        collaborator=load("collaborator-frontend", TEXTS),
        privileged=load("privileged-frontend", TEXTS),
    ),
    labels=Labels(
        agent="Designer",
        reference="page",
        language="html",
        reward="likeness",
        checks="aspects of the wanted page met",
    ),
    answer=last_page,
    reply_limit=1000,
    scoring=_scoring,
    by_success=False,
    collaborators={"designer": _designer, "designer:quote": _quoting_designer},
    generators={MINI: _make_tasks},
    published_line=_published_line,
    secret_parts=_parts,
    in_transcript=_without_page,
    collaborator_fields=_current_page,
    pictures=Pictures(
        page=_page,
        collaborator=_seeing_collaborator,
        collaborator_prompt=load("collaborator-frontend-vision", TEXTS),
        privileged_prompt=load("privileged-frontend-vision", TEXTS),
    ),
    leak_index=_leak_index,
)
