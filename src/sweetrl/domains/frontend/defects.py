"""Finding design tasks whose reference cannot be compared with: not shown, blank, or without its assets."""

from collections.abc import Iterator
from enum import StrEnum

from sweetrl.domains.frontend.secret import frontend_secret
from sweetrl.domains.scoring import Defect
from sweetrl.errors import PageError
from sweetrl.protocols import Renderer
from sweetrl.types import Shot, Task

_PAGE = "page"
"""In place of the name of a test: there is one page."""


class Reason(StrEnum):
    """Defects of a page."""

    PAGE_NOT_SHOWN = "page_not_shown"
    """The reference is a page that the browser cannot show."""
    BLANK_PAGE = "blank_page"
    INCOMPLETE_PAGE = "incomplete_page"
    """The reference asks for something that is not offered offline, or was cut."""


async def find_page_defects(task: Task, renderer: Renderer) -> list[Defect]:
    """The task's defects. `RenderError` if the browser fails."""
    try:
        shot = await renderer.render(frontend_secret(task).page)
    except PageError as error:
        return [Defect(task.id, Reason.PAGE_NOT_SHOWN, _PAGE, str(error))]
    return [Defect(task.id, reason, _PAGE, detail) for reason, detail in _complaints(shot)]


def _complaints(shot: Shot) -> Iterator[tuple[Reason, str]]:
    paints = [box for box in shot.boxes[1:] if box.visible and (box.text or box.image or box.background)]
    controls = [box for box in shot.boxes if box.visible and box.border_width > 0]
    if not paints and not controls:
        yield Reason.BLANK_PAGE, "nothing can be seen on the page"
    if shot.blocked:
        more = f" and {len(shot.blocked) - 1} more" if len(shot.blocked) > 1 else ""
        yield Reason.INCOMPLETE_PAGE, f"needs {shot.blocked[0][:200]}{more}, which is not offered"
    for warning in shot.warnings:
        yield Reason.INCOMPLETE_PAGE, warning
