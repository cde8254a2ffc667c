"""WebSight rows as frontend tasks: the source of ColBench's pages.

A row of `HuggingFaceM4/WebSight`, config `v0.2`, has an idea and a page. Pictures in the pages come from services
that show something else each time, so every one of them is replaced by a fixed picture of the same size.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import DataError, needs_extra, one_line
from sweetrl.types import Task, digest

DATASET = "HuggingFaceM4/WebSight"
CONFIG = "v0.2"
PICTURE = "https://picsum.photos/id/48/{width}/{height}"
DEFAULT_SIZE = (300, 200)
"""Size of a picture whose address does not give one."""

_SERVICES = (
    r"(?:source\.unsplash\.com|images\.unsplash\.com|unsplash\.it|picsum\.photos|fastly\.picsum\.photos"
    r"|via\.placeholder\.com|placehold\.it|placehold\.co|placeholder\.com|placekitten\.com|dummyimage\.com"
    r"|loremflickr\.com|lorempixel\.com|placeimg\.com)"
)
_ADDRESS = re.compile(rf"https?://(?:www\.)?{_SERVICES}(?:[/?][^\s\"'()<>]*)?", re.IGNORECASE)
_SIZES = (
    re.compile(r"(\d{1,4})x(\d{1,4})"),
    re.compile(r"/(\d{1,4})/(\d{1,4})(?=[/?#.]|$)"),
    re.compile(r"[?&]w(?:idth)?=(\d{1,4})\b.*?&h(?:eight)?=(\d{1,4})\b"),
)
_SQUARE = re.compile(r"/(\d{2,4})(?=[/?#.]|$)")
_FIXED_ID = re.compile(r"/id/\d+")


def read_websight(*, split: str = "train", count: int | None = None, source: str = DATASET) -> Iterator[Task]:
    """Tasks of the first `count` rows of a hub dataset, streamed, or of a local folder or file of its form."""
    with needs_extra("reading WebSight", "train"):
        import datasets  # type: ignore[import-untyped]
    try:
        config = CONFIG if source == DATASET else None
        rows = datasets.load_dataset(source, config, split=split, streaming=True)
        # The screenshots are the largest part by far, and made anew here.
        rows = rows.select_columns(["llm_generated_idea", "text"])
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise DataError(f"{source} cannot be read: {one_line(error)[:200]}") from error
    return tasks_of(rows if count is None else rows.take(count), split=split)


def tasks_of(rows: Iterable[Mapping[str, Any]], *, split: str = "") -> Iterator[Task]:
    """The tasks of decoded rows; a page that recurs with the same idea is one task."""
    seen: set[str] = set()
    for number, row in enumerate(rows):
        idea, page = row.get("llm_generated_idea"), row.get("text")
        if not isinstance(idea, str) or not isinstance(page, str) or not idea.strip() or not page.strip():
            raise DataError(f"WebSight row {number} lacks `llm_generated_idea` or `text`")
        page = normalise_pictures(page)
        name = digest(f"{idea}\x1f{page}")
        if name not in seen:
            seen.add(name)
            yield Task(
                id=f"websight-{name}",
                domain="frontend",
                split=split,
                request=idea.strip(),
                secret=FrontendSecret(page),
            )


def normalise_pictures(page: str) -> str:
    """The page with one fixed picture, in the requested size, in place of every picture of a service."""
    return _ADDRESS.sub(lambda match: _fixed(match[0]), page)


def _fixed(address: str) -> str:
    width, height = _size(_FIXED_ID.sub("", address.replace("&amp;", "&")))
    return PICTURE.format(width=width, height=height)


def _size(address: str) -> tuple[int, int]:
    for pattern in _SIZES:
        if (found := pattern.search(address)) and int(found[1]) and int(found[2]):
            return int(found[1]), int(found[2])
    if (square := _SQUARE.search(address)) and int(square[1]):
        return int(square[1]), int(square[1])
    return DEFAULT_SIZE
