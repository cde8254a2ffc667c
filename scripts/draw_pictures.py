"""Draw the pictures of the README and of ARCHITECTURE.md, light and dark: `python scripts/draw_pictures.py`.

The dialogues are real. `docs/pictures/dialogue.json` holds the records behind them; this makes it again from a finished
`sweetrl quickstart`:

    python scripts/draw_pictures.py --from quickstart --task mini-backend-2e069bb77558fc48

The layers are those that tests/test_architecture.py checks.
"""

import argparse
import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import sweetrl
from sweetrl.report.markup import Markup, element

CHECKOUT = Path(__file__).resolve().parent.parent
PICTURES = CHECKOUT / "docs/pictures"
RECORD = PICTURES / "dialogue.json"

METHODS = {"base": "Untrained", "sweet": "After SWEET-RL"}
WIDTH, MARGIN, GAP = 960, 24, 32
COLUMN = (WIDTH - 2 * MARGIN - GAP) / 2
NUMBER, AXIS, REACH, WORDS_AT = 44, 96, 44, 152
"""Beside a turn, from the left: where its number ends, the axis of its bar, the longest bar, what was said."""
WORDS = 40
"""Characters of a line."""


Part = tuple[Markup, float]
"""Something drawn from its upper left corner, and its height."""


@dataclass(frozen=True)
class Colours:
    """One colour scheme."""

    ground: str
    raised: str
    edge: str
    ink: str
    soft: str
    plus: str
    minus: str
    good: str
    bad: str


SCHEMES = {
    "light": Colours(
        "#ffffff", "#f6f7f8", "#dfe3e6", "#1b1f23", "#5c6670", "#2166ac", "#b35806", "#0b6e4f", "#a63603"
    ),
    "dark": Colours(
        "#14171a", "#1c2024", "#31373d", "#e4e7ea", "#9aa4ad", "#6db1ee", "#f0a04b", "#56c596", "#f49b6c"
    ),
}


class Run(msgspec.Struct, frozen=True):
    """A dialogue of one method: what was said, what it earned, and what the critic thinks of each turn."""

    method: str
    episode: sweetrl.Episode
    verdict: sweetrl.Verdict
    credit: list[sweetrl.TurnCredit]


class Record(msgspec.Struct, frozen=True):
    """What the picture of the dialogues is drawn from."""

    request: str
    reference: str
    runs: list[Run]


# ---------------------------------------------------------------- the record


def record_of(quickstart: Path, task_id: str) -> Record:
    """The dialogues of the untrained and the trained agent on a task, with credit by the critic of that run."""
    tasks = sweetrl.load_tasks("mini-backend:validation:300:0")
    task = next(each for each in tasks if each.id == task_id)
    return Record(
        request=task.request,
        reference=task.secret.reference,  # type: ignore[attr-defined]
        runs=[_run(quickstart / "seed-0", method, tasks, task_id) for method in METHODS],
    )


def _run(seed: Path, method: str, tasks: list[sweetrl.Task], task_id: str) -> Run:
    folder = seed / "evaluations" / method
    [episode] = [
        each for each in sweetrl.load_episodes(folder / "episodes.jsonl", tasks) if each.task_id == task_id
    ]
    [verdict] = sweetrl.score(tasks, [episode])
    credit = sweetrl.credit(tasks, [episode], str(seed / "critics/sweet"))
    replace = msgspec.structs.replace
    # Folders of somebody's machine, and the share of each token, are no part of the picture.
    return Run(
        method=method,
        episode=replace(episode, agent=method),
        verdict=verdict,
        credit=[replace(each, critic="critics/sweet", tokens=None) for each in credit],
    )


# ---------------------------------------------------------------- the dialogues


def dialogues(record: Record, colours: Colours, *, narrow: bool) -> str:
    """The request beside the reference, and the dialogues side by side; on a narrow screen all of it in one column."""
    rows = [
        [_box("THE REQUEST", textwrap.wrap(record.request, 50), "said", colours),
         _box("WHAT ONLY COLLEAGUE, TESTS AND CRITIC KNOW", record.reference.splitlines(), "code", colours)],
        [_dialogue(run, colours) for run in record.runs],
        [_key(colours)],
    ]  # fmt: skip
    if narrow:
        rows = [[part] for row in rows for part in row]
    drawn, y = [], float(MARGIN)
    for row in rows:
        for number, (part, _) in enumerate(row):
            x = MARGIN + number * (COLUMN + GAP)
            drawn.append(element("g", part, transform=f"translate({x:g} {y:g})"))
        y += max(height for _, height in row) + 18
    described = "Two dialogues on one task, with the advantage of every turn"
    return _svg(2 * MARGIN + COLUMN if narrow else WIDTH, y, described, colours, drawn)


