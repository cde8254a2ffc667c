"""`--shard` and `merge`: the shards of a stage, put together, are what it writes without them."""

import json
import shutil
from pathlib import Path

import pytest

from cli.stored_run import command, write_run, written_by
from conftest import Finished
from sweetrl.records import read_card, shard_path

OF = 3
MAPPED = ("rollout", "score", "candidates", "rank")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"))


def sharded(sweetrl, words: list[str], path: Path, of: int = OF) -> list[Path]:
    """Run the command in shards; their files."""
    for index in range(of, 0, -1):  # in any order
        finished = sweetrl(*words, "--shard", f"{index}/{of}")
        assert finished.code == 0, finished.err
    return [shard_path(path, f"{index}/{of}") for index in range(1, of + 1)]


def merged(sweetrl, shards: list[Path], output: Path, *more: str) -> Finished:
    return sweetrl("merge", *map(str, shards), "-o", str(output), *more)


def complaint(finished: Finished) -> str:
    assert finished.code == 2, finished
    [line] = finished.err.strip().splitlines()
    return line


@pytest.mark.parametrize("name", MAPPED)
def test_merged_shards_are_the_file_of_the_whole_run_byte_for_byte(
    sweetrl, small: Path, tmp_path: Path, name: str
) -> None:
    whole = sweetrl(*command(name, small, tmp_path / "whole"))
    assert whole.code == 0, whole.err
    shards = sharded(
        sweetrl, command(name, small, tmp_path / "x.jsonl"), written_by(name, tmp_path / "x.jsonl")
    )
    sizes = [len(shard.read_bytes().splitlines()) for shard in shards]
    assert max(sizes) - min(sizes) <= 1
    assert merged(sweetrl, shards[::-1], tmp_path / "merged.jsonl").code == 0
    expected = written_by(name, tmp_path / "whole")
    assert (tmp_path / "merged.jsonl").read_bytes() == expected.read_bytes()
    card, wanted = read_card(tmp_path / "merged.jsonl"), read_card(expected)
    assert (card.command, card.config, card.sha256, card.shard) == (
        wanted.command,
        wanted.config,
        wanted.sha256,
        wanted.shard,
    )


def test_a_rollout_with_many_dialogues_at_a_time_merges_into_the_order_of_one_at_a_time(
    sweetrl, small: Path, tmp_path: Path
) -> None:
    words = [*command("rollout", small, tmp_path), "--concurrency", "16"]
    shards = sharded(sweetrl, words, tmp_path / "episodes.jsonl")
    assert merged(sweetrl, shards, tmp_path / "merged.jsonl").code == 0
    assert sweetrl(*command("rollout", small, tmp_path / "whole")).code == 0
    assert (tmp_path / "merged.jsonl").read_bytes() == (tmp_path / "whole/episodes.jsonl").read_bytes()


