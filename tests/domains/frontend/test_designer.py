"""The scripted designer on painted pages; `tests/e2e/test_frontend_road.py` shows it real ones."""

import asyncio
import tracemalloc

import pytest
from msgspec.structs import replace

from pages.painted import WIDTH, PaintedPages, body, box, paint, shop
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.colours import colour_name, wish
from sweetrl.domains.frontend.designer import SATISFIED, ScriptedDesigner, describe, remark
from sweetrl.domains.frontend.differences import Aspect, differences, striking
from sweetrl.domains.frontend.elements import MOST_CHARACTERS, MOST_ELEMENTS, elements_of
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import CollaboratorError, PageError, RenderError
from sweetrl.types import Message, Reply, Role, Shot, Task, picture_digest

WANTED, DRAFT, BAD, BROKEN = "<html>wanted</html>", "<html>draft</html>", "<html>bad</html>", "<html>!</html>"
TASK = Task(id="shop", domain="frontend", request="A shop.", secret=FrontendSecret(WANTED))


def reply(said: str, draft: Shot | None = None, *, task: Task = TASK, **options: object) -> Reply:
    pages = {
        WANTED: shop(),
        DRAFT: draft or shop(),
        BAD: PageError("it is empty"),
        BROKEN: RenderError("gone"),
    }
    designer = ScriptedDesigner(PaintedPages(pages), **options)  # type: ignore[arg-type]
    history = [Message(Role.USER, task.request), Message(Role.ASSISTANT, said)]
    return asyncio.run(designer.reply(task, history, seed=0))


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (shop(header="#ffffff"), "The header should be red instead of white."),
        (shop(footer=False), "A footer near the bottom of the page is missing."),
        (shop(header="#7f1d1d", footer=False), "A footer near the bottom of the page is missing. The header should be "
         "red instead of dark red."),
        (shop(title="Silver Crumbs"), "The heading should have other words."),
    ],
)  # fmt: skip
def test_it_names_what_differs(draft, said):
    assert remark(shop(), draft) == said


def test_it_is_satisfied_with_the_wanted_page_and_refers_to_the_picture_it_saw():
    assert reply(DRAFT) == Reply(SATISFIED, picture_digest(shop().png))


def test_it_tells_the_references_words_only_if_it_may():
    draft = shop(title="Silver Crumbs")
    assert "Golden" not in reply(DRAFT, draft).text
    assert reply(DRAFT, draft, quote=True).text == 'The heading should say "Golden Crust".'


def test_something_too_much_is_named_as_such():
    [claim] = striking(
        differences(shop(), shop(extra=[box("img", 900, 100, 90, 60, image=True, background="#cccccc")]))
    )
    assert (claim.aspect, claim.sentence) == (Aspect.EXTRA, "the picture should not be there")


def test_things_that_changed_places_are_told_in_which_order_they_belong():
    def page(*, swapped: bool) -> Shot:
        tops = (300, 100) if swapped else (100, 300)
        form = box("form", 0, tops[0], 600, 100, "Write to us", background="#bbbbbb")
        table = box("table", 0, tops[1], 600, 100, "Prices", background="#ffdddd")
        return paint(body(), *((table, form) if swapped else (form, table)))

    found = differences(page(swapped=False), page(swapped=True))
    assert found[0].aspect is Aspect.ORDER
    assert found[0].sentence in (
        "the form should come before the table",
        "the table should come after the form",
    )


@pytest.mark.parametrize(
    ("style", "said"),
    [
        ({"color": "#dc2626"}, "The text of the heading should be black instead of red."),
        ({"font_size": 40.0}, "The text of the heading should be much smaller."),
        ({"text_align": "center"}, "The text of the heading should be on the left instead of centred."),
        ({"y": 130.0}, "The heading should be further up."),
        ({"width": 700.0}, "The heading should be narrower."),
    ],
)
def test_every_style_has_a_sentence(style, said):
    def page(**changed: object) -> Shot:
        given = {"x": 50.0, "y": 100.0, "width": 400.0, "height": 40.0, "text": "Hello", **changed}
        return paint(body(), box("h1", **given))  # type: ignore[arg-type]

    draft = page(**style)
    # The words are painted the same in some of these cases: only the boxes tell.
    assert remark(page(), Shot(png=draft.png + b" ", width=WIDTH, height=600, boxes=draft.boxes)) == said