def _box(title: str, lines: Sequence[str], kind: str, colours: Colours) -> Part:
    height = 52 + 20 * max(len(lines), 5)
    return (
        element(
            "g",
            element("rect", width=COLUMN, height=height, rx=8, fill=colours.raised, stroke=colours.edge),
            _text(title, 16, 28, "small", colours.soft),
            *(_text(line, 16, 54 + 20 * row, kind, colours.ink) for row, line in enumerate(lines)),
        ),
        height,
    )


def _dialogue(run: Run, colours: Colours) -> Part:
    """Who spoke, what it earned, and every turn with its credit."""
    passed = sum(check.outcome == "passed" for check in run.verdict.checks)
    mark, tint = ("✓", colours.good) if run.verdict.success else ("✗", colours.bad)
    outcome = f"{mark} {passed} of {len(run.verdict.checks)} hidden tests passed"
    drawn = [
        _text(METHODS[run.method], 0, 22, "title", colours.ink),
        _text(outcome, COLUMN, 22, "outcome", tint, anchor="end"),
    ]
    scale = max(abs(each.advantage or 0) for each in run.credit)
    worst = None if run.verdict.success else min(run.credit, key=lambda each: each.advantage or 0)
    y = 36.0
    for turn, credit in zip(run.episode.turns, run.credit, strict=True):
        part, height = _turn(turn, credit.advantage or 0, scale, colours, blamed=credit is worst)
        drawn.append(element("g", part, transform=f"translate(0 {y:g})"))
        y += height
    return element("g", *drawn), y


def _turn(turn: sweetrl.Turn, advantage: float, scale: float, colours: Colours, *, blamed: bool) -> Part:
    lines = list(_lines(turn))
    height = 20 * len(lines) + 12
    ground = element(
        "rect", x=-8, y=3, width=COLUMN + 16, height=height, rx=6, fill=colours.minus, fill_opacity="0.13"
    )
    words = [
        _text(line, WORDS_AT, 22 + 20 * row, kind, colours.soft if kind == "reply" else colours.ink)
        for row, (kind, line) in enumerate(lines)
    ]
    note = _text("this turn lost it", COLUMN, 22, "outcome", colours.minus, anchor="end")
    drawn = [_advantage(advantage, 0, 17, scale, colours), *words]
    return element("g", *([ground, note, *drawn] if blamed else drawn)), height


def _lines(turn: sweetrl.Turn) -> Iterator[tuple[str, str]]:
    """What was said at a turn, line by line, each with how it is drawn."""
    question, *code = turn.said.splitlines()
    yield from (("said", line) for line in textwrap.wrap(question, WORDS))
    yield from (("code", line) for line in code)
    if turn.reply is not None:
        yield from (("reply", line) for line in textwrap.wrap(f"– {turn.reply.text}", WORDS))


def _advantage(value: float, left: float, y: float, scale: float, colours: Colours) -> Markup:
    """A bar to the right of its axis for what helped, to the left for what did harm, and the number."""
    axis, tint = left + AXIS, colours.plus if value >= 0 else colours.minus
    length = max(abs(value) / scale * REACH, 1.5)
    number = f"{value:+.2f}".replace("-", "−") if abs(value) >= 0.005 else "0.00"
    return element(
        "g",
        _text(
            number, left + NUMBER, y + 5, "number", tint if number != "0.00" else colours.soft, anchor="end"
        ),
        element(
            "rect", x=axis if value >= 0 else axis - length, y=y - 7, width=length, height=13, rx=2, fill=tint
        ),
        element("line", x1=axis, y1=y - 11, x2=axis, y2=y + 10, stroke=colours.soft, stroke_opacity="0.5"),
    )


