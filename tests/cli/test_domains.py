"""Domains on the command line: chats of one's own, `--domain`, and domains that are not there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweetrl.domains import registry
from sweetrl.domains.sources import load_tasks, parse_task
from sweetrl.errors import UsageError
from sweetrl.records import read_records
from sweetrl.types import EpisodePair, TurnCredit, TurnPair

Sweetrl = Callable[..., Any]

ASK = {"role": "user", "content": "Book me a train."}
PARCELS = """
from sweetrl.domains.domain import Domain, Labels, Prompts
from sweetrl.domains.scoring import plain_scoring
from sweetrl.prompts import Prompt
from sweetrl.types import Secret, Verdict, digest


class ParcelSecret(Secret, frozen=True):
    price: str


class Scorer:
    name = "parcels-exact/1"

    async def score(self, task, episode):
        right = episode.answer == task.secret.price
        return Verdict(
            task_id=task.id, episode_id=episode.id, scorer=self.name, answer_digest=digest(episode.answer),
            reward=float(right), success=right,
        )


def text(name, fields=""):
    return Prompt(f"{name} of parcels {fields}", source=f"{name}-parcels")


PARCELS = Domain(
    name="parcels",
    secret=ParcelSecret,
    reference=lambda secret: secret.price,
    prompts=Prompts(
        agent=text("agent"),
        single_turn=text("single"),
        collaborator=text("collaborator", "{hidden_information} {dialogue_history}"),
        privileged=text("secret", "{hidden_information}"),
    ),
    labels=Labels(agent="Clerk", reward="right prices"),
    scoring=plain_scoring(lambda options: Scorer()),
)
"""


def chats(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "chats.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def chat(answer: str, **more: Any) -> dict[str, Any]:
    return {"messages": [ASK, {"role": "assistant", "content": answer}], **more}


@pytest.fixture
def imported(sweetrl: Sweetrl, tmp_path: Path) -> Path:
    log = chats(
        tmp_path,
        chat("To Rome", reference="a ticket to Rome", outcome=1),
        chat("Nowhere", reference="a ticket to Rome", outcome=False),
    )
    assert sweetrl("episodes", "import", log, "-o", tmp_path / "run").code == 0
    return tmp_path / "run"


def test_chats_are_paired_by_their_outcomes_without_a_scorer(sweetrl: Sweetrl, imported: Path) -> None:
    files = ("--episodes", imported / "episodes.jsonl", "--verdicts", imported / "verdicts.jsonl")
    ended = sweetrl("pairs", *files, "-o", imported / "pairs.jsonl")
    assert ended.code == 0, ended.err
    [pair] = read_records(imported / "pairs.jsonl", EpisodePair)
    assert pair.chosen.endswith("#0")
    assert pair.rejected.endswith("#1")


def test_the_turns_of_chats_get_credit_from_a_critic_that_reads_the_reference(
    sweetrl: Sweetrl, imported: Path
) -> None:
    files = ("--dialogues", imported / "episodes.jsonl", "--tasks", imported / "tasks.jsonl")
    ended = sweetrl("credit", *files, "--critic", "scripted:overlap", "-o", imported / "credit.jsonl")
    assert ended.code == 0, ended.err
    credit = read_records(imported / "credit.jsonl", TurnCredit)
    assert {each.episode_id[-2:]: each.advantage for each in credit} == {"#0": 1.0, "#1": 0.0}


def test_a_log_of_chats_gets_credit_without_an_import(sweetrl: Sweetrl, tmp_path: Path) -> None:
    log = chats(tmp_path, chat("To Rome", reference="Rome"))
    ended = sweetrl(
        "credit", "--dialogues", log, "--critic", "scripted:overlap", "-o", tmp_path / "credit.jsonl"
    )
    assert ended.code == 0, ended.err
    [credit] = read_records(tmp_path / "credit.jsonl", TurnCredit)
    assert credit.advantage == 1.0


def test_chats_are_not_scored(sweetrl: Sweetrl, imported: Path) -> None:
    files = ("--tasks", imported / "tasks.jsonl", "--episodes", imported / "episodes.jsonl")
    ended = sweetrl("score", *files, "-o", imported / "other.jsonl")
    assert ended.code == 2
    assert "chat tasks have no scorer" in ended.err
    assert not (imported / "other.jsonl").exists()


def test_a_bad_chat_is_one_line_and_exit_code_2(sweetrl: Sweetrl, tmp_path: Path) -> None:
    log = chats(tmp_path, chat("Fine"), {"messages": [ASK]})
    ended = sweetrl("episodes", "import", log, "-o", tmp_path / "run")
    assert ended.code == 2
    [line] = ended.err.strip().splitlines()
    assert f"{log}:2: messages: the assistant says nothing" in line


def test_a_domain_that_is_not_installed_is_named_with_the_next_step(sweetrl: Sweetrl, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "a", "domain": "parcels", "request": "?", "secret": {"price": "7"}}\n')
    ended = sweetrl("tasks", "show", tasks)
    assert ended.code == 2
    assert f"{tasks}:1: the domain 'parcels' is not installed; install the package" in ended.err
    assert "--domain MODULE:OBJECT" in ended.err


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str | Path, ...]:
    """The options for tasks of a domain that is a module of one's own."""
    module = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(PARCELS)
    monkeypatch.syspath_prepend(tmp_path)
    tasks = tmp_path / "raw.jsonl"
    tasks.write_text('{"request": "What does it cost?", "secret": {"price": "7"}}\n')
    return ("--tasks", tasks, "--domain", f"{module}:PARCELS")


