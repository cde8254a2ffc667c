"""`layout/2` on pages painted without a browser."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.painted import WIDTH, body, box, paint, shop
from sweetrl.domains.frontend.layout import MOST_BLOCKS, LayoutSimilarity, features_of, page_similarity
from sweetrl.domains.frontend.similarity import SimilarityScore
from sweetrl.errors import PageError, RenderError
from sweetrl.types import Shot

PARTS = {"position", "size", "colour", "text", "completeness", "palette", "shade"}


def compare(reference: Shot, answer: Shot) -> SimilarityScore:
    return asyncio.run(LayoutSimilarity().compare(reference, answer))


def test_a_page_is_exactly_like_itself():
    found = compare(shop(), shop())
    assert found.score == 1.0
    assert found.parts == dict.fromkeys(found.parts, 1.0)
    assert found.parts.keys() == PARTS


def test_features_of_the_same_page_give_one_without_the_short_cut_too():
    found = page_similarity(features_of(shop()), features_of(shop()))
    assert found.score == pytest.approx(1.0)
    assert found.parts == pytest.approx(dict.fromkeys(PARTS, 1.0))


@pytest.mark.parametrize(
    ("answer", "lowered"),
    [
        (shop(header="#16a34a"), "colour"),
        (shop(footer=False), "completeness"),
        (shop(card_top=330), "position"),
        (shop(title="Another name here"), "text"),
    ],
)
def test_each_kind_of_difference_lowers_the_part_named_after_it(answer, lowered):
    found = compare(shop(), answer)
    assert found.score < 1.0
    assert found.parts[lowered] < 0.98
    if lowered in ("colour", "position"):
        assert found.parts["completeness"] == pytest.approx(1.0)
        assert found.parts["text"] == 1.0


def test_more_differences_score_lower():
    scores = [
        compare(shop(), answer).score
        for answer in (
            shop(header="#ef4444"),
            shop(header="#16a34a"),
            shop(header="#16a34a", footer=False),
            shop(header="#16a34a", footer=False, cards=1, card_top=400),
            paint(body("#000000")),
        )
    ]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_matching_does_not_read_the_words():
    right = compare(shop(card_top=260), shop(title="Golden Crust"))
    other = compare(shop(card_top=260), shop(title="Marble Frost"))
    assert other.score == pytest.approx(right.score)
    assert other.parts["text"] < right.parts["text"]


def test_what_cannot_be_seen_is_no_block():
    unseen = [
        box("div", 10, 100, 50, 50, background="#ffffff"),
        box("p", 10, 150, 50, 20, "white on white", color="#ffffff"),
        box("div", 10, 100, 50, 50, background="#ff0000", visible=False),
    ]
    assert len(features_of(shop(extra=unseen)).blocks) == len(features_of(shop()).blocks)


def test_a_page_of_many_elements_is_compared_by_its_largest():
    crowd = [box("div", 3 * place % WIDTH, place % 500, 2, 2, background="#ff0000") for place in range(2000)]
    blocks = features_of(shop(extra=crowd)).blocks
    assert len(blocks) == MOST_BLOCKS
    assert {WIDTH, 280} <= set(blocks[:, 3])


def test_two_empty_pages_are_alike_and_an_empty_one_is_unlike_a_full_one():
    empty, grey = paint(body()), paint(body("#eeeeee"))
    assert compare(empty, grey).parts["completeness"] == 1.0
    assert compare(empty, shop()).score < 0.5


colours = st.sampled_from(["#ff0000", "#00ff00", "#1f2937", "#ffffff80", ""])
boxes = st.builds(
    box,
    st.sampled_from(["div", "p", "img"]),
    st.integers(-50, 1400),
    st.integers(-50, 700),
    st.integers(1, 1400),
    st.integers(1, 700),
    st.text(max_size=20),
    background=colours,
    image=st.booleans(),
    visible=st.booleans(),
    text_align=st.sampled_from(["start", "center", "right", "-webkit-center"]),
)
shots = st.lists(boxes, max_size=5).map(lambda some: paint(body(), *some))


@settings(max_examples=15)
@given(shots, shots)
def test_a_score_and_its_parts_are_between_0_and_1_and_symmetric(one, other):
    found, back = compare(one, other), compare(other, one)
    assert all(0 <= value <= 1 + 1e-9 for value in (found.score, *found.parts.values()))
    assert back.parts["palette"] == pytest.approx(found.parts["palette"])
    assert back.parts["shade"] == pytest.approx(found.parts["shade"])


NO_PICTURE = Shot(png=b"no png", width=10, height=10)
NO_COLOUR = Shot(
    png=shop(footer=False).png,
    width=WIDTH,
    height=600,
    boxes=(body(), box("p", 0, 0, 90, 20, "x", color="#\ud800\udfff")),
)


@pytest.mark.parametrize("broken", [NO_PICTURE, NO_COLOUR])
def test_who_is_to_blame_depends_on_which_page_cannot_be_compared(broken):
    with pytest.raises(PageError, match="cannot be compared"):
        compare(shop(), broken)
    with pytest.raises(RenderError, match="cannot be compared"):
        compare(broken, shop())
