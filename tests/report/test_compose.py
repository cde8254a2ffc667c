import pytest

from report.samples import credit, episode, png, records, verdict
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret as Page
from sweetrl.report import Run, compose, examples
from sweetrl.report.compose import method_of, pairs
from sweetrl.report.contents import Method, TaskScore
from sweetrl.report.examples import choose_tasks
from sweetrl.types import Metric, Reply, Screenshots, Task, Turn


def run(name, rewards, **more):
    episodes, verdicts = records(rewards, scorer=more.pop("scorer", "backend-module/1"))
    return Run(name, episodes, verdicts, **more)


def test_the_figures_of_a_run_leave_out_what_is_unscored():
    episodes = [episode("a"), episode("b", turns=4), episode("c"), episode("d", failed=True)]
    verdicts = [verdict("a", 1.0), verdict("b", 0.5), verdict("c", None)]
    method = method_of(Run("base", episodes, verdicts, label="Base"))
    figures = {metric.name: (metric.value, metric.count) for metric in method.metrics}
    assert figures == {
        "success": (0.5, 2),
        "success_failures_as_zero": (0.25, 4),
        "tests_passed": (0.75, 2),
        "turns": (pytest.approx(8 / 3), 3),
    }
    assert (method.unscored, method.dialogues, method.title) == (2, 4, "Base")
    assert method.tasks == {"a": TaskScore(1, 1, 1.0), "b": TaskScore(1, 0, 0.5)}
    assert method.requests["b"] == "Please write b."


def test_attempts_on_one_task_are_put_together():
    episodes = [episode("a", 0), episode("a", 1)]
    method = method_of(Run("base", episodes, [verdict("a", 1.0, 0), verdict("a", 0.4, 1)]))
    assert method.tasks == {"a": TaskScore(2, 1, pytest.approx(0.7))}


def test_the_reward_of_pages_is_their_similarity():
    method = method_of(run("pages", {"a": 0.6, "b": 0.8}, scorer="frontend-layout/1"))
    assert {metric.name for metric in method.metrics} >= {"success", "similarity", "turns"}
    assert "tests_passed" not in {metric.name for metric in method.metrics}


def test_given_figures_are_added_and_never_replace_measured_ones():
    given = (Metric("coverage", 0.7, 0.6, 0.8, 9), Metric("success", 0.99, 0.9, 1.0, 9))
    method = method_of(run("base", {"a": 0.0, "b": 0.0}, metrics=given))
    figures = {metric.name: metric.value for metric in method.metrics}
    assert (figures["coverage"], figures["success"]) == (0.7, 0.0)


def test_where_dialogues_were_lost_runs_are_compared_with_those_as_zeros_too():
    episodes, verdicts = records({"a": 1.0, "b": 1.0}, scorer="backend-module/1")
    lossy = Run("lossy", [*episodes, episode("c", failed=True)], [*verdicts, verdict("c", None)])
    whole = run("whole", {"a": 1.0, "b": 1.0, "c": 0.0})
    found = {each.measure: each.difference for each in compose("t", [whole, lossy]).comparisons}
    assert (found["success"].value, found["success"].count) == (0.0, 2)
    strict = found["success_failures_as_zero"]
    assert (strict.value, strict.count) == (0.0, 3)


def test_runs_are_compared_task_by_task_on_what_both_have():
    base = run("base", {"a": 0.0, "b": 0.5, "c": 1.0, "only base": 0.0})
    sweet = run("sweet", {"a": 1.0, "b": 0.5, "c": 0.0, "d": 1.0})
    success, tests = compose("t", [base, sweet]).comparisons
    assert (success.first, success.second, success.measure) == ("sweet", "base", "success")
    assert (success.difference.value, success.difference.count) == (0.0, 3)
    assert (success.wins, success.ties, success.losses) == (1, 1, 1)
    assert success.p_value == 1.0
    assert tests.measure == "tests_passed"
    better = run("sweet", dict.fromkeys("abc", 1.0))
    assert compose("t", [base, better]).comparisons[1].difference.value == pytest.approx(0.5)


def test_runs_without_a_common_task_or_scorer_are_not_compared():
    runs = [run("a", {"x": 1.0}), run("b", {"y": 1.0}), run("c", {"x": 0.5}, scorer="frontend-layout/1")]
    assert compose("t", runs).comparisons == ()


def test_of_many_runs_each_is_compared_with_the_first_alone():
    def names(count):
        return [(a.name, b.name) for a, b in pairs([Method(str(number)) for number in range(count)])]

    assert names(3) == [("1", "0"), ("2", "0"), ("2", "1")]
    assert names(7) == [(str(number), "0") for number in range(1, 7)]


def scores(**rewards):
    return {task: TaskScore(1, int(reward == 1), reward) for task, reward in rewards.items()}