@pytest.fixture
def evaluated(sweetrl: Sweetrl, own: tuple[str | Path, ...], tmp_path: Path) -> Path:
    players = ("--agent", "scripted:curious", "--collaborator", "scripted:unsure")
    ended = sweetrl("evaluate", *own, *players, "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    assert "right prices, %" in ended.out
    return tmp_path / "run"


def test_a_domain_of_ones_own_module_goes_from_rollout_to_metrics(
    sweetrl: Sweetrl, own: tuple[str | Path, ...], evaluated: Path
) -> None:
    assert '"scorer":"parcels-exact/1"' in (evaluated / "verdicts.jsonl").read_text()
    ended = sweetrl("tasks", "show", "--secret", own[1], *own[2:])
    assert ended.code == 0
    assert "reference" in ended.out


def test_records_on_tasks_of_ones_own_are_selected(
    sweetrl: Sweetrl, own: tuple[str | Path, ...], evaluated: Path, tmp_path: Path
) -> None:
    ended = sweetrl("select", evaluated / "episodes.jsonl", *own, "-o", tmp_path / "few")
    assert ended.code == 0, ended.err
    assert "1 records on 1 tasks" in ended.err


def test_a_report_shows_what_was_wanted_in_tasks_of_ones_own(
    sweetrl: Sweetrl, own: tuple[str | Path, ...], evaluated: Path, tmp_path: Path
) -> None:
    ended = sweetrl("report", evaluated, *own, "-o", tmp_path / "report.html")
    assert ended.code == 0, ended.err
    assert "right prices" in (tmp_path / "report.html").read_text()


def test_turns_of_ones_own_tasks_are_paired(
    sweetrl: Sweetrl, own: tuple[str | Path, ...], evaluated: Path, tmp_path: Path
) -> None:
    stored = ("--episodes", evaluated / "episodes.jsonl")
    drawn, ranked, paired = (tmp_path / f"{name}.jsonl" for name in ("drawn", "ranked", "paired"))
    agent = ("--agent", "scripted:curious", "--n", "2", *own[2:])
    assert sweetrl("candidates", *stored, *agent, "-o", drawn).code == 0
    assert sweetrl("rank", *own, *stored, "--candidates", drawn, "--critic", "length", "-o", ranked).code == 0
    ended = sweetrl("turn-pairs", *own, *stored, "--ranked", ranked, "-o", paired)
    assert ended.code == 0, ended.err
    assert {pair.task_id for pair in read_records(paired, TurnPair)} == {"raw-0"}


def test_a_critic_is_trained_on_tasks_of_ones_own(
    sweetrl: Sweetrl, own: tuple[str | Path, ...], evaluated: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    files = ("--episodes", evaluated / "episodes.jsonl", "--pairs", tmp_path / "pairs.jsonl")
    ended = sweetrl("train", "critic", *own, *files, "--model", "mini", "-o", tmp_path / "critic")
    assert ended.code == 2
    assert f"{tmp_path / 'pairs.jsonl'}: no such file" in ended.err  # the tasks were read before


OUT_OF_RANGE = 'labels=Labels(agent="Clerk", reward="right prices"),\n    answer=lambda said: said[9],'
WRONG = {
    "the scorer breaks": (
        "right = ep",
        "1 / 0; right = ep",
        "raised ZeroDivisionError: division by zero (",
        "fix",
    ),
    "the rule for answers breaks": (
        'labels=Labels(agent="Clerk", reward="right prices"),',
        OUT_OF_RANGE,
        "the function `answer` of the domain parcels raised IndexError",
        "rerun the same command",
    ),
    "a reward is text": (
        "float(right)",
        '"good"',
        "Expected `float | null`, got `str` - at `$.reward`",
        "fix",
    ),
    "a verdict says nothing": (
        "float(right)",
        "None",
        "gave neither a reward nor a failure",
        "fix the scorer",
    ),
    "a scorer has a name of its own": (
        '"parcels-exact/1"',
        '"exact/1"',
        "needs a name such as",
        "parcels-exact/1",
    ),
    "a secret is no Secret": (
        "secret=ParcelSecret",
        "secret=dict",
        "the secret of the domain",
        "sweetrl.Secret",
    ),
}


@pytest.mark.parametrize(("old", "new", "reason", "step"), WRONG.values(), ids=WRONG)
def test_a_mistake_in_a_domain_of_ones_own_is_one_line(
    sweetrl: Sweetrl, own: tuple[str | Path, ...], tmp_path: Path, old: str, new: str, reason: str, step: str
) -> None:
    assert old in PARCELS
    (tmp_path / f"{str(own[3]).partition(':')[0]}.py").write_text(PARCELS.replace(old, new))
    players = ("--agent", "scripted:curious", "--collaborator", "scripted:unsure", "--quiet")
    ended = sweetrl("evaluate", *own, *players, "-o", tmp_path / "run")
    assert ended.code == 2
    line = ended.err.splitlines()[-1]
    assert line.startswith("error: ")
    assert reason in line
    assert step in line


def test_a_domain_named_by_its_file_is_told_how_to_name_it(sweetrl: Sweetrl) -> None:
    ended = sweetrl("tasks", "show", "mini-backend:test:1", "--domain", "prices.py:PRICE")
    assert ended.code == 2
    assert ended.err == "error: prices.py:PRICE: names a file; write prices:PRICE\n"


def test_a_script_that_is_misspelt_is_told(sweetrl: Sweetrl, tmp_path: Path) -> None:
    tasks = ("--tasks", "mini-backend:test:1", "-o", tmp_path / "run")
    for players, hint in {
        (
            "--agent",
            "mini-orcle",
            "--collaborator",
            "colleague",
        ): "no agent 'mini-orcle' for backend tasks; did you mean 'mini-oracle'?",
        (
            "--agent",
            "mini-oracle",
            "--collaborator",
            "coleague",
        ): "no collaborator 'coleague' for backend tasks; did you mean 'colleague'?",
    }.items():
        ended = sweetrl("evaluate", *tasks, *players)
        assert (ended.code, ended.err) == (2, f"error: there is {hint}\n")


def test_a_generator_that_repeats_an_id_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = parse_task({"id": "a", "domain": "chat", "request": "?", "secret": {}})
    monkeypatch.setattr(registry, "find_generator", lambda name: lambda split, count, seed: iter([twice] * 2))
    with pytest.raises(UsageError, match="two tasks with the id 'a'"):
        load_tasks("mini-own:test:2")
