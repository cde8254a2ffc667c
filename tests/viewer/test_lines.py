"""Many lines decoded at once give the rows, places and losses that one at a time gives."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from report.samples import credit, episode
from sweetrl.viewer.lines import TurnBlock, decode_line, decode_lines, turns_by_episode

EPISODE = msgspec.json.encode(episode("a"))
SURROGATE = EPISODE.replace(b"Please", rb"\ud800Please")
ODD = [b"", b"  ", b"{", b"[]", b"\xff", b"null", EPISODE + EPISODE]


@given(st.lists(st.sampled_from([EPISODE, EPISODE, EPISODE, SURROGATE, *ODD]), min_size=1, max_size=6))
@settings(deadline=None)
def test_lines_are_decoded_as_if_one_at_a_time(lines: list[bytes]) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    found, lost = decode_lines("episode", whole, 1000)
    rows = [decode_line("episode", line) for line in lines]
    assert [row for row, _, _ in found] == [row for row in rows if row is not None]
    for row, position, length in found:
        assert decode_line("episode", whole[position - 1000 :][:length]) == row
    assert lost == sum(row is None and bool(line.strip()) for row, line in zip(rows, lines, strict=True))


def test_turns_that_follow_each_other_are_one_block_with_its_worst_turn() -> None:
    records = [*credit("a", [0.4, -0.5, 0.1]), *credit("b", [0.2])]
    lines = [msgspec.json.encode(each) for each in records]
    found, _ = decode_lines("credit", b"\n".join(lines), 0)
    first, second = turns_by_episode(found)
    assert first == TurnBlock("a#0", 0, len(b"\n".join(lines[:3])), {"critic:c@1": (-0.5, 1)})
    assert second == TurnBlock("b#0", first.length + 1, len(lines[3]), {"critic:c@1": (0.2, 0)})