def test_credit_of_shards_is_the_credit_of_all(sweetrl, small: Path, tmp_path: Path) -> None:
    words = ["credit", str(small / "episodes.jsonl"), "--tasks", str(small / "tasks.jsonl")]
    words += ["--critic", "scripted:overlap", "--concurrency", "1", "--show", "0", "-q"]
    assert sweetrl(*words, "-o", str(tmp_path / "whole.jsonl")).code == 0
    shards = sharded(sweetrl, [*words, "-o", str(tmp_path / "x.jsonl")], tmp_path / "x.jsonl")
    assert merged(sweetrl, shards, tmp_path / "merged.jsonl").code == 0
    assert (tmp_path / "merged.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_critic_that_is_learned_takes_no_shard(sweetrl, small: Path, tmp_path: Path) -> None:
    words = ["credit", str(small / "episodes.jsonl"), "--verdicts", str(small / "verdicts.jsonl")]
    said = complaint(sweetrl(*words, "--learn", "--shard", "1/2", "-o", str(tmp_path / "x.jsonl")))
    assert "leave out --shard or name a --critic" in said


def test_an_evaluation_in_shards_ends_in_the_metrics_of_a_whole_one(sweetrl, tmp_path: Path) -> None:
    words = ["evaluate", "--tasks", "mini-backend:test:6", "--agent", "scripted:curious"]
    words += ["--collaborator", "colleague", "--attempts", "2", "--turn-limit", "3", "-q"]
    folder = tmp_path / "run"
    episodes = sharded(sweetrl, [*words, "-o", str(folder)], folder / "episodes.jsonl", of=2)
    assert (folder / "metrics.2-of-2.json").exists()
    assert merged(sweetrl, episodes, folder / "episodes.jsonl").code == 0
    verdicts = [shard_path(folder / "verdicts.jsonl", f"{index}/2") for index in (1, 2)]
    assert merged(sweetrl, verdicts, folder / "verdicts.jsonl").code == 0
    before = (folder / "episodes.jsonl").read_bytes(), (folder / "verdicts.jsonl").read_bytes()
    assert sweetrl(*words, "-o", str(folder)).code == 0
    assert before == ((folder / "episodes.jsonl").read_bytes(), (folder / "verdicts.jsonl").read_bytes())
    assert sweetrl(*words, "-o", str(tmp_path / "whole")).code == 0
    found, whole = (json.loads((each / "metrics.json").read_bytes()) for each in (folder, tmp_path / "whole"))
    assert found == whole


# ---------------------------------------------------------------- what is refused


@pytest.fixture(scope="module")
def shards(small: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    from click.testing import CliRunner  # the fixture `sweetrl` is made anew for each test
    from typer.main import get_command

    from sweetrl.cli.commands import app

    folder = tmp_path_factory.mktemp("shards")
    for index in (1, 2, 3):
        words = [*command("rollout", small, folder), "--shard", f"{index}/3"]
        assert CliRunner().invoke(get_command(app), words).exit_code == 0
    return [folder / f"episodes.{index}-of-3.jsonl" for index in (1, 2, 3)]


@pytest.fixture
def copies(shards: list[Path], tmp_path: Path) -> list[Path]:
    for file in shards[0].parent.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path / file.name)
    return [tmp_path / shard.name for shard in shards]


def test_a_missing_shard_is_named(sweetrl, copies: list[Path], tmp_path: Path) -> None:
    said = complaint(merged(sweetrl, [copies[0], copies[2]], tmp_path / "merged.jsonl"))
    assert "shards are missing: 2/3; give all 3" in said
    assert not (tmp_path / "merged.jsonl").exists()


def test_a_shard_that_is_given_twice_is_named(sweetrl, copies: list[Path], tmp_path: Path) -> None:
    said = complaint(merged(sweetrl, [*copies, copies[1]], tmp_path / "merged.jsonl"))
    assert "shard 2/3 is there twice" in said


def test_a_shard_that_is_not_complete_is_named(
    sweetrl, copies: list[Path], small: Path, tmp_path: Path
) -> None:
    lines = copies[1].read_bytes().splitlines(keepends=True)
    card = json.loads(copies[1].with_name("episodes.2-of-3.run.json").read_bytes())
    card |= {"finished": None, "records": None, "sha256": None}
    copies[1].with_name("episodes.2-of-3.run.json").write_text(json.dumps(card))
    copies[1].write_bytes(b"".join(lines[:-2]))
    said = complaint(merged(sweetrl, copies, tmp_path / "merged.jsonl"))
    assert "shard 2/3 is not complete; rerun its command, then merge" in said
    assert sweetrl(*command("rollout", small, tmp_path), "--shard", "2/3").code == 0
    assert merged(sweetrl, copies, tmp_path / "merged.jsonl").code == 0


@pytest.mark.parametrize("damage", ["lost", "doubled", "changed"])
def test_a_shard_that_was_changed_leaves_nothing_behind(
    sweetrl, copies: list[Path], tmp_path: Path, damage: str
) -> None:
    lines = copies[2].read_bytes().splitlines(keepends=True)
    damaged = {
        "lost": lines[:-1],
        "doubled": [*lines[:-1], lines[0]],
        "changed": [lines[0].replace(b"curious", b"furious"), *lines[1:]],
    }
    copies[2].write_bytes(b"".join(damaged[damage]))
    said = complaint(merged(sweetrl, copies, tmp_path / "merged.jsonl"))
    assert "episodes.3-of-3.jsonl" in said
    assert "a second record for" in said if damage == "doubled" else "not what its run card says" in said
    assert not [each for each in tmp_path.iterdir() if "merg" in each.name]


def test_shards_of_different_runs_are_told_apart_by_the_setting_that_differs(
    sweetrl, copies: list[Path], small: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    assert sweetrl(*command("rollout", small, other), "--seed", "5", "--shard", "2/3").code == 0
    said = complaint(
        merged(sweetrl, [copies[0], other / "episodes.2-of-3.jsonl", copies[2]], tmp_path / "m.jsonl")
    )
    assert "belongs to another run" in said
    assert "seed is 5, not 0" in said


def test_a_file_that_is_no_shard_is_refused(sweetrl, small: Path, tmp_path: Path) -> None:
    assert sweetrl(*command("rollout", small, tmp_path / "whole")).code == 0
    said = complaint(merged(sweetrl, [tmp_path / "whole/episodes.jsonl"], tmp_path / "m.jsonl"))
    assert "is not a shard" in said


def test_a_merge_is_repeated_without_harm_but_replaces_no_other_file(
    sweetrl, copies: list[Path], tmp_path: Path
) -> None:
    output = tmp_path / "merged.jsonl"
    assert merged(sweetrl, copies, output).code == 0
    whole = output.read_bytes()
    assert merged(sweetrl, copies, output).code == 0
    output.write_bytes(whole[:-10])
    assert "exists already" in complaint(merged(sweetrl, copies, output))
    assert merged(sweetrl, copies, output, "--force").code == 0
    assert output.read_bytes() == whole


def test_failed_records_are_merged_counted_and_redone_by_the_stage_without_shards(
    sweetrl, small: Path, tmp_path: Path
) -> None:
    """The card stays unfinished, as that of a whole run with failures."""
    folder = tmp_path / "run"
    words = command("rollout", small, folder)
    shards = sharded(sweetrl, words, folder / "episodes.jsonl")
    assert merged(sweetrl, shards, tmp_path / "sound.jsonl").code == 0
    path, card_file = shards[0], folder / "episodes.1-of-3.run.json"
    first, *others = path.read_bytes().splitlines(keepends=True)
    episode = json.loads(first) | {"ending": "failed", "answer": None}
    episode["failure"] = {"stage": "agent", "kind": "timeout", "message": "late"}
    path.write_bytes(b"".join([json.dumps(episode).encode() + b"\n", *others]))
    import hashlib

    card = json.loads(card_file.read_bytes())
    card_file.write_text(
        json.dumps(card | {"finished": None, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()})
    )
    finished = merged(sweetrl, shards, folder / "episodes.jsonl", "--json")
    assert (finished.code, json.loads(finished.out)["failed_records"]) == (0, 1)
    assert read_card(folder / "episodes.jsonl").finished is None
    again = sweetrl(*words)
    assert again.code == 0, again.err
    lines = (folder / "episodes.jsonl").read_bytes().splitlines()
    assert sorted(lines) == sorted((tmp_path / "sound.jsonl").read_bytes().splitlines())
