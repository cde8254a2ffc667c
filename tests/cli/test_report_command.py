import json
from pathlib import Path

import msgspec
import pytest

from report.reading import cells, read
from report.samples import credit, png, records
from sweetrl.errors import DataError
from sweetrl.experiments.run_folder import duration, open_runs, read_log, wall_clock
from sweetrl.types import Metric, Reply, RunMetrics, Screenshots, Turn, picture_digest


def write(path: Path, items) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in items))


def write_run(folder: Path, rewards: dict[str, float | None]) -> Path:
    episodes, verdicts = records(rewards)
    write(folder / "episodes.jsonl", episodes)
    write(folder / "verdicts.jsonl", verdicts)
    return folder


def write_model(folder: Path, *, steps: int = 5) -> Path:
    lines = [
        {"loss": 1 / step, "accuracy": step / 10, "step": step, "epoch": 0.1} for step in range(1, steps + 1)
    ]
    write(folder / "log.jsonl", [*lines, {"train_runtime": 3.0, "step": steps}])
    card = {
        "schema": "training/1",
        "model": "seed-model",
        "settings": {"method": "critic", "learning_rate": 2e-7, "seed": 11},
        "data": {"pairs": "abc123"},
        "examples": 1200,
        "versions": {"torch": "2.13.0"},
        "started": "2026-01-31T09:00:00Z",
        "finished": "2026-01-31T10:04:10Z",
    }
    (folder / "sweetrl.json").write_text(json.dumps(card))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [
        write_run(tmp_path / "base", {"a": 0.0, "b": 1.0}),
        write_run(tmp_path / "sweet", {"a": 1.0, "b": 1.0}),
    ]


def section(path: Path, name: str):
    page = read(path.read_text())
    return next((node for node in page.all("section") if node.attributes.get("id") == name), None)


def rows(path: Path) -> list[str]:
    return [row[0] for row in cells(section(path, "results").one("table", "results"))[1:]]


