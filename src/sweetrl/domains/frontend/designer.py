"""The scripted designer: a collaborator for pages that compares both and names the largest differences.

It needs no model. Its remarks are true of the two pages, and it is satisfied when they look the same.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sweetrl.browser.session import BrowserSession
from sweetrl.domains.frontend.colours import colour_name
from sweetrl.domains.frontend.differences import differences, striking
from sweetrl.domains.frontend.elements import elements_of
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import CollaboratorError, PageError
from sweetrl.outputs import last_page
from sweetrl.protocols import Renderer
from sweetrl.types import Message, Reply, Role, Shot, Task, picture_digest

logger = logging.getLogger(__name__)

SATISFIED = "That is what I had in mind. I have nothing to add."
Keep = Callable[[bytes], str]
"""Takes a picture, may store it, and gives its content hash."""


class ScriptedDesigner:
    """A `Collaborator` for frontend tasks that reads the rendered pages instead of looking at them."""

    def __init__(self, renderer: Renderer, *, quote: bool = False, keep: Keep = picture_digest) -> None:
        """`quote`: whether it may tell the reference's words. The renderer should remember references."""
        self._renderer = renderer
        self._quote = quote
        self._keep = keep

    @property
    def name(self) -> str:
        """Its name in records."""
        return "designer-quoting/2" if self._quote else "designer/2"

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:  # noqa: ARG002
        """The two most striking differences of distinct kinds between the last page shown and the wanted one."""
        reference = await reference_shot(self._renderer, task)
        page = last_page([message.text for message in history if message.role is Role.ASSISTANT])
        if page is None:
            return Reply(f"I see no page yet. {describe(reference)}")
        try:
            shown = await self._renderer.render(page)
        except PageError as error:
            return Reply(f"Your page cannot be shown: {error}. {describe(reference)}")
        return Reply(self._remark(reference, shown), self._keep(shown.png))

    def _remark(self, reference: Shot, shown: Shot) -> str:
        """The designer's reply to a draft. A draft that makes it fail gets a reply about that; the dialogue goes on."""
        try:
            return remark(reference, shown, quote=self._quote)
        except Exception:
            # Compared with itself it fails too if it is the reference that cannot be read.
            remark(reference, replace(reference, png=b""), quote=self._quote)
            logger.exception("the designer cannot read a page")
            return f"I cannot make out what is on your page. {describe(reference)}"


def open_designer(session: BrowserSession, *, quote: bool = False) -> ScriptedDesigner:
    """The designer with the browsers of a run."""
    return ScriptedDesigner(session.renderer, quote=quote, keep=session.keep)


def open_quoting_designer(session: BrowserSession) -> ScriptedDesigner:
    """The designer who may tell the reference's words."""
    return open_designer(session, quote=True)


async def reference_shot(renderer: Renderer, task: Task) -> Shot:
    """The picture of the wanted page."""
    if not isinstance(task.secret, FrontendSecret):
        raise CollaboratorError(
            f"a collaborator for frontend tasks was given the {task.domain} task {task.id}"
        )
    try:
        return await renderer.render(task.secret.page)
    except PageError as error:
        raise CollaboratorError(f"the reference of {task.id} cannot be shown: {error}") from error


def remark(reference: Shot, answer: Shot, *, quote: bool = False) -> str:
    """The designer's remark on a draft."""
    if reference.png == answer.png:
        return SATISFIED
    claims = [each.sentence for each in striking(differences(reference, answer, quote=quote))]
    if not claims:
        return "It is very close to what I have in mind; only details differ that I cannot name."
    return " ".join(f"{claim[0].upper()}{claim[1:]}." for claim in claims)


def describe(reference: Shot) -> str:
    """The wanted page in a sentence: what it has, from top to bottom, without its words."""
    found = elements_of(reference)
    kinds = Counter(element.noun for element in found)
    large = ("header", "navigation", "heading", "picture", "table", "form", "footer")
    parts = []
    for noun in large:
        if kinds[noun] > 1:
            parts.append(f"{kinds[noun]} {noun}s")
        elif kinds[noun]:
            [element] = [each for each in found if each.noun == noun]
            colour = f"{colour_name(element.colour)} " if element.painted else ""
            parts.append(f"a {colour}{noun}")
    return f"I want a page with {', '.join(parts)}." if parts else "I want a very plain page."