def test_half_of_the_examples_are_tasks_on_which_runs_differ():
    one = scores(a=1.0, b=1.0, c=1.0, d=0.0, e=0.0, f=0.0, g=0.0)
    two = scores(a=0.0, b=0.0, c=0.0, d=0.0, e=0.0, f=0.0, g=0.0)
    chosen = choose_tasks([one, two], (), 4, seed=0)
    assert len(set(chosen)) == 4
    assert sum(task in "abc" for task in chosen) == 2
    assert sorted(choose_tasks([one, two], (), 100, seed=0)) == list("abcdefg")


def test_the_seed_chooses_the_examples():
    many = scores(**{f"t{number}": 0.0 for number in range(100)})
    drawn = [tuple(choose_tasks([many], (), 3, seed)) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_tasks_with_credit_come_first():
    many = scores(**{f"t{number}": 0.0 for number in range(50)})
    assert set(choose_tasks([many], ["t7#0", "t31#2"], 2, seed=0)) == {"t7", "t31"}


def test_examples_have_their_verdict_credit_and_reference():
    secret = BackendSecret("def double(x): ...", {"one": "double(2)"})
    task = Task(id="a", domain="backend", request="r", secret=secret)
    runs = [
        run("base", {"a": 0.3, "b": 1.0}, credit=credit("a", [0.5, -0.5]), tasks={"a": task}),
        run("sweet", {"a": 0.4, "b": 1.0}),
    ]
    contents = compose("t", runs, examples=1)
    first, second = contents.examples
    assert [(each.method, each.episode.id) for each in (first, second)] == [("base", "a#0"), ("sweet", "a#0")]
    assert (first.verdict.reward, second.verdict.reward) == (0.3, 0.4)
    assert [each.advantage for each in first.credit] == [0.5, -0.5]
    assert (first.reference, second.reference) == ("def double(x): ...", None)


def test_the_list_of_tasks_gets_as_many_dialogues_as_there_is_room_for(monkeypatch):
    runs = [run("base", {"a": 0.0, "b": 1.0, "c": 1.0}), run("sweet", {"a": 0.0, "b": 1.0, "c": 0.0})]
    whole = compose("t", runs)
    assert len(whole.transcripts) == 6
    assert whole.left_out == 0
    monkeypatch.setattr(examples, "TRANSCRIPTS", 500)
    short = compose("t", runs, examples=1)
    assert {each.episode.task_id for each in short.transcripts} == {"c"}  # the runs differ on it
    assert short.left_out == 4


def test_without_examples_no_dialogue_is_on_the_page():
    contents = compose("t", [run("base", {"a": 0.0}), run("sweet", {"a": 1.0})], examples=0)
    assert (contents.duel, contents.examples, contents.transcripts, contents.left_out) == (None, (), (), 2)


def test_of_several_attempts_the_one_with_credit_is_shown():
    episodes = [episode("a", attempt) for attempt in range(3)]
    verdicts = [verdict("a", 0.0, attempt) for attempt in range(3)]
    shown = compose("t", [Run("base", episodes, verdicts, credit=credit("a", [0.1, 0.2], attempt=1))])
    assert [each.episode.id for each in shown.examples] == ["a#1"]


def test_pictures_come_by_their_hash_where_they_were_kept():
    [held], [judged] = records({"page": 0.8}, scorer="frontend-layout/1")
    turns = (Turn("<html>", "<html>", Reply("Redder.", "draft")), *held.turns[1:])
    held = type(held)(**{name: getattr(held, name) for name in held.__struct_fields__} | {"turns": turns})
    judged = type(judged)(
        **{name: getattr(judged, name) for name in judged.__struct_fields__}
        | {"screenshots": Screenshots("wanted", "lost")}
    )
    kept = {"draft": png(3, 3), "wanted": png(4, 4)}
    task = Task(id="page", domain="frontend", request="r", secret=Page("<html>wanted</html>"))
    [example] = compose("t", [Run("base", [held], [judged], picture=kept.get, tasks={"page": task})]).examples
    assert example.pictures.reference == kept["wanted"]
    assert example.pictures.answer is None
    assert example.pictures.drafts == {"draft": kept["draft"]}
    assert example.reference == "<html>wanted</html>"


def test_credit_is_averaged_by_turn_and_failures_do_not_count():
    credits_ = credit("a", [0.4, -0.2]) + credit("b", [0.2, None])
    contents = compose("t", [run("base", {"a": 0.0, "b": 1.0}, credit=credits_), run("other", {"a": 1.0})])
    [figure] = contents.figures
    [series] = figure.series
    assert [(point.x, point.y) for point in series.points] == [(1, pytest.approx(0.3)), (2, -0.2)]
    assert series.method == "base"


def test_records_may_come_from_files_that_are_read_anew():
    class Anew:
        def __init__(self, items):
            self.items, self.reads = items, 0

        def __iter__(self):
            self.reads += 1
            return iter(self.items)

    episodes, verdicts = records({"a": 1.0})
    anew = Anew(episodes)
    contents = compose("t", [Run("base", anew, Anew(verdicts))])
    assert len(contents.examples) == 1
    assert anew.reads >= 2
