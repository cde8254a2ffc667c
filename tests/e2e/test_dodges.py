"""An agent that breaks its collaborator, its own endpoint or itself is scored like any other.

From the command line, over real HTTP: half of the tasks are solved, on the others the agent tries to get out of
being scored. Its success is 0.5, whatever it does.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from addition_tasks import write_addition_tasks
from conftest import Finished
from models.hostile_server import HostileServer, Trouble, in_thread
from sweetrl.dialogue.blame import EXCUSES, UNREADABLE
from sweetrl.records import read_records
from sweetrl.types import Ending, Episode, RunMetrics

Sweetrl = Callable[..., Finished]
Body = dict[str, Any]

LONG, RUDE = "please " * 430, "FORBIDDEN WORDS"
IMPATIENT = ("--request-attempts", 1, "--request-timeout", 1)
DODGES = [
    (LONG, Trouble.CONTEXT_LENGTH, "context_length"),
    (RUDE, Trouble.PROMPT_FILTERED, "content_filter"),
    (RUDE, Trouble.CONTENT_FILTER, "reply_filtered"),
    (RUDE, Trouble.EMPTY, "no_content"),
    (RUDE, Trouble.NO_CONTENT, "no_content"),
    (RUDE, Trouble.NO_CHOICES, "bad_reply"),
    (RUDE, Trouble.BAD_REQUEST, "bad_request"),
    (RUDE, Trouble.SERVER_ERROR, "server"),
    (RUDE, Trouble.RESET, "connection"),
    (RUDE, Trouble.HANG, "timeout"),
]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_addition_tasks(tmp_path / "tasks.jsonl")


def is_agent(body: Body) -> bool:
    return body["messages"][0]["role"] == "system"


def player(dodge: str) -> Callable[[Body, int], str]:
    """Solves even tasks; says `dodge` on others before a wrong answer. The collaborator always says yes."""

    def reply(body: Body, _: int) -> str:
        messages = body["messages"]
        if not is_agent(body):
            return "Yes."
        number = int(messages[1]["content"].split()[-1].rstrip("."))
        if len(messages) == 2:
            return dodge if number % 2 else "Really?"
        return f"I WANT TO ANSWER: def f(x): return {-1 if number % 2 else f'x + {number}'}"

    return reply


def objecting(dodge: str, trouble: Trouble) -> Callable[[Body], Trouble | None]:
    """The collaborator's endpoint has trouble with the dodge, and with nothing else."""

    def objects(body: Body) -> Trouble | None:
        return trouble if not is_agent(body) and dodge.strip() in str(body["messages"]) else None

    return objects


def measured(sweetrl: Sweetrl, server: HostileServer, tasks: Path, run: Path) -> RunMetrics:
    """`rollout`, then `score`, then the metrics, each by its own command."""
    model = f"openai:fake@{server.url}"
    options = ("--tasks", tasks, "--agent", model, "--collaborator", model, "-o", run, *IMPATIENT)
    rolled = sweetrl("rollout", *options)
    assert rolled.code == 0, rolled.err
    episodes, verdicts = run / "episodes.jsonl", run / "verdicts.jsonl"
    scored = sweetrl("score", "--tasks", tasks, "--episodes", episodes, "-o", verdicts, "--json")
    assert scored.code == 0, scored.err
    summary = json.loads(scored.out)["all"]
    assert summary["success"]["value"] == summary["success_failures_as_zero"]["value"] == 0.5
    assert sweetrl("evaluate", *options).code == 0
    return msgspec.json.decode((run / "metrics.json").read_bytes(), type=RunMetrics)


def success(figures: RunMetrics) -> list[tuple[float | None, int]]:
    names = ("success", "success_failures_as_zero")
    return [(figures.metrics[name].value, figures.metrics[name].count) for name in names]


@pytest.mark.parametrize(("dodge", "trouble", "cause"), DODGES, ids=[str(each[1]) for each in DODGES])
def test_a_message_that_breaks_the_collaborator_is_scored(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, dodge: str, trouble: Trouble, cause: str
) -> None:
    with in_thread(HostileServer(reply=player(dodge), objects=objecting(dodge, trouble))) as server:
        figures = measured(sweetrl, server, tasks, tmp_path / "run")
    assert success(figures) == [(0.5, 4), (0.5, 4)]
    assert (figures.failed, figures.unscored, figures.unanswered) == (0, 0, 2)
    dodged = {each.task_id: each for each in read_records(tmp_path / "run" / "episodes.jsonl", Episode)}["t1"]
    assert dodged.ending is Ending.ANSWERED
    reply = dodged.turns[0].reply
    assert reply is not None
    assert (reply.text, reply.excuse) == (EXCUSES.get(cause, UNREADABLE), cause)


