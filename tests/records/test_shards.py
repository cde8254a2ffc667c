"""Shards: which records are whose, and files that end up in the order of the input."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.errors import ConfigError, UsageError
from sweetrl.records import (
    ALL,
    Part,
    RecordLog,
    Shard,
    open_log,
    part_of,
    read_card,
    read_records,
    shard_path,
)
from sweetrl.types import EpisodePair

IDS = [f"a{number}>b" for number in range(7)]


def opened(path: Path, part: Part) -> RecordLog[EpisodePair]:
    """A file in which records with a margin below zero have failed."""
    return open_log(
        path,
        EpisodePair,
        command="pairs",
        config={},
        identity=lambda pair: pair.id,
        settled=lambda pair: pair.margin >= 0,
        part=part,
    )


def append(log: RecordLog[EpisodePair], identity: str, margin: float = 1.0) -> None:
    chosen = identity.partition(">")[0]
    log.append(identity, EpisodePair(task_id="t", chosen=chosen, rejected="b", margin=margin))


@given(total=st.integers(1, 200), of=st.integers(1, 200))
def test_shards_are_all_records_in_order_and_differ_by_one_in_size(total: int, of: int) -> None:
    shards = [Shard(index, of, total) for index in range(1, of + 1)]
    assert [place for shard in shards for place in shard.places] == list(range(total))
    sizes = {len(shard.places) for shard in shards}
    assert max(sizes) - min(sizes) <= 1


def test_the_part_of_a_shard_has_its_ids_alone() -> None:
    part = part_of(iter(IDS), "2/3")
    assert (part.total, list(part.ids), part.shard) == (2, IDS[2:4], Shard(2, 3, 7))
    assert [part.has(each) for each in IDS] == [False, False, True, True, False, False, False]


def test_without_a_shard_all_records_belong_to_the_part() -> None:
    part = part_of(iter(IDS), None)
    assert (part.total, part.shard, part.has("whatever"), part.file(Path("x.jsonl"))) == (
        7,
        None,
        True,
        Path("x.jsonl"),
    )


@pytest.mark.parametrize("wrong", ["", "0/3", "4/3", "1", "1/0", "a/b", "1/3/5", "-1/3", "1.5/3"])
def test_a_shard_that_is_none_is_refused_with_an_example(wrong: str) -> None:
    with pytest.raises(UsageError, match="for example 1/8"):
        part_of(IDS, wrong)


def test_more_shards_than_records_are_refused() -> None:
    with pytest.raises(UsageError, match="there are only 7 records; use fewer shards"):
        part_of(IDS, "1/8")


@pytest.mark.parametrize(
    ("path", "named"),
    [("a/x.jsonl", "a/x.3-of-8.jsonl"), ("metrics.json", "metrics.3-of-8.json"), ("x", "x.3-of-8")],
)
def test_the_file_of_a_shard_is_named_after_it(path: str, named: str) -> None:
    assert shard_path(Path(path), "3/8") == Path(named)


def test_a_finished_shard_has_its_records_in_the_order_of_the_input(tmp_path: Path) -> None:
    part = part_of(IDS, "1/2")
    with opened(tmp_path / "x.jsonl", part) as log:
        for identity in reversed(part.ids):
            append(log, identity)
        log.finish()
    path = tmp_path / "x.1-of-2.jsonl"
    assert [each.id for each in read_records(path, EpisodePair)] == IDS[:3]
    card = read_card(path)
    assert (card.shard, card.records) == (Shard(1, 2, 7), 3)
    assert card.finished is not None


def test_records_that_came_before_a_kill_are_arranged_with_the_others(tmp_path: Path) -> None:
    part = part_of(IDS, "1/2")
    with opened(tmp_path / "x.jsonl", part) as log:
        append(log, part.ids[2])
    with opened(tmp_path / "x.jsonl", part) as log:
        assert [log.skips(each) for each in IDS] == [False, False, True, True, True, True, True]
        for identity in part.ids[:2]:
            append(log, identity)
        log.finish()
    assert [each.id for each in read_records(tmp_path / "x.1-of-2.jsonl", EpisodePair)] == IDS[:3]


def test_a_record_that_failed_takes_its_place_when_it_is_done_again(tmp_path: Path) -> None:
    part, path = part_of(IDS, "1/2"), tmp_path / "x.1-of-2.jsonl"
    with opened(tmp_path / "x.jsonl", part) as log:
        for identity in reversed(part.ids):
            append(log, identity, -1.0 if identity == part.ids[0] else 1.0)
        log.arrange()
    failed = read_card(path)
    assert (failed.finished, failed.sha256 is None, failed.records) == (None, False, 3)
    assert [each.margin for each in read_records(path, EpisodePair)] == [-1.0, 1.0, 1.0]
    with opened(tmp_path / "x.jsonl", part) as log:
        assert read_card(path).sha256 is None
        append(log, part.ids[0])
        log.finish()
    assert [(each.id, each.margin) for each in read_records(path, EpisodePair)] == [
        (each, 1.0) for each in part.ids
    ]
    assert read_card(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_shard_that_lacks_records_is_not_sealed(tmp_path: Path) -> None:
    part = part_of(IDS, "1/2")
    with opened(tmp_path / "x.jsonl", part) as log:
        append(log, part.ids[1])
        log.arrange()
    assert read_card(tmp_path / "x.1-of-2.jsonl").sha256 is None


@pytest.mark.parametrize(("count", "sealed"), [(6, False), (7, True)])
def test_a_file_of_all_is_sealed_once_all_are_in_whether_they_failed_or_not(
    tmp_path: Path, count: int, sealed: bool
) -> None:
    path = tmp_path / "x.jsonl"
    with opened(path, part_of(IDS, None)) as log:
        for identity in IDS[:count]:
            append(log, identity, -1.0)
        log.arrange()
    card = read_card(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert (card.finished, card.records, card.sha256) == (None, *((7, digest) if sealed else (None, None)))


def test_a_shard_of_fewer_records_is_not_gone_on_with(tmp_path: Path) -> None:
    """As when a rollout is repeated with more attempts: other dialogues belong to the shard then."""
    with opened(tmp_path / "x.jsonl", part_of(IDS[:4], "1/2")) as log:
        append(log, IDS[0])
    with pytest.raises(ConfigError, match="holds another part of a run"):
        opened(tmp_path / "x.jsonl", part_of(IDS, "1/2"))


def test_a_file_of_all_records_stays_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    with opened(tmp_path / "x.jsonl", ALL) as log:
        for identity in reversed(IDS):
            append(log, identity)
        log.finish()
    assert [each.id for each in read_records(tmp_path / "x.jsonl", EpisodePair)] == IDS[::-1]
    assert b"shard" not in (tmp_path / "x.run.json").read_bytes()
