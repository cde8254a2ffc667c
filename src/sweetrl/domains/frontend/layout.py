"""`layout/2`: how alike two pages look, by what their elements paint and by their pixels.

Three looks at the pages are averaged. The blocks that elements paint (areas, pictures, lines of text) are
matched one to one by kind, place, size and colour, whatever the words in them; the colours of the pixels are
counted; and the rough distribution of light and dark is compared (dHash). It needs no weights, and it is not
CLIP: figures made with the two cannot be compared.
"""

import asyncio
import io
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweetrl.domains.frontend.similarity import SimilarityScore
from sweetrl.errors import MissingExtra, PageError, RenderError, needs_extra
from sweetrl.types import Box, Shot, picture_digest

Array = NDArray[np.float64]

LOOKS = {"blocks": 0.6, "palette": 0.2, "shade": 0.2}
"""Weights of the three looks."""
ASPECTS = {"position": 0.4, "size": 0.3, "colour": 0.3}
"""Weights of what two blocks are compared by."""
MOST_BLOCKS = 400
"""Blocks of a page that count: the largest ones."""

_AREA, _PICTURE, _TEXT = range(3)
_WHITE = "#ffffff"
_PICTURE_COLOUR = (128.0, 128.0, 128.0)
_REACH = 400.0
"""Pixels at which two places have lost 63 % of their similarity."""
_COLOUR_REACH = 60.0
"""Distance in CIELAB at which two colours have."""
_LEAST_MATCH = 0.35
"""Blocks that are less alike than this are not the same block."""
_AREA_POWER = 0.25
"""A block counts by a power of its area: large ones more, but a heading is no speck beside its section."""
_LETTER_WIDTH = 0.5
_LINE_HEIGHT = 1.5
"""Both as a factor of the font size, to estimate where in its box a text is."""
_LEVELS = 8
"""Per channel, in the palette."""
_SHRINK = 4
_GRID = 16
_SHADE_STEP = 2.0
"""Grey levels, of 255, that make a difference between neighbours."""
_FEATURES_KEPT = 512


@dataclass(frozen=True)
class Features:
    """The features of a page that are compared."""

    blocks: Array
    """A row for each block: kind, left, top, width, height, and its colour in CIELAB."""
    palette: Array
    grey: NDArray[np.uint8]
    """The page in grey, made smaller."""
    words: Counter[str]


class LayoutSimilarity:
    """The similarity that needs no model."""

    name = "layout/2"

    def __init__(self) -> None:
        self._features: OrderedDict[str, Features] = OrderedDict()

    async def compare(self, reference: Shot, answer: Shot) -> SimilarityScore:
        """The similarity, with its parts: position, size, colour, text, completeness, palette, shade."""
        return await asyncio.to_thread(self._compare, reference, answer)

    async def close(self) -> None:
        """Clear the cache."""
        self._features.clear()

    def _compare(self, reference: Shot, answer: Shot) -> SimilarityScore:
        if reference.png == answer.png:
            return SimilarityScore(
                1.0, dict.fromkeys((*ASPECTS, "text", "completeness", "palette", "shade"), 1.0)
            )
        key = picture_digest(reference.png)
        if (known := self._features.get(key)) is None:
            known = self._features[key] = _readable(reference, RenderError)
            if len(self._features) > _FEATURES_KEPT:
                self._features.popitem(last=False)
        return page_similarity(known, _readable(answer, PageError))


def _readable(shot: Shot, blame: type[PageError | RenderError]) -> Features:
    """The features of a page. Whatever its picture or its boxes do to the code below is that page's failure."""
    try:
        return features_of(shot)
    except MissingExtra:
        raise
    except Exception as error:
        raise blame(f"the page cannot be compared: {type(error).__name__}: {error}") from error


def page_similarity(reference: Features, answer: Features) -> SimilarityScore:
    """The average of the three looks, and what they saw."""
    blocks, parts = _compare_blocks(reference.blocks, answer.blocks)
    parts["text"] = _overlap(reference.words, answer.words)
    parts["palette"] = float(np.minimum(reference.palette, answer.palette).sum())
    parts["shade"] = _compare_shades(reference.grey, answer.grey)
    looks = {"blocks": blocks, **parts}
    score = sum(weight * looks[look] for look, weight in LOOKS.items())
    return SimilarityScore(min(max(score, 0.0), 1.0), parts)


