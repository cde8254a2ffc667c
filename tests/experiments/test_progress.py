"""How far a command is, as it tells the run that started it."""

from pathlib import Path

import pytest

from sweetrl.experiments import progress


def test_a_command_tells_who_asked_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "progress"
    assert progress.told(path) == 0.0
    monkeypatch.setenv(progress.VARIABLE, str(path))
    tell = progress.teller()
    assert tell is not None
    tell(1, 4)
    assert progress.told(path) == 0.25
    tell(4, 4)  # the end is told however soon it comes
    assert progress.told(path) == 1.0


def test_what_a_command_waits_for_is_told_beside_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "progress"
    assert progress.trouble(path) == ""
    monkeypatch.setenv(progress.VARIABLE, str(path))
    tell = progress.teller()
    assert tell is not None
    tell(4, 4, "no connection to http://host/v1, retrying")
    assert (progress.told(path), progress.trouble(path)) == (1.0, "no connection to http://host/v1, retrying")
    tell(4, 4)
    assert progress.trouble(path) == ""


def test_nobody_is_told_who_did_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    assert progress.teller() is None


@pytest.mark.parametrize("content", ["", "3", "a b", "1 0", "1 2 3", "\x00"])
def test_a_line_that_is_not_whole_is_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "progress").write_text(content)
    assert progress.told(tmp_path / "progress") == 0.0


def test_rollouts_and_bars_tell_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweetrl) -> None:
    path = tmp_path / "progress"
    monkeypatch.setenv(progress.VARIABLE, str(path))
    tasks = "mini-backend:test:3"
    ended = sweetrl(
        "rollout",
        "--tasks",
        tasks,
        "--agent",
        "mini-random",
        "--collaborator",
        "colleague",
        "-o",
        tmp_path,
        "-q",
    )
    assert ended.code == 0, ended.err
    assert path.read_text().split()[1] == "300"  # in hundredths
    path.unlink()
    ended = sweetrl(
        *(
            "score",
            "--tasks",
            tasks,
            "--episodes",
            tmp_path / "episodes.jsonl",
            "-o",
            tmp_path / "v.jsonl",
            "-q",
        )
    )
    assert ended.code == 0, ended.err
    assert path.read_text() == "3 3\n"