@pytest.mark.parametrize("trouble", [Trouble.CONTEXT_LENGTH, Trouble.PROMPT_FILTERED, Trouble.BAD_REQUEST])
def test_an_agent_that_breaks_its_own_endpoint_is_scored_by_what_it_said(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, trouble: Trouble
) -> None:
    def objects(body: Body) -> Trouble | None:
        return trouble if is_agent(body) and RUDE in str(body["messages"]) else None

    with in_thread(HostileServer(reply=player(RUDE), objects=objects)) as server:
        figures = measured(sweetrl, server, tasks, tmp_path / "run")
    assert success(figures) == [(0.5, 4), (0.5, 4)]
    assert (figures.failed, figures.broke_off) == (0, 2)


@pytest.mark.parametrize("trouble", [Trouble.CONTENT_FILTER, Trouble.NO_CONTENT, Trouble.HUGE])
def test_an_agent_whose_output_is_unusable_from_the_start_is_scored(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, trouble: Trouble
) -> None:
    def objects(body: Body) -> Trouble | None:
        odd = any(f"function {number}." in str(body["messages"]) for number in (1, 3))
        return trouble if is_agent(body) and odd else None

    with in_thread(HostileServer(reply=player(RUDE), objects=objects)) as server:
        figures = measured(sweetrl, server, tasks, tmp_path / "run")
    assert success(figures) == [(0.5, 4), (0.5, 4)]
    assert (figures.failed, figures.broke_off) == (0, 2)


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        (Trouble.SERVER_ERROR, "server"),
        (Trouble.UNAUTHORIZED, "auth"),
        (Trouble.NO_MODEL, "not_found"),
        (Trouble.RATE_LIMIT, "rate_limit"),
        (Trouble.RESET, "connection"),
        (Trouble.CONTEXT_LENGTH, "context_length"),
        (Trouble.PROMPT_FILTERED, "content_filter"),
        (Trouble.EMPTY, "no_content"),
    ],
)
def test_a_collaborator_that_is_really_broken_fails_its_dialogues_which_are_resumed(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, trouble: Trouble, kind: str
) -> None:
    broken = [True]

    def objects(body: Body) -> Trouble | None:
        return trouble if broken[0] and not is_agent(body) else None

    run = tmp_path / "run"
    with in_thread(HostileServer(reply=player(RUDE), objects=objects)) as server:
        model = f"openai:fake@{server.url}"
        options = ("--tasks", tasks, "--agent", model, "--collaborator", model, "-o", run, *IMPATIENT)
        assert sweetrl("rollout", *options).code == 1
        episodes = list(read_records(run / "episodes.jsonl", Episode))
        causes = {(each.failure.stage, each.failure.kind) for each in episodes if each.failure}
        assert [each.ending for each in episodes] == [Ending.FAILED] * 4
        assert causes == {("collaborator", kind)}
        broken[0] = False
        figures = measured(sweetrl, server, tasks, run)
    assert success(figures) == [(0.5, 4), (0.5, 4)]
    assert figures.unanswered == 0


def test_a_collaborator_that_is_gone_fails_its_dialogues_until_it_is_back(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with in_thread(HostileServer()) as gone:
        port = gone.port
    with in_thread(HostileServer(reply=player(RUDE))) as agent:
        collaborator = f"openai:fake@http://127.0.0.1:{port}/v1"
        options = ("--tasks", tasks, "--agent", f"openai:fake@{agent.url}", "--collaborator", collaborator)
        ended = sweetrl("evaluate", *options, "-o", run, *IMPATIENT)
        assert ended.code == 1
        assert "4 dialogues failed" in ended.err
        with in_thread(HostileServer(reply=player(RUDE), listen=port)):
            assert sweetrl("evaluate", *options, "-o", run, *IMPATIENT).code == 0
    figures = msgspec.json.decode((run / "metrics.json").read_bytes(), type=RunMetrics)
    assert success(figures) == [(0.5, 4), (0.5, 4)]


def test_failures_that_are_nobodys_fault_show_as_a_gap_between_the_two_figures(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    def objects(body: Body) -> Trouble | None:
        return Trouble.SERVER_ERROR if not is_agent(body) and "x + 1" in str(body["messages"]) else None

    run = tmp_path / "run"
    with in_thread(HostileServer(reply=player("Hm?"), objects=objects)) as server:
        model = f"openai:fake@{server.url}"
        options = ("--tasks", tasks, "--agent", model, "--collaborator", model, "-o", run, *IMPATIENT)
        ended = sweetrl("evaluate", *options)
    assert ended.code == 1
    figures = msgspec.json.decode((run / "metrics.json").read_bytes(), type=RunMetrics)
    assert success(figures) == [(pytest.approx(2 / 3), 3), (0.5, 4)]
    assert "success, failures = 0, %" in ended.out
