from dataclasses import dataclass, field

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sweetrl.models.local.cache import RaggedCache
from sweetrl.models.local.prefixes import Prefix

MAX_ROWS = 3


def prefix_of(text: list[float]) -> Prefix:
    keys = torch.tensor(text).reshape(1, len(text), 1).expand(2, -1, 4)
    return Prefix(len(text), [(keys, -keys), (keys + 0.5, keys)])


@dataclass
class Model:
    """What the cache should hold: a list of texts, on which the same operations are obvious."""

    cache: RaggedCache = field(default_factory=lambda: RaggedCache(2, MAX_ROWS))
    rows: list[list[float]] = field(default_factory=list)
    written: float = 1.0

    def fresh(self, count: int) -> list[float]:
        numbers = [self.written + index for index in range(count)]
        self.written += count
        return numbers

    def join(self, length: int) -> None:
        if len(self.rows) < MAX_ROWS:
            self.rows.append(self.fresh(length))
            self.cache.join(prefix_of(self.rows[-1]))

    def leave(self, place: int) -> None:
        if self.rows:
            row = place % len(self.rows)
            self.cache.leave(row)
            self.rows[row] = self.rows[-1]
            self.rows.pop()

    def step(self) -> None:
        """One new number per row, written as the layers of a network do; checks what they are given back."""
        if not self.rows:
            return
        self.cache.reserve()
        new = self.fresh(len(self.rows))
        states = torch.tensor(new).reshape(-1, 1, 1, 1).expand(-1, 2, 1, 4)
        mask = self.cache.mask([1] * len(new))
        seen, _ = self.cache.update(states, -states, 0)
        self.cache.update(states + 0.5, states, 1)
        self.cache.advance([1] * len(new))
        for row, number in enumerate(new):
            self.rows[row].append(number)
            assert seen[row, 1, :, 3][mask[row]].tolist() == self.rows[row]
            assert not seen[row, :, ~mask[row]].any()

    def check(self) -> None:
        assert self.cache.lengths == [len(row) for row in self.rows]
        for row, text in enumerate(self.rows):
            held = self.cache.row(row)
            for (keys, values), (wanted_keys, wanted_values) in zip(
                held.layers, prefix_of(text).layers, strict=True
            ):
                assert torch.equal(keys, wanted_keys)
                assert torch.equal(values, wanted_values)


operations = st.one_of(
    st.tuples(st.just("join"), st.integers(1, 300)),
    st.tuples(st.just("leave"), st.integers(0, MAX_ROWS)),
    st.tuples(st.just("step"), st.integers(1, 40)),
)


@settings(max_examples=60)
@given(st.lists(operations, max_size=14))
def test_rows_keep_their_texts_while_others_join_grow_and_leave(steps: list[tuple[str, int]]) -> None:
    model = Model()
    for name, size in steps:
        if name == "step":
            for _ in range(size):
                model.step()
        else:
            getattr(model, name)(size)
        model.check()
