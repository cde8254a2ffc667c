import torch
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.models.local.prefixes import BLOCK, Layers, PrefixStore

Text = list[int]
OPENING = [token % 3 for token in range(4 * BLOCK)]
short_texts = st.lists(st.integers(0, 2), min_size=1, max_size=8)
long_texts = st.builds(lambda length, rest: OPENING[:length] + rest, st.integers(0, 4 * BLOCK), short_texts)
texts = short_texts | long_texts
TOKEN_BYTES = 2 * 2 * 4
"""Of the layers below: keys and values, two numbers each, four bytes a number."""


def layers_of(text: Text) -> Layers:
    """One layer with one head that spells the text, so that a mixed-up text is noticed."""
    keys = torch.tensor([[[float(token), 0.5] for token in text]])
    return [(keys, -keys)]


def spelt(layers: Layers) -> Text:
    return [int(token) for token in layers[0][0][0, :, 0]] if layers else []


def common(one: Text, other: Text) -> Text:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]


@given(st.lists(texts, max_size=12), texts, st.integers(0, 5 * BLOCK))
def test_the_longest_common_beginning_is_found(kept: list[Text], wanted: Text, limit: int) -> None:
    store = PrefixStore(budget=1 << 20)
    for text in kept:
        store.keep(text, layers_of(text))
    found = store.longest(wanted, limit=limit)
    best = max((len(common(text, wanted[:limit])) for text in kept), default=0)
    assert found.length == best
    assert spelt(found.layers) == wanted[:best]


@given(st.lists(st.tuples(st.booleans(), texts), max_size=20), st.integers(0, 6 * BLOCK))
def test_it_holds_what_a_list_in_order_of_use_would_hold(uses: list[tuple[bool, Text]], tokens: int) -> None:
    store = PrefixStore(budget=tokens * TOKEN_BYTES)
    held: list[Text] = []
    for keep, text in uses:
        if keep and len(text) <= tokens:
            held = [each for each in held if text[: len(each)] != each] + [text]
            while sum(map(len, held)) > tokens:
                held.pop(0)
        best = max(reversed(held), key=lambda each: len(common(each, text)), default=[])
        if keep:
            store.keep(text, layers_of(text))
        if common(best, text):
            held.remove(best)
            held.append(best)
        assert store.longest(text, limit=len(text)).length == len(common(best, text))
        assert len(store) == len(held)


@given(st.lists(texts, max_size=20), st.integers(0, 20))
def test_the_budget_is_never_exceeded(kept: list[Text], tokens: int) -> None:
    store = PrefixStore(budget=tokens * TOKEN_BYTES)
    for text in kept:
        store.keep(text, layers_of(text))
        assert store.size <= tokens * TOKEN_BYTES


def test_the_least_recently_used_text_goes_first() -> None:
    store = PrefixStore(budget=6 * TOKEN_BYTES)
    for text in ([1, 1], [2, 2], [3, 3]):
        store.keep(text, layers_of(text))
    assert store.longest([1, 1], limit=9).length == 2
    store.keep([4, 4], layers_of([4, 4]))
    assert [store.longest([token] * 2, limit=9).length for token in (1, 2, 3, 4)] == [2, 0, 2, 2]


def test_a_longer_text_takes_the_place_of_its_beginning() -> None:
    store = PrefixStore(budget=1 << 20)
    for text in ([1, 2], [1, 2, 3], [1, 2, 3]):
        store.keep(text, layers_of(text))
    assert len(store) == 1
    assert store.size == 3 * TOKEN_BYTES


def test_what_is_kept_is_a_copy() -> None:
    store = PrefixStore(budget=1 << 20)
    layers = layers_of([1, 2])
    store.keep([1, 2], layers)
    layers[0][0].zero_()
    assert spelt(store.longest([1, 2], limit=2).layers) == [1, 2]