def _key(colours: Colours) -> Part:
    """What the bars mean, in lines that fit a narrow screen."""
    about = "Bars and numbers: the advantage of each turn, by the learned critic."
    return (
        element(
            "g",
            _text(about, 0, 12, "small plain", colours.soft),
            element("rect", y=25, width=11, height=11, rx=2, fill=colours.plus),
            _text("brought it closer to what was wanted", 17, 35, "small plain", colours.soft),
            element("rect", x=260, y=25, width=11, height=11, rx=2, fill=colours.minus),
            _text("led it astray", 277, 35, "small plain", colours.soft),
            _text("Each dialogue has its own scale.", 0, 58, "small plain", colours.soft),
        ),
        58,
    )


# ---------------------------------------------------------------- the layers


def layers() -> list[list[str]]:
    """The parts of the package by layer, as the architecture test has them, the highest first."""
    tree = ast.parse((CHECKOUT / "tests/test_architecture.py").read_text())
    found = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS"
    )
    package = CHECKOUT / "src/sweetrl"
    existing = {path.stem for path in package.iterdir()} - {"__main__"}
    rows = [sorted(set(layer) & existing) for layer in ast.literal_eval(found)]
    return [row for row in reversed(rows) if row]


def house(colours: Colours) -> str:
    """One row for each layer; a part imports from the rows below it alone."""
    rows, height = layers(), 44
    drawn: list[Markup] = []
    for number, row in enumerate(rows):
        y = 16 + number * (height + 10)
        width = (720 - 10 * (len(row) - 1)) / len(row)
        for place, name in enumerate(row):
            x = 20 + place * (width + 10)
            drawn.append(
                element(
                    "rect",
                    x=x,
                    y=y,
                    width=width,
                    height=height,
                    rx=6,
                    fill=colours.raised,
                    stroke=colours.edge,
                )
            )
            drawn.append(_text(name, x + width / 2, y + 27, "said", colours.ink, anchor="middle"))
        drawn.append(_text(str(len(rows) - 1 - number), 760, y + 27, "small", colours.soft))
    whole = 16 + len(rows) * (height + 10)
    drawn.append(
        _text("A part imports from the rows below it, never from its own or a higher one.", 20, whole + 14,
              "small plain", colours.soft)
    )  # fmt: skip
    return _svg(800, whole + 30, "The layers of the package", colours, drawn)


# ---------------------------------------------------------------- drawing

STYLE = """
text { font-family: system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; font-size: 14px; }
.title { font-size: 17px; font-weight: 650; }
.outcome { font-size: 13px; font-weight: 600; }
.small { font-size: 10.5px; font-weight: 600; letter-spacing: .05em; }
.plain { font-size: 12.5px; font-weight: 400; letter-spacing: 0; }
.reply { font-style: italic; }
.number { font-size: 12px; font-weight: 600; font-variant-numeric: tabular-nums; }
.code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 12.5px; white-space: pre; }
"""


def _text(words: str, x: float, y: float, kind: str, fill: str, anchor: str | None = None) -> Markup:
    return element("text", words, x=x, y=y, class_=kind, fill=fill, text_anchor=anchor)


def _svg(width: float, height: float, described: str, colours: Colours, drawn: Sequence[Markup]) -> str:
    ground = element("rect", width="100%", height="100%", rx=10, fill=colours.ground)
    drawing = element(
        "svg",
        element("style", Markup(STYLE)),
        ground,
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=described,
    )
    return f"{drawing}\n"


def pictures() -> dict[Path, str]:
    """Every picture that is drawn here, by its file."""
    record = msgspec.json.decode(RECORD.read_bytes(), type=Record)
    return {
        PICTURES / f"{name}-{scheme}.svg": drawing
        for scheme, colours in SCHEMES.items()
        for name, drawing in (
            ("dialogue", dialogues(record, colours, narrow=False)),
            ("dialogue-narrow", dialogues(record, colours, narrow=True)),
            ("layers", house(colours)),
        )
    }


def main() -> None:
    """Draw all pictures, after making the record anew if a run is named."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the documentation.")
    parser.add_argument(
        "--from", dest="run", type=Path, help="a finished quickstart, to make the record from"
    )
    parser.add_argument("--task", help="the id of one of its validation tasks")
    asked = parser.parse_args()
    if asked.run is not None:
        made = msgspec.json.encode(record_of(asked.run, asked.task))
        RECORD.write_bytes(msgspec.json.format(made) + b"\n")
    for path, drawing in pictures().items():
        path.write_text(drawing)


if __name__ == "__main__":
    main()