def test_runs_become_one_page(sweetrl, runs, tmp_path) -> None:
    output = tmp_path / "report.html"
    done = sweetrl("report", *runs, "-o", output, "--title", "My runs", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said | {"bytes": 0} == {
        "output": str(output),
        "bytes": 0,
        "runs": ["base", "sweet"],
        "trainings": [],
        "examples": 4,
        "left_out": 0,
    }
    assert said["bytes"] == output.stat().st_size
    assert read(output.read_text()).one("title").text == "My runs"
    assert rows(output) == ["base", "sweet"]
    assert "sweet − base" in section(output, "differences").text


def test_labels_are_given_with_an_equals_sign_and_folders_of_one_name_told_apart(sweetrl, tmp_path) -> None:
    for name in ("x/run", "y/run", "odd=name"):
        write_run(tmp_path / name, {"a": 1.0, "b": 0.0})
    output = tmp_path / "report.html"
    words = [f"Multi-turn DPO={tmp_path}/x/run", tmp_path / "y/run", tmp_path / "odd=name"]
    assert sweetrl("report", *words, "-o", output).code == 0
    assert rows(output) == ["Multi-turn DPO", "y/run", "odd=name"]


def test_the_output_of_a_recipe_is_about_its_evaluation_and_its_models(sweetrl, tmp_path) -> None:
    folder = write_run(tmp_path / "sweet", {"train": 0.0})
    write_run(folder / "evaluation", {"test": 1.0})
    write_model(folder / "critic")
    stages = [{"stage": "score", "arguments": ["score", "--tasks", "my tasks.jsonl"], "seconds": 61.5}]
    (folder / "run.json").write_text(json.dumps(stages))
    output = tmp_path / "report.html"
    assert sweetrl("report", folder, "-o", output).code == 0
    assert "test" in section(output, "tasks").text
    assert "train" not in section(output, "tasks").text
    assert section(output, "training").one("h3").text == "sweet/critic"
    made = section(output, "provenance").text
    assert "sweetrl score --tasks 'my tasks.jsonl'  # 61.5 s" in made
    assert "seed-model" in made
    assert "1 h 4 min 10 s" in made
    assert "torch 2.13.0" in made
    assert "abc123" in made


def test_a_trained_model_alone_is_a_page_of_curves(sweetrl, tmp_path) -> None:
    output = tmp_path / "report.html"
    done = sweetrl("report", write_model(tmp_path / "critic"), "-o", output)
    assert done.code == 0, done.err
    assert section(output, "results") is None
    shown = section(output, "training")
    assert [caption.text for caption in shown.all("figcaption")] == ["loss", "pairs told apart, %"]
    assert "learning rate 2e-07" in shown.text
    assert "examples 1,200" in shown.text


def test_credit_figures_and_pictures_of_a_run_are_found(sweetrl, tmp_path) -> None:
    folder = tmp_path / "pages"
    [episode], [verdict] = records({"page": 0.8}, scorer="frontend-layout/1")
    wanted, draft, answer = png(40, 30), png(41, 30), png(42, 30)
    names = [picture_digest(each) for each in (wanted, draft, answer)]
    for name, picture in zip(names, (wanted, draft, answer), strict=True):
        (folder / "screenshots").mkdir(parents=True, exist_ok=True)
        (folder / "screenshots" / f"{name}.png").write_bytes(picture)
    turns = (Turn("<html>", "<html>", Reply("No.", names[1])), *episode.turns)
    write(folder / "episodes.jsonl", [msgspec.structs.replace(episode, turns=turns)])
    write(
        folder / "verdicts.jsonl",
        [msgspec.structs.replace(verdict, screenshots=Screenshots(names[0], names[2]))],
    )
    write(folder / "credit.jsonl", credit("page", [0.5, 0.1, -0.2]))
    coverage = Metric("coverage", 0.75, 0.5, 0.9, 8)
    measured = RunMetrics(tasks=1, dialogues=1, failed=0, unscored=0, metrics={"coverage": coverage})
    (folder / "metrics.json").write_bytes(msgspec.json.encode(measured))
    output = tmp_path / "report.html"
    assert sweetrl("report", folder, "-o", output).code == 0
    dialogues = section(output, "dialogues")
    assert [image.attributes["width"] for image in dialogues.all("img")] == ["40", "42", "41"]
    assert [each.text for each in dialogues.all("span", "value")] == ["+0.500", "+0.100", "−0.200"]
    head, row = cells(section(output, "results").one("table", "results"))
    assert row[head.index("facts asked, %")].startswith("75.0")


def test_a_reply_cannot_name_a_picture_outside_of_its_folder(sweetrl, tmp_path) -> None:
    folder = tmp_path / "run"
    (tmp_path / "secret.png").write_bytes(png(77, 30))
    [episode], [verdict] = records({"page": 0.8}, scorer="frontend-layout/1")
    turns = (Turn("<html>", "<html>", Reply("No.", "../../secret")), *episode.turns)
    write(folder / "episodes.jsonl", [msgspec.structs.replace(episode, turns=turns)])
    shots = Screenshots("../../secret", str(tmp_path / "secret"))
    write(folder / "verdicts.jsonl", [msgspec.structs.replace(verdict, screenshots=shots)])
    (folder / "screenshots").mkdir()
    output = tmp_path / "report.html"
    assert sweetrl("report", folder, "-o", output).code == 0
    assert read(output.read_text()).all("img") == []


def test_run_cards_tell_how_it_was_made(sweetrl, tmp_path, runs) -> None:
    card = {
        "schema": "run/1",
        "command": "rollout",
        "config": {"seed": 42, "agent": "mini"},
        "versions": {"sweetrl": "9.9", "python": "3.13"},
        "started": "2026-01-31T09:00:00Z",
        "finished": "2026-01-31T09:04:10Z",
        "records": 2,
        "sha256": "f" * 64,
    }
    (runs[0] / "episodes.run.json").write_text(json.dumps(card))
    output = tmp_path / "report.html"
    assert sweetrl("report", *runs, "-o", output).code == 0
    [entry] = section(output, "provenance").all("article")
    assert entry.one("h3").text == "base/episodes.jsonl"
    facts = dict(zip(*([node.text for node in entry.all(name)] for name in ("dt", "dd")), strict=True))
    assert facts == {
        "command": "sweetrl rollout",
        "records": "2",
        "seed": "42",
        "started": "2026-01-31T09:00:00Z",
        "wall clock": "4 min 10 s",
        "SHA-256": "f" * 64,
        "versions": "sweetrl 9.9, python 3.13",
    }


def test_the_turn_limit_of_the_run_bounds_what_is_said_about_turns(sweetrl, tmp_path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    card = {"command": "rollout", "config": {"rules": {"turn_limit": 4}}, "versions": {}, "started": "x"}
    (folder / "episodes.run.json").write_text(json.dumps(card))
    output = tmp_path / "report.html"
    assert sweetrl("report", folder, "-o", output).code == 0
    head, row = cells(section(output, "results").one("table", "results"))
    assert row[head.index("turns")] == "2.001.00 to 4.00"


def test_tasks_show_what_was_wanted(sweetrl, tmp_path, runs) -> None:
    task = {
        "id": "a",
        "problem_description": "p",
        "ground_truth": "def wanted(): ...",
        "test_cases": {"t": "wanted()"},
    }
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task) + "\n" + json.dumps(task | {"id": "b"}) + "\n")
    output = tmp_path / "report.html"
    assert sweetrl("report", *runs, "--tasks", tmp_path / "tasks.jsonl", "-o", output).code == 0
    assert "def wanted(): ..." in section(output, "dialogues").text