def features_of(shot: Shot) -> Features:
    """The features of a rendered page."""
    picture = _open(shot)
    small = picture.resize((max(shot.width // _SHRINK, 1), max(shot.height // _SHRINK, 1)))
    words = Counter(
        word for box in shot.boxes if box.visible for word in re.findall(r"\w+", box.text.lower())
    )
    return Features(_blocks(shot.boxes), _palette(small), np.asarray(small.convert("L")), words)


def _open(shot: Shot) -> Any:
    with needs_extra("comparing pages", "browser"):
        from PIL import Image
    return Image.open(io.BytesIO(shot.png)).convert("RGB")


# ---------------------------------------------------------------- blocks


def _blocks(boxes: Sequence[Box]) -> Array:
    rows = np.array(list(_painted(boxes)), dtype=np.float64).reshape(-1, 8)
    if len(rows) > MOST_BLOCKS:
        largest = np.argsort(-rows[:, 3] * rows[:, 4], kind="stable")[:MOST_BLOCKS]
        rows = rows[np.sort(largest)]
    rows[:, 5:] = _lab(rows[:, 5:])
    return rows


def _painted(boxes: Sequence[Box]) -> Iterator[tuple[float, ...]]:
    """Everything that can be seen of the elements but of the page itself: its colour is in the palette."""
    backdrops: list[str] = []
    for box in boxes:
        beneath = backdrops[box.parent] if box.parent >= 0 else _WHITE
        own = box.background[:7]
        backdrops.append(own or beneath)
        if not box.visible or box.depth == 0:
            continue
        edge = box.border_color[:7] if box.border_width >= 1 else ""
        seen = next((colour for colour in (own, edge) if colour and colour != beneath), None)
        if seen is not None:
            yield _AREA, box.x, box.y, box.width, box.height, *_rgb(seen)
        if box.image:
            yield _PICTURE, box.x, box.y, box.width, box.height, *_PICTURE_COLOUR
        if box.text and box.color[:7] != (own or beneath):
            yield _TEXT, *_text_rectangle(box), *_rgb(box.color)


def _text_rectangle(box: Box) -> tuple[float, float, float, float]:
    """About where in its box the text is."""
    length = len(box.text) * _LETTER_WIDTH * box.font_size
    width = min(length, box.width)
    lines = math.ceil(length / box.width) if box.width else 1
    height = min(box.height, lines * _LINE_HEIGHT * box.font_size)
    free = box.width - width
    if "center" in box.text_align:
        left = free / 2
    elif box.text_align in ("right", "end"):
        left = free
    else:
        left = 0.0
    return box.x + left, box.y + (box.height - height) / 2, width, height


def _compare_blocks(reference: Array, answer: Array) -> tuple[float, dict[str, float]]:
    """The share of all blocks that have a counterpart, each counted by how alike the two are; the aspects."""
    nothing = dict.fromkeys((*ASPECTS, "completeness"), 0.0)
    if not len(reference) or not len(answer):
        # Two empty pages have the same blocks.
        both = float(len(reference) == len(answer))
        return both, dict.fromkeys(nothing, both)
    aspects = _aspects(reference, answer)
    alike = sum(weight * aspects[name] for name, weight in ASPECTS.items())
    alike = alike * (reference[:, None, 0] == answer[None, :, 0])
    weights = _weights(reference)[:, None] + _weights(answer)[None, :]
    total = float(_weights(reference).sum() + _weights(answer).sum())
    pairs = _match(alike)
    if not pairs:
        return 0.0, nothing
    rows, columns = (np.array(side) for side in zip(*pairs, strict=True))
    matched = weights[rows, columns]
    parts = {name: float(np.average(aspects[name][rows, columns], weights=matched)) for name in ASPECTS}
    parts["completeness"] = float(matched.sum()) / total
    return float((matched * alike[rows, columns]).sum()) / total, parts


def _aspects(reference: Array, answer: Array) -> dict[str, Array]:
    """The similarity of each block of one page to each of the other."""
    one, other = reference[:, None, :], answer[None, :, :]
    apart = (one[..., 1:3] + one[..., 3:5] / 2) - (other[..., 1:3] + other[..., 3:5] / 2)
    smaller = np.minimum(one[..., 3:5], other[..., 3:5])
    larger = np.maximum(np.maximum(one[..., 3:5], other[..., 3:5]), 1.0)
    return {
        "position": np.exp(-np.hypot(apart[..., 0], apart[..., 1]) / _REACH),
        "size": np.sqrt(np.prod(np.maximum(smaller, 1.0) / larger, axis=-1)),
        "colour": np.exp(-np.linalg.norm(one[..., 5:] - other[..., 5:], axis=-1) / _COLOUR_REACH),
    }


def _weights(blocks: Array) -> Array:
    return np.maximum(blocks[:, 3] * blocks[:, 4], 1.0) ** _AREA_POWER


def _match(alike: Array) -> list[tuple[int, int]]:
    """Pairs of blocks, the most alike first, each block once."""
    rows, columns = alike.shape
    free_rows, free_columns = set(range(rows)), set(range(columns))
    pairs = []
    candidates = np.argsort(-alike, axis=None, kind="stable")
    for place in candidates[: np.count_nonzero(alike >= _LEAST_MATCH)].tolist():
        row, column = divmod(place, columns)
        if row in free_rows and column in free_columns:
            free_rows.remove(row)
            free_columns.remove(column)
            pairs.append((row, column))
    return pairs


# ---------------------------------------------------------------- pixels and words


def _palette(picture: Any) -> Array:
    """The colours of a picture; by the root of their share, so that they are more than the background."""
    levels = np.asarray(picture).reshape(-1, 3) // (256 // _LEVELS)
    codes = levels.astype(np.int64) @ np.array([_LEVELS * _LEVELS, _LEVELS, 1])
    roots = np.sqrt(np.bincount(codes, minlength=_LEVELS**3))
    palette: Array = roots / roots.sum()
    return palette


def _compare_shades(reference: NDArray[np.uint8], answer: NDArray[np.uint8]) -> float:
    """Where neighbours differ in either page: how often they do so in the same direction."""
    height = max(len(reference), len(answer))
    one, other = _steps(reference, height), _steps(answer, height)
    differing = (one != 0) | (other != 0)
    return float((one == other)[differing].mean()) if differing.any() else 1.0


def _steps(grey: NDArray[np.uint8], height: int) -> Array:
    """-1, 0 or 1 between neighbours of a coarse grid over the page, which is continued in white to `height`."""
    from PIL import Image

    page = np.full((height, grey.shape[1]), 255, dtype=np.uint8)
    page[: len(grey)] = grey
    image = Image.fromarray(page)
    across = np.asarray(image.resize((_GRID + 1, _GRID), Image.Resampling.BOX), dtype=np.float64)
    down = np.asarray(image.resize((_GRID, _GRID + 1), Image.Resampling.BOX), dtype=np.float64)
    steps = np.concatenate([np.diff(across, axis=1).ravel(), np.diff(down, axis=0).ravel()])
    marks: Array = np.sign(np.where(np.abs(steps) > _SHADE_STEP, steps, 0.0))
    return marks


def _overlap(one: Counter[str], other: Counter[str]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(float(int(colour[at : at + 2], 16)) for at in (1, 3, 5))


_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_WHITE_POINT = np.array([0.9505, 1.0, 1.089])


def _lab(rgb: Array) -> Array:
    """CIELAB, in which equal distances look about equally different."""
    unit = rgb / 255.0
    linear = np.where(unit > 0.04045, ((unit + 0.055) / 1.055) ** 2.4, unit / 12.92)
    scaled = linear @ _TO_XYZ.T / _WHITE_POINT
    curve = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    x, y, z = curve[:, 0], curve[:, 1], curve[:, 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)
