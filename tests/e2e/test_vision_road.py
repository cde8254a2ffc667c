"""The road of the critic that sees, with a real browser: dialogues, pairs, training, ranking, credit, best of N."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from learning import tiny_vision
from models.hostile_server import HostileServer, in_thread
from sweetrl.browser import WebAssets, find_browser
from sweetrl.domains.sources import read_tasks
from sweetrl.errors import UsageError
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


@pytest.fixture
def done(sweetrl: Any) -> Any:
    def run(*words: object) -> dict[str, Any]:
        ended = sweetrl(*words, "--json")
        assert ended.code == 0, (words, ended.err)
        found: dict[str, Any] = json.loads(ended.out.splitlines()[-1]) if ended.out.strip() else {}
        return found

    return run


def test_a_critic_that_sees_is_trained_and_used_like_any_other(done, designers, tasks, tmp_path) -> None:
    run = tmp_path / "run"
    talk = ("--tasks", tasks, "--agent", designers, "--collaborator", "designer", "--turn-limit", 2)
    done("rollout", *talk, "--attempts", 2, "--concurrency", 1, "-o", run)
    episodes = ("--episodes", run / "episodes.jsonl")
    done("score", "--tasks", tasks, *episodes, "-o", run / "verdicts.jsonl", "--no-check")
    done(
        "pairs",
        *episodes,
        "--verdicts",
        run / "verdicts.jsonl",
        "--rule",
        "frontend",
        "-o",
        run / "pairs.jsonl",
    )
    assert {pair.task_id for pair in read_records(run / "pairs.jsonl", EpisodePair)} == {"red", "blue"}

    critic = tmp_path / "critic"
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Be kind.")
    model = tiny_vision.save("llava", tmp_path / "model")
    taught = done(
        *(
            "train",
            "critic",
            "--kind",
            "regression",
            "--vision",
            "--model",
            model,
            "--tasks",
            tasks,
            *episodes,
        ),
        *(
            "--pairs",
            run / "pairs.jsonl",
            "--agent-prompt",
            prompt,
            "--learning-rate",
            "1e-2",
            "--epochs",
            10,
        ),
        *("-o", critic),
    )
    assert taught["metrics"]["loss"] < 0.6
    # The references as files: made once, the same pictures that the scorer saw.
    seen = {path.read_bytes() for path in (critic / "references").glob("*.png")}
    assert len(seen) == 2
    assert seen <= {path.read_bytes() for path in (run / "screenshots").glob("*.png")}

    candidates, ranked = run / "candidates.jsonl", run / "ranked.jsonl"
    done(
        "candidates",
        *episodes,
        "--tasks",
        tasks,
        "--agent",
        designers,
        "--kind",
        "frontend",
        "--n",
        2,
        "-o",
        candidates,
    )
    judged = ("--critic", critic, "--tasks", tasks)
    done("rank", *judged, *episodes, "--candidates", candidates, "-o", ranked)
    sets = list(read_records(ranked, CandidateSet))
    assert sets
    assert all(each.advantages is not None and each.critic.startswith("critic:critic@") for each in sets)

    done("credit", *judged, "--dialogues", run / "episodes.jsonl", "-o", run / "credit.jsonl")
    credited = list(read_records(run / "credit.jsonl", TurnCredit))
    sums = Counter[str]()
    for each in credited:
        assert each.advantage is not None
        sums[each.episode_id] += each.advantage  # type: ignore[assignment]
    for pair in read_records(run / "pairs.jsonl", EpisodePair):
        assert sums[pair.chosen] > sums[pair.rejected]

    done("rollout", *talk, "--best-of", 2, "--critic", critic, "-o", tmp_path / "best")
    assert len(list(read_records(tmp_path / "best" / "episodes.jsonl", Episode))) == 2


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
        *(
            "train",
            "critic",
            "--model",
            tmp_path,
            "--tasks",
            "mini-frontend:train:1",
            "-o",
            tmp_path / "critic",
            *words,
        ),
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