def test_few_examples_are_drawn_by_the_seed_and_the_list_has_the_others(sweetrl, tmp_path) -> None:
    folder = write_run(tmp_path / "run", {f"t{number}": 0.0 for number in range(40)})
    shown = []
    for seed in (0, 0, 1):
        output = tmp_path / "report.html"
        assert sweetrl("report", folder, "--examples", 2, "--seed", seed, "-o", output, "--force").code == 0
        dialogues = section(output, "dialogues")
        shown.append([node.text for node in dialogues.all("h3")])
        assert len(shown[-1]) == 2
        assert len(section(output, "tasks").all("ol", "brief")) == 40
    assert shown[0] == shown[1] != shown[2]


def test_an_existing_page_is_kept_without_force(sweetrl, tmp_path, runs) -> None:
    output = tmp_path / "report.html"
    output.write_text("mine")
    done = sweetrl("report", *runs, "-o", output)
    assert done.code == 2
    assert "--force" in done.err
    assert output.read_text() == "mine"
    assert sweetrl("report", *runs, "-o", output, "--force").code == 0


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: None, "no such folder"),
        (lambda folder: folder.mkdir(), "has no episodes.jsonl; is it the folder of a run?"),
        (lambda folder: write(folder / "episodes.jsonl", records({"a": 1.0})[0]), "has no verdicts.jsonl; score it"),
        (lambda folder: (write_run(folder, {"a": 1.0}), (folder / "metrics.json").write_text("{")), "metrics.json"),
        (lambda folder: (write_model(folder), (folder / "log.jsonl").write_text("{}\nloss\n")), "log.jsonl:2"),
    ],
)  # fmt: skip
def test_what_is_no_run_is_named_in_one_line(sweetrl, tmp_path, prepare, message) -> None:
    prepare(tmp_path / "run")
    done = sweetrl("report", tmp_path / "run", "-o", tmp_path / "report.html")
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "report.html").exists()


def test_a_run_given_twice_is_a_mistake(sweetrl, tmp_path, runs) -> None:
    done = sweetrl("report", runs[0], f"again={runs[0]}", "-o", tmp_path / "report.html")
    assert (done.code, "twice" in done.err) == (2, True)


def test_two_runs_under_one_label_are_a_mistake(sweetrl, tmp_path, runs) -> None:
    done = sweetrl("report", f"same={runs[0]}", f"same={runs[1]}", "-o", tmp_path / "report.html")
    assert (done.code, "same" in done.err) == (2, True)


def test_logs_are_read_metric_by_metric(tmp_path) -> None:
    curves = read_log(write_model(tmp_path / "m", steps=3) / "log.jsonl")
    assert curves == {"loss": ((1, 1.0), (2, 0.5), (3, 1 / 3)), "accuracy": ((1, 0.1), (2, 0.2), (3, 0.3))}
    (tmp_path / "bad.jsonl").write_text('{"loss": 1, "step": 1}\n[1]\n')
    with pytest.raises(DataError, match=r"bad.jsonl:2"):
        read_log(tmp_path / "bad.jsonl")


def test_lines_without_a_loss_are_read_but_the_summary_of_the_run_is_not(tmp_path) -> None:
    write(
        tmp_path / "log.jsonl",
        [{"kl": 0.0, "step": 0}, {"kl": 0.1, "step": 2}, {"train_runtime": 3.0, "step": 2}],
    )
    assert read_log(tmp_path / "log.jsonl") == {"kl": ((0, 0.0), (2, 0.1))}


def test_the_turns_of_the_evaluation_stand_beside_the_curves_of_the_policy_alone(tmp_path) -> None:
    folder = write_run(tmp_path / "run", {"train": 0.0})
    write_run(folder / "evaluation", {"test": 1.0})
    turns = Metric("turns", 6.54, 6.0, 7.0, 1)
    metrics = RunMetrics(tasks=1, dialogues=1, failed=0, unscored=0, metrics={"turns": turns})
    (folder / "evaluation/metrics.json").write_bytes(msgspec.json.encode(metrics))
    write_model(folder / "critic")
    policy = write_model(folder / "policy") / "sweetrl.json"
    policy.write_text(policy.read_text().replace('"critic"', '"policy"'))
    [opened] = open_runs([str(folder)])
    facts = {each.label: dict(each.facts) for each in opened.trainings()}
    assert facts["run/policy"]["turns per dialogue in the evaluation"] == "6.5"
    assert "turns per dialogue in the evaluation" not in facts["run/critic"]


def test_times_are_told_in_words() -> None:
    assert [duration(seconds) for seconds in (0.2, 59, 61, 3600, 3725)] == [
        "under 1 s", "59 s", "1 min 1 s", "1 h", "1 h 2 min 5 s",
    ]  # fmt: skip
    assert wall_clock("2026-01-31T09:00:00Z", None) == "not finished"
    assert wall_clock("yesterday", "today") == ""
