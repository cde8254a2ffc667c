"""The answer beside what was wanted: code with a diff to the reference, pages as pictures with a slider."""

from collections.abc import Iterator
from difflib import SequenceMatcher

from sweetrl.domains.domain import Domain, SecretPart
from sweetrl.outputs import find_page
from sweetrl.report.dialogues import fold
from sweetrl.report.highlight import highlight
from sweetrl.report.markup import CUT, Markup, cut, element, excerpt, join
from sweetrl.report.messages import code_block, cut_note
from sweetrl.viewer.dialogues import Dialogue
from sweetrl.viewer.pages.frame import address
from sweetrl.viewer.secrets import Hidden

_LINES = 600
"""Lines of each side that are compared."""
_DOMAIN_LANGUAGE = "text"


def answer_section(
    dialogue: Dialogue, domain: Domain | None, hidden: Hidden | None, *, show_hidden: bool
) -> Markup | None:
    """What was answered and, for those who may see it, how that differs from the reference."""
    answer = dialogue.episode.answer
    language = _DOMAIN_LANGUAGE if domain is None else domain.labels.language
    parts = [
        _pages(dialogue, reference=show_hidden),
        None if answer is None or find_page(answer) is None else _frame(dialogue),
        None if answer is None else _code(answer, language),
        None
        if answer is None or hidden is None or not hidden.reference
        else _difference(answer, hidden, language),
    ]
    if not any(parts):
        return None
    return element("section", element("h2", "Answer"), *parts, class_="answer", id="answer")


def _code(text: str, language: str) -> Markup:
    shown, left_out = cut(text)
    return join([code_block(shown, language), cut_note(left_out) if left_out else None])


def _difference(answer: str, hidden: Hidden, language: str) -> Markup:
    title = f"Difference to the {hidden.domain.labels.reference}"
    return join([element("h3", title), diff(hidden.reference, answer, language)])


# ---------------------------------------------------------------- diff


def diff(wanted: str, given: str, language: str) -> Markup:
    """Both texts line by line: what is wanted and missing, and what is there instead."""
    old, new = (text[:CUT].splitlines()[:_LINES] for text in (wanted, given))
    rows = list(_changes(old, new, language))
    if all(kind == "same" for kind, _ in rows):
        return element("p", "No difference.", class_="note")
    lines = [
        element("span", element("span", sign, class_="sign"), line, class_=f"line {kind}")
        for kind, line in rows
        for sign in [{"same": " ", "wanted": "−", "given": "+"}[kind]]
    ]
    key = element(
        "p",
        element("span", "−", class_="line wanted"),
        " only in the reference ",
        element("span", "+", class_="line given"),
        " only in the answer",
        class_="note diff-key",
    )
    return join([key, element("pre", element("code", *lines), class_="diff", tabindex=0)])


def _changes(old: list[str], new: list[str], language: str) -> Iterator[tuple[str, Markup]]:
    for tag, start, stop, new_start, new_stop in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            yield from (("same", _line(line, language)) for line in old[start:stop])
            continue
        yield from (("wanted", _line(line, language)) for line in old[start:stop])
        yield from (("given", _line(line, language)) for line in new[new_start:new_stop])


def _line(line: str, language: str) -> Markup:
    return highlight(line + "\n", language)


# ---------------------------------------------------------------- pages


def picture_address(dialogue: Dialogue, name: str) -> str:
    """Where the picture of a content hash is."""
    return address("/picture", of=dialogue.run, name=name)


def picture(dialogue: Dialogue, name: str | None, caption: str) -> Markup | None:
    """A screenshot that was kept, with its caption."""
    if name is None or dialogue.picture(name) is None:
        return None
    image = element("img", src=picture_address(dialogue, name), alt=caption, loading="lazy")
    zoom = element("button", image, type="button", class_="zoom", aria_label=f"{caption}: enlarge")
    return element("figure", zoom, element("figcaption", caption), class_="picture")


def _pages(dialogue: Dialogue, *, reference: bool) -> Markup | None:
    shots = None if dialogue.verdict is None else dialogue.verdict.screenshots
    if shots is None:
        return None
    answer = picture(dialogue, shots.answer, "the answer")
    wanted = picture(dialogue, shots.reference, "the wanted page") if reference else None
    if wanted is None or answer is None:
        shown = [each for each in (wanted, answer) if each]
        return element("div", *shown, class_="gallery") if shown else None
    assert shots.answer is not None
    return join(
        [
            element("div", wanted, answer, class_="gallery pair"),
            element("h3", "One over the other"),
            element(
                "p", "Left of the handle is the wanted page, right of it the answer.", class_="note one-over"
            ),
            _slider(dialogue, shots.reference, shots.answer),
        ]
    )


def _frame(dialogue: Dialogue) -> Markup:
    """The page itself, where nothing of it can run, ask anyone for anything or lead anywhere."""
    return fold(
        "the page itself, without scripts",
        element(
            "iframe",
            src=address("/page", of=dialogue.run, id=dialogue.episode.id),
            sandbox="",
            loading="lazy",
            referrerpolicy="no-referrer",
            title="the answer as a page, without scripts",
            class_="agents-page",
        ),
    )


def _slider(dialogue: Dialogue, wanted: str, answer: str) -> Markup:
    """Both pages in one place: the wanted one left of the handle, the answer right of it."""
    return element(
        "div",
        element("img", src=picture_address(dialogue, answer), alt="the answer"),
        element("img", src=picture_address(dialogue, wanted), alt="the wanted page", class_="over"),
        element("div", class_="handle", aria_hidden="true"),
        element(
            "input",
            type="range",
            min=0,
            max=100,
            value="50",
            aria_label="how much of the wanted page is shown over the answer",
        ),
        class_="slider",
    )


# ---------------------------------------------------------------- what was hidden


def hidden_section(hidden: Hidden) -> Markup:
    """Everything about the task that the agent could not see."""
    parts = [_part(part) for part in hidden.parts if part.text]
    nothing = element("p", f"This task has no {hidden.domain.labels.reference}.", class_="note")
    return element(
        "section",
        element("h2", "Hidden from the agent"),
        *(parts or [nothing]),
        class_="hidden-parts",
        id="hidden",
    )


def _part(part: SecretPart) -> Markup:
    return join([element("h3", title_of(part)), _code(part.text, part.language)])


def title_of(part: SecretPart) -> str:
    """The title of a part of the secret, as a heading."""
    return excerpt(part.title[:1].upper() + part.title[1:], 60)
