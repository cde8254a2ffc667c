"""The pipeline of the critic that sees, with a real browser: dialogues, pairs, training, ranking, credit, best of N."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from learning import tiny_vision
from models.hostile_server import HostileServer, in_thread
from sweetrl.browser import WebAssets, find_browser
from sweetrl.cli.main import run
from sweetrl.domains.sources import read_tasks
from sweetrl.errors import UsageError
from sweetrl.learning.checkpoints import read_training_card
from sweetrl.records import read_records
from sweetrl.types import CandidateSet, Episode, EpisodePair, TurnCredit

SORRY = "<html><body><h1>Sorry</h1></body></html>"

# Old versions of the same layer are deprecated by libraries that load each other.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


@pytest.fixture(scope="module", autouse=True)
def _browser() -> None:
    pytest.importorskip("playwright", reason="showing pages needs the extra `browser`")
    pytest.importorskip("torch", reason="training needs the extra `train`")
    try:
        find_browser()
    except UsageError as error:
        pytest.skip(str(error))
    if not (WebAssets().folder / "tailwindcss").is_dir():
        pytest.skip("no Tailwind CSS: scripts/install-web-assets puts it there")


def page(colour: str, *, footer: bool) -> str:
    below = '<p style="background:black">.</p>' if footer else ""
    return f'<html><body style="background:{colour}"><h1>Shop</h1>{below}</body></html>'


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short pages, because the tiny tokenizer makes a token of nearly every letter."""
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    lines = [
        {"id": colour, "problem_description": f"A shop {at}.", "ground_truth": page(colour, footer=True)}
        for at, colour in enumerate(("red", "blue"))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


class Designers:
    """Every other dialogue on a request gets the colour right; the others apologise and go on apologising."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def reply(self, body: dict[str, Any], _: int) -> str:
        spoken = [message["content"] for message in body["messages"] if message["role"] != "system"]
        if len(spoken) == 1:
            self._asked[spoken[0]] += 1
            sorry = self._asked[spoken[0]] % 2 == 0
        else:
            sorry = "Sorry" in spoken[1]
        colour = "red" if "0" in spoken[0] else "blue"
        return SORRY if sorry else page(colour, footer=False)


@pytest.fixture(scope="module")
def designers() -> Iterator[str]:
    with in_thread(HostileServer(reply=Designers().reply)) as server:
        yield f"openai:a@{server.url}"


def done(*words: object) -> None:
    assert run([*map(str, words), "--quiet"]) == 0, words


@pytest.fixture(scope="module")
def talk(designers: str, tasks: Path) -> tuple[object, ...]:
    return ("--tasks", tasks, "--agent", designers, "--collaborator", "designer", "--turn-limit", 2)


@pytest.fixture(scope="module")
def stored(talk: tuple[object, ...], tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with dialogues, their verdicts and their pairs."""
    folder = tmp_path_factory.mktemp("run")
    done("rollout", *talk, "--attempts", 2, "--concurrency", 1, "-o", folder)
    episodes, verdicts = ("--episodes", folder / "episodes.jsonl"), folder / "verdicts.jsonl"
    done("score", "--tasks", tasks, *episodes, "-o", verdicts, "--no-check")
    done("pairs", *episodes, "--verdicts", verdicts, "--rule", "frontend", "-o", folder / "pairs.jsonl")
    return folder


@pytest.fixture(scope="module")
def critic(stored: Path, tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("critic")
    (folder / "prompt.txt").write_text("Be kind.")
    done(
        *("train", "critic", "--kind", "regression", "--vision", "--tasks", tasks),
        *("--model", tiny_vision.save("llava", folder / "model"), "--agent-prompt", folder / "prompt.txt"),
        *("--episodes", stored / "episodes.jsonl", "--pairs", stored / "pairs.jsonl"),
        *("--learning-rate", "1e-2", "--epochs", 10, "-o", folder / "critic"),
    )
    return folder / "critic"


def test_dialogues_on_both_tasks_are_paired(stored: Path) -> None:
    assert {pair.task_id for pair in read_records(stored / "pairs.jsonl", EpisodePair)} == {"red", "blue"}


def test_a_critic_that_sees_learns_the_pairs(critic: Path) -> None:
    assert read_training_card(critic).metrics["loss"] < 0.6


def test_the_references_are_files_with_the_pictures_that_the_scorer_saw(stored: Path, critic: Path) -> None:
    seen = {path.read_bytes() for path in (critic / "references").glob("*.png")}
    assert len(seen) == 2
    assert seen <= {path.read_bytes() for path in (stored / "screenshots").glob("*.png")}


def test_a_critic_that_sees_ranks_candidates(
    designers: str, tasks: Path, stored: Path, critic: Path, tmp_path: Path
) -> None:
    candidates, ranked = tmp_path / "candidates.jsonl", tmp_path / "ranked.jsonl"
    source = ("--episodes", stored / "episodes.jsonl", "--tasks", tasks)
    done("candidates", *source, "--agent", designers, "--domain", "frontend", "--n", 2, "-o", candidates)
    done("rank", "--critic", critic, *source, "--candidates", candidates, "-o", ranked)
    sets = list(read_records(ranked, CandidateSet))
    assert sets
    assert all(each.advantages is not None and each.critic.startswith("critic:critic@") for each in sets)


def test_the_turns_of_better_dialogues_get_more_credit(
    tasks: Path, stored: Path, critic: Path, tmp_path: Path
) -> None:
    source = ("--dialogues", stored / "episodes.jsonl", "--tasks", tasks)
    done("credit", "--critic", critic, *source, "-o", tmp_path / "credit.jsonl")
    sums = Counter[str]()
    for each in read_records(tmp_path / "credit.jsonl", TurnCredit):
        assert each.advantage is not None
        sums[each.episode_id] += each.advantage  # type: ignore[assignment]
    for pair in read_records(stored / "pairs.jsonl", EpisodePair):
        assert sums[pair.chosen] > sums[pair.rejected]


def test_a_critic_that_sees_chooses_among_drafts(
    talk: tuple[object, ...], critic: Path, tmp_path: Path
) -> None:
    done("rollout", *talk, "--best-of", 2, "--critic", critic, "-o", tmp_path)
    assert len(list(read_records(tmp_path / "episodes.jsonl", Episode))) == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--vision",), "give --kind regression too"),
        (("--vision", "--kind", "regression", "--no-reference"), "leave out --vision or --no-reference"),
    ],
)
def test_what_does_not_go_with_sight_is_refused(sweetrl, tmp_path, words, complaint) -> None:
    for name in ("episodes", "pairs"):
        (tmp_path / f"{name}.jsonl").touch()
    ended = sweetrl(
        *("train", "critic", "--model", tmp_path, "--tasks", "mini-frontend:train:1"),
        *("-o", tmp_path / "critic", *words),
        *("--episodes", tmp_path / "episodes.jsonl", "--pairs", tmp_path / "pairs.jsonl"),
    )
    assert ended.code == 2
    assert complaint in ended.err
    assert not (tmp_path / "critic").exists()


def test_a_folder_of_others_stays_as_it_is(sweetrl, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("Dear")
    [task] = read_tasks("mini-frontend:train:1")
    pair = EpisodePair(task_id=task.id, chosen="a", rejected="b", margin=1.0)
    import msgspec

    (tmp_path / "pairs.jsonl").write_bytes(msgspec.json.encode(pair) + b"\n")
    (tmp_path / "episodes.jsonl").touch()
    ended = sweetrl(
        *("train", "critic", "--vision", "--kind", "regression", "--model", tmp_path),
        *("--tasks", "mini-frontend:train:1", "-o", tmp_path / "taken"),
        *("--episodes", tmp_path / "episodes.jsonl", "--pairs", tmp_path / "pairs.jsonl"),
    )
    assert (ended.code, "no training run" in ended.err) == (2, True), ended.err
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["letter.txt"]
