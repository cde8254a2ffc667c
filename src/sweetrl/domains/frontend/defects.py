"""Finding design tasks whose reference cannot be compared with: not shown, blank, or without its assets."""

from collections.abc import Iterator

from sweetrl.domains.backend.defects import Defect, Reason
from sweetrl.domains.frontend.scorer import frontend_secret
from sweetrl.errors import PageError
from sweetrl.protocols import Renderer
from sweetrl.types import Shot, Task

_PAGE = "page"
"""In place of the name of a test: there is one page."""


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
