"""The public API: its list of names, and its functions as a notebook uses them."""

import ast
import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import sweetrl
from addition_tasks import addition_task, write_addition_tasks
from conftest import Finished
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.records import read_records

CHECKOUT = Path(__file__).resolve().parent.parent
TASKS = [addition_task(number) for number in range(3)]


def imported_for_type_checkers() -> dict[str, str]:
    """Public names and the modules that `__init__.py` tells type checkers they are from."""
    tree = ast.parse(Path(sweetrl.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: node.module or ""
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded beyond its own after running some code."""
    script = f"import json, sys\nbefore = set(sys.modules)\n{code}\nprint(json.dumps(list(set(sys.modules) - before)))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout))


# ---------------------------------------------------------------- the list


def test_public_names_are_sorted_and_each_is_there_once() -> None:
    assert sweetrl.__all__ == sorted(set(sweetrl.__all__))


def test_type_checkers_and_the_interpreter_are_given_the_same_names() -> None:
    assert set(sweetrl.__all__) - {"__version__"} == set(imported_for_type_checkers())


@pytest.fixture
def command(request: pytest.FixtureRequest) -> Callable[..., Finished]:
    """The command line, whose fixture has the name of the package."""
    called: Callable[..., Finished] = request.getfixturevalue("sweetrl")
    return called


@pytest.mark.parametrize(("name", "module"), imported_for_type_checkers().items())
def test_a_public_name_is_the_object_that_its_module_has(name: str, module: str) -> None:
    home = __import__(module, fromlist=[name])
    assert getattr(sweetrl, name) is getattr(home, name)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", sweetrl.__version__)


def test_an_unknown_name_is_an_attribute_error_and_dir_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'rolout'"):
        sweetrl.rolout  # noqa: B018
    assert set(sweetrl.__all__) <= set(dir(sweetrl))


def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_after("import sweetrl") == {"sweetrl"}


def test_no_public_name_loads_the_training_stack() -> None:
    loaded = loaded_after("import sweetrl\nfor name in sweetrl.__all__: getattr(sweetrl, name)")
    assert not {"torch", "transformers", "numpy", "scipy", "playwright", "typer"} & loaded


def test_the_checked_in_reference_is_not_stale() -> None:
    script = CHECKOUT / "scripts/api_reference.py"
    written = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert (CHECKOUT / "docs/api.md").read_text() == written, "run: make docs"


USER_CODE = """
import sweetrl
from sweetrl import Conclusion, Episode, Metric, Reply, Task, TurnCredit, Verdict


class Echo:
    name = "echo"

    async def sample(self, history: "list[sweetrl.Message] | object", *, n: int, seed: int) -> list[str]:
        return ["I WANT TO ANSWER: pass"] * n


async def talk(task: Task) -> Episode:
    dialogue = sweetrl.Dialogue(task, sweetrl.load_collaborator("colleague", [task]), seed=1)
    said: Reply | Conclusion = await dialogue.say("Which?")
    if isinstance(said, Reply):
        print(said.text)
    return dialogue.episode


tasks: list[Task] = sweetrl.load_tasks("mini-backend:test:20")
episodes: list[Episode] = sweetrl.rollout(tasks, Echo(), "colleague", attempts=2)
verdicts: list[Verdict] = sweetrl.score(tasks, episodes)
success: Metric = sweetrl.metrics(tasks, episodes, verdicts).metrics["success"]
credit: list[TurnCredit] = sweetrl.credit(tasks, episodes, sweetrl.load_critic("scripted:overlap"))
results = [each.value for each in sweetrl.run_code("x = 1", "x") if isinstance(each, sweetrl.Returned)]
picture: bytes = sweetrl.render("<h1>Hi</h1>").png
try:
    sweetrl.train("rft", model="mini", output="out", episodes=episodes, verdicts=verdicts)
except sweetrl.UsageError as error:
    print(error, sweetrl.__version__.upper())
"""


def checked_by_mypy(path: Path, code: str) -> str:
    path.write_text(code)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(path)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False).stdout


def test_code_that_uses_the_public_api_alone_passes_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="needs the extra `dev`")
    assert checked_by_mypy(tmp_path / "user.py", USER_CODE).startswith("Success")
    wrong = USER_CODE.replace("list[Verdict] =", "list[Task] =").replace("sweetrl.render(", "sweetrl.rendr(")
    complaints = checked_by_mypy(tmp_path / "wrong.py", wrong)
    assert "Incompatible types in assignment" in complaints
    assert 'has no attribute "rendr"' in complaints


# ---------------------------------------------------------------- the functions


def asks_then_adds(history: Sequence[sweetrl.Message], seed: int) -> str:
    number = history[0].text.split()[-1].rstrip(".")
    return "Which?" if len(history) == 1 else f"I WANT TO ANSWER: def f(x): return x + {number}"


AGENT = sweetrl.ScriptedAgent(asks_then_adds)


def test_dialogues_are_run_scored_and_measured_in_four_lines() -> None:
    episodes = sweetrl.rollout(TASKS, AGENT, "scripted:unsure", attempts=2, seed=3)
    assert [each.id for each in episodes] == ["t0#0", "t0#1", "t1#0", "t1#1", "t2#0", "t2#1"]
    verdicts = sweetrl.score(TASKS, episodes)
    assert [(each.episode_id, each.reward) for each in verdicts] == [(each.id, 1.0) for each in episodes]
    run = sweetrl.metrics(TASKS, episodes, verdicts)
    assert run.metrics["success"].value == 1.0
    assert run.metrics["turns"].value == 2.0


def test_the_episodes_are_those_of_the_command(command: Callable[..., Finished], tmp_path: Path) -> None:
    source = write_addition_tasks(tmp_path / "tasks.jsonl")
    options = ("--agent", "scripted:curious", "--collaborator", "scripted:unsure", "--seed", 5)
    assert command("rollout", "--tasks", source, *options, "-o", tmp_path / "run").code == 0
    stored = read_records(tmp_path / "run/episodes.jsonl", sweetrl.Episode)
    episodes = sweetrl.rollout(str(source), "scripted:curious", "scripted:unsure", seed=5)
    assert episodes == sorted(stored, key=lambda each: each.id)


def test_files_are_taken_where_records_are(tmp_path: Path) -> None:
    source = write_addition_tasks(tmp_path / "tasks.jsonl", 3)
    episodes = sweetrl.rollout(source, AGENT, "scripted:unsure")
    assert sweetrl.score(source, episodes) == sweetrl.score(TASKS, episodes)
    assert sweetrl.load_tasks(source) == TASKS


def test_without_a_collaborator_the_agent_has_one_message() -> None:
    [episode] = sweetrl.rollout(TASKS[:1], sweetrl.ScriptedAgent(["def f(x): return x"]))
    assert (episode.answer, len(episode.turns)) == ("def f(x): return x", 1)


def test_a_failed_dialogue_is_returned_and_stays_unscored() -> None:
    class Broken:
        name = "broken"

        async def sample(self, history: Sequence[sweetrl.Message], *, n: int, seed: int) -> list[str]:
            raise sweetrl.ModelError("gone")

    [episode] = sweetrl.rollout(TASKS[:1], Broken(), "scripted:unsure")
    assert episode.failure is not None
    [verdict] = sweetrl.score(TASKS, [episode])
    assert verdict.reward is None


def test_the_plain_functions_work_where_a_loop_is_running_and_their_twins_can_be_awaited() -> None:
    async def notebook() -> tuple[list[sweetrl.Episode], list[sweetrl.Episode]]:
        plain = sweetrl.rollout(TASKS, AGENT, "scripted:unsure")
        return plain, await sweetrl.rollout_async(TASKS, AGENT, "scripted:unsure")

    plain, awaited = asyncio.run(notebook())
    assert plain == awaited
    assert len(plain) == 3


def test_a_plain_function_called_by_an_agent_in_the_loop_says_what_to_do() -> None:
    def script(history: Sequence[sweetrl.Message], seed: int) -> str:
        with pytest.raises(sweetrl.UsageError, match=r"run_code_async is called synchronously .* await it"):
            sweetrl.run_code("x = 1", "x")
        return "I WANT TO ANSWER: pass"

    [episode] = sweetrl.rollout(TASKS[:1], sweetrl.ScriptedAgent(script), "scripted:unsure")
    assert episode.failure is None


def test_every_turn_gets_credit_in_order() -> None:
    episodes = sweetrl.rollout(TASKS, AGENT, "scripted:unsure", attempts=2)
    credit = sweetrl.credit(TASKS, episodes, "scripted:overlap")
    assert [(each.episode_id, each.turn) for each in credit] == [
        (episode.id, turn) for episode in episodes for turn in range(2)
    ]
    assert credit == sweetrl.credit(TASKS, episodes, sweetrl.load_critic("scripted:overlap"))


def test_loaded_objects_serve_a_dialogue_of_ones_own() -> None:
    collaborator = sweetrl.load_collaborator("scripted:unsure", TASKS, guard=True)
    dialogue = sweetrl.Dialogue(TASKS[0], collaborator, seed=2)
    assert isinstance(dialogue.say_sync("Which?"), sweetrl.Reply)
    assert collaborator.name == "scripted:unsure+guard"
    agent = sweetrl.load_agent("scripted:curious", TASKS)
    [episode] = sweetrl.rollout(TASKS[:1], agent, collaborator)
    assert episode.agent == "scripted:curious"


def test_code_runs_in_the_sandbox() -> None:
    returned, raised = sweetrl.run_code("def f(x): return [x, x + 1]", "f(1)", "f('a')")
    assert isinstance(returned, sweetrl.Returned)
    assert returned.value == [1, 2]
    assert isinstance(raised, sweetrl.Raised)


def test_a_page_is_rendered() -> None:
    pytest.importorskip("playwright", reason="showing pages needs the extra `browser`")
    assert sweetrl.render("<h1>Hi</h1>").png.startswith(b"\x89PNG")


def test_a_model_is_trained_on_records(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    episodes = sweetrl.rollout(TASKS, AGENT, "scripted:unsure")
    verdicts = sweetrl.score(TASKS, episodes)
    options = {"model": "mini", "output": tmp_path / "policy", "max_steps": 1}
    policy = sweetrl.train("rft", **options, episodes=episodes, verdicts=verdicts)
    assert (policy / "model.safetensors").exists()
    # The same records are known again, though they were in files that are gone.
    assert sweetrl.train("rft", **options, episodes=iter(episodes), verdicts=verdicts) == policy
    with pytest.raises(sweetrl.UsageError):
        sweetrl.train("rft", **options, episodes=episodes[1:], verdicts=verdicts)


# ---------------------------------------------------------------- mistakes


def test_an_unknown_algorithm_or_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sweetrl.UsageError, match="there is no algorithm 'sft'; did you mean"):
        sweetrl.train("sft", model="mini", output=tmp_path)
    with pytest.raises(sweetrl.UsageError, match="train dpo has no setting 'epoch'"):
        sweetrl.train("dpo", model="mini", output=tmp_path, epoch=3)


def test_tasks_of_two_domains_and_no_tasks_are_refused() -> None:
    page = sweetrl.Task(id="p", domain="frontend", request="A page.", secret=FrontendSecret("<html>"))
    with pytest.raises(sweetrl.UsageError, match="several domains"):
        sweetrl.rollout([*TASKS, page], "scripted:curious", "scripted:unsure")
    with pytest.raises(sweetrl.UsageError, match="no tasks"):
        sweetrl.rollout([], "scripted:curious", "scripted:unsure")


def test_an_episode_on_another_task_is_refused() -> None:
    episodes = sweetrl.rollout(TASKS, AGENT, "scripted:unsure")
    with pytest.raises(sweetrl.UsageError, match="t0#0 is on a task that is not among those given"):
        sweetrl.score(TASKS[1:], episodes)


# ---------------------------------------------------------------- the example of the README


def test_the_example_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    [example] = re.findall(r"```python\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL)
    assert len([line for line in example.splitlines() if line]) <= 10
    ran = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Metric(name='success'")
    assert (tmp_path / "policy/model.safetensors").exists()


# ---------------------------------------------------------------- credit for logs


def test_a_log_of_chats_gets_credit_in_a_few_lines() -> None:
    report = sweetrl.credit_logs(CHECKOUT / "examples/chats.jsonl", model="words")
    assert report.is_better_than_chance
    assert "ticket" in report.worst_turns[0].said
    page = sweetrl.credit_page(report, title="My chats")
    assert "My chats" in page
    assert report.worst_turns[0].dialogue in page
    assert (
        report.worst_turns[0].episode_id.partition("#")[0] not in page
    )  # a hash, which tells people nothing


def test_a_critic_of_ones_own_credits_a_log() -> None:
    report = sweetrl.credit_logs(CHECKOUT / "examples/chats.jsonl", "length")
    assert report.auc is None
    assert [each.turn for each in report.credit[:2]] == [0, 1]
    assert all(each.advantage == -len(turn_of(report, each)) / 1000 for each in report.credit)


def turn_of(report: sweetrl.CreditReport, credit: sweetrl.TurnCredit) -> str:
    [dialogue] = [each for each in report.dialogues if each.episode.id == credit.episode_id]
    return dialogue.episode.turns[credit.turn].said


def test_a_log_without_references_refuses_a_critic_that_needs_them() -> None:
    with pytest.raises(sweetrl.UsageError, match="has no reference"):
        sweetrl.credit_logs(CHECKOUT / "examples/chats.jsonl", "scripted:overlap")