def test_the_colour_of_the_page_counts():
    assert remark(paint(body("#1f2937")), paint(body())) == (
        "The background of the page should be dark grey instead of white."
    )


def test_differences_of_one_kind_are_named_once():
    found = differences(shop(), shop(header="#000000", cards=1, footer=False))
    assert len(found) > 2
    named = striking(found)
    assert len({each.aspect for each in named}) == len(named) == 2


def test_what_the_boxes_do_not_show_is_admitted():
    same = shop()
    other = Shot(png=same.png + b" ", width=same.width, height=same.height, boxes=same.boxes)
    assert "details differ" in remark(same, other)


def test_without_a_page_it_says_what_it_wants_without_quoting():
    said = reply("Which colours do you like?")
    assert said == Reply("I see no page yet. I want a page with a red header, a heading, a dark grey footer.")
    assert describe(paint(body())) == "I want a very plain page."


def test_a_page_that_cannot_be_shown_is_told_to_its_author():
    assert reply(BAD).text.startswith("Your page cannot be shown: it is empty.")


UNREADABLE = replace(
    shop(footer=False), boxes=tuple(replace(each, background="#\ud800zzzzz") for each in shop().boxes)
)


def test_a_page_that_it_cannot_read_is_told_to_its_author():
    said = reply(DRAFT, UNREADABLE)
    assert said.text.startswith("I cannot make out what is on your page. I want a page with a red header")
    assert said.screenshot == picture_digest(UNREADABLE.png)


def test_a_reference_that_it_cannot_read_is_not_the_agents_fault():
    designer = ScriptedDesigner(PaintedPages({WANTED: UNREADABLE, DRAFT: shop()}))
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(designer.reply(TASK, [Message(Role.ASSISTANT, DRAFT)], seed=0))


def test_the_words_of_an_element_are_those_inside_it_in_order_and_not_without_end():
    shot = paint(
        body(),
        box("form", 0, 0, 500, 500, "one", parent=0),
        box("p", 0, 0, 90, 20, "two", parent=1),
        box("p", 0, 30, 90, 20, "hidden", parent=1, visible=False),
        box("p", 0, 60, 90, 20, "three " * 400, parent=1),
        box("p", 0, 90, 90, 20, "apart", parent=0),
    )
    form, *_, apart = elements_of(shot)
    assert form.words.startswith("one two three three")
    assert len(form.words) == MOST_CHARACTERS
    assert apart.words == "apart"


def test_deep_pages_full_of_words_take_no_more_than_their_words():
    """What it holds for a page of 3,000 nested boxes of 2,000 characters is less than those characters twice."""
    depth = 3000
    boxes = [
        body(),
        *(box("div", 0, 0, 90, 20, "word " * 400, parent=at, depth=at + 1) for at in range(depth)),
    ]
    shot = Shot(png=b"", width=WIDTH, height=600, boxes=tuple(boxes))
    tracemalloc.start()
    found = elements_of(shot)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == MOST_ELEMENTS
    assert most < 2 * depth * 2000


def test_a_broken_browser_is_not_the_agents_fault():
    with pytest.raises(RenderError):
        reply(BROKEN)


def test_it_keeps_what_it_saw():
    kept: list[bytes] = []

    def keep(png: bytes) -> str:
        kept.append(png)
        return "name"

    assert reply(DRAFT, shop(footer=False), keep=keep).screenshot == "name"
    assert kept == [shop(footer=False).png]


@pytest.mark.parametrize(
    "task",
    [
        Task(id="add", domain="backend", request="Add.", secret=BackendSecret("def f(): ...", {"a": "f()"})),
        Task(id="shop", domain="frontend", request="A shop.", secret=FrontendSecret(BAD)),
    ],
)
def test_a_task_that_it_cannot_play_is_a_breakdown(task):
    with pytest.raises(CollaboratorError, match=task.id):
        reply(DRAFT, task=task)


@pytest.mark.parametrize(
    ("wanted", "shown", "said"),
    [
        ("#ffffff", "#dc2626", "white instead of red"),
        ("#1d4ed8", "#3b82f6", "a darker shade of blue"),
        ("#fecaca", "#000000", "light red instead of black"),
    ],
)
def test_colours_have_names(wanted, shown, said):
    assert wish(wanted, shown) == said
    assert colour_name(wanted) == said.split(" instead")[0].removeprefix("a darker shade of ")
