import json

import pytest

BACKEND = {
    "problem_description": "Add two [bold]numbers[/bold].",
    "ground_truth": "def add(a, b):\n    return a + b  # the secret",
    "test_cases": {"test1": "add(1, 2)"},
    "hidden_information": "def add(a, b):\n    return a + b  # the secret",
}
FRONTEND = {
    "problem_description": "A shop.",
    "ground_truth": "<html>the secret</html>",
    "colour": "secret too",
}


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "shop_test.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (BACKEND, FRONTEND)))
    return path


def test_import_and_export_give_the_published_bytes_back(sweetrl, published, tmp_path):
    ours, again = tmp_path / "tasks.jsonl", tmp_path / "again.jsonl"
    assert sweetrl("tasks", "import", published, "-o", ours).err == f"wrote 2 tasks to {ours}\n"
    assert json.loads(ours.read_text().splitlines()[0])["schema"] == "task/2"
    assert sweetrl("tasks", "export", ours, "-o", again).code == 0
    assert again.read_bytes() == published.read_bytes()


def test_importing_our_own_format_changes_nothing(sweetrl, published, tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    sweetrl("tasks", "import", published, "-o", first)
    sweetrl("tasks", "import", first, "-o", second)
    assert second.read_bytes() == first.read_bytes()


def test_json_tells_machines_what_was_written(sweetrl, published, tmp_path):
    finished = sweetrl("tasks", "import", published, "-o", tmp_path / "tasks.jsonl", "--json")
    assert json.loads(finished.out) == {"tasks": 2, "output": str(tmp_path / "tasks.jsonl")}
    assert finished.err == ""


@pytest.mark.parametrize("verb", ["import", "export"])
def test_an_existing_output_is_replaced_only_by_force(sweetrl, published, tmp_path, verb):
    output = tmp_path / "there.jsonl"
    output.write_text("precious")
    finished = sweetrl("tasks", verb, published, "-o", output)
    assert finished.code == 2
    assert finished.err == (
        f"error: {output}: exists already; choose another output with -o, or replace it with --force\n"
    )
    assert output.read_text() == "precious"
    assert sweetrl("tasks", verb, published, "-o", output, "--force").code == 0
    assert output.read_text() != "precious"


def test_bad_input_is_one_line_and_leaves_the_output_untouched(sweetrl, published, tmp_path):
    output = tmp_path / "there.jsonl"
    output.write_text("precious")
    published.write_text(published.read_text() + '{"problem_description": 3}\n')
    finished = sweetrl("tasks", "import", published, "-o", output, "--force")
    assert finished.code == 2
    assert (
        finished.err
        == f"error: {published}:3: Expected `str`, got `int` - at `$.problem_description`; fix or remove the line\n"
    )
    assert output.read_text() == "precious"
    assert {each.name for each in tmp_path.iterdir()} == {"there.jsonl", "shop_test.jsonl"}


def test_show_never_tells_the_secret_unless_asked(sweetrl, published):
    for extra in ([], ["--json"]):
        shown = sweetrl("tasks", "show", published, "--n", 5, *extra).out
        assert "A shop." in shown
        assert "secret" not in shown
        assert "add(1, 2)" not in shown


def test_show_prints_the_request_as_it_is_and_names_the_task(sweetrl, published):
    finished = sweetrl("tasks", "show", published)
    assert "Add two [bold]numbers[/bold]." in finished.out
    assert "shop_test-0 · backend · test" in finished.out
    assert "A shop." not in finished.out


def test_show_with_secret_prints_reference_tests_and_page(sweetrl, published):
    shown = sweetrl("tasks", "show", published, "--n", 2, "--secret").out
    assert "return a + b  # the secret" in shown
    assert "add(1, 2)  # test1" in shown
    assert "<html>the secret</html>" in shown


def test_show_as_json_with_secret_is_the_whole_record(sweetrl, published):
    shown = json.loads(sweetrl("tasks", "show", published, "--secret", "--json").out)
    assert shown["tasks"][0]["secret"]["tests"] == BACKEND["test_cases"]


def test_show_finds_a_task_by_its_id(sweetrl, published):
    shown = json.loads(sweetrl("tasks", "show", published, "shop_test-1", "--json").out)
    assert shown == {
        "tasks": [{"id": "shop_test-1", "domain": "frontend", "split": "test", "request": "A shop."}]
    }


def test_show_suggests_an_id_for_a_misspelt_one(sweetrl, published):
    finished = sweetrl("tasks", "show", published, "shop_tst-1")
    assert finished.code == 2
    assert finished.err == (
        f"error: {published}: no task has the id 'shop_tst-1'; did you mean 'shop_test-1'?\n"
    )


def test_show_lets_no_task_drive_the_terminal(sweetrl, published):
    published.write_text(json.dumps({**FRONTEND, "id": "\x1b[1mx", "problem_description": "\x1b[2J"}) + "\n")
    assert "\x1b" not in sweetrl("tasks", "show", published, "--secret").out


def test_the_number_of_tasks_to_show_is_at_least_one(sweetrl, published):
    finished = sweetrl("tasks", "show", published, "--n", 0)
    assert finished.code == 2
    assert finished.err.startswith("error: Invalid value for '--n'")


def test_make_writes_what_the_built_in_name_stands_for(sweetrl, tmp_path):
    made, imported = tmp_path / "made.jsonl", tmp_path / "imported.jsonl"
    options = ("--n", 6, "--split", "test", "--seed", 2)
    assert sweetrl("tasks", "make", "mini-frontend", *options, "-o", made).code == 0
    assert sweetrl("tasks", "import", "mini-frontend:test:6:2", "-o", imported).code == 0
    assert made.read_bytes() == imported.read_bytes()
    assert len(made.read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["mini-backhand"], "there is no generator 'mini-backhand'; there is mini-backend, mini-frontend"),
        (["mini-frontend", "--split", "dev"], "mini-frontend has no split 'dev'"),
    ],
)
def test_make_refuses_what_it_does_not_know(sweetrl, tmp_path, arguments, complaint):
    finished = sweetrl("tasks", "make", *arguments, "-o", tmp_path / "tasks.jsonl")
    assert finished.code == 2
    assert complaint in finished.err
    assert list(tmp_path.iterdir()) == []


def test_defective_tasks_are_an_exit_code_of_1_and_a_limit_looks_at_the_first_only(sweetrl, tmp_path):
    path = tmp_path / "tasks.jsonl"
    sweetrl("tasks", "make", "mini-backend", "--n", 2, "-o", path)
    sound, broken = map(json.loads, path.read_text().splitlines())
    broken["secret"]["reference"] = "def f(): raise ValueError"
    path.write_text("".join(json.dumps(each) + "\n" for each in (sound, broken)))
    found = sweetrl("tasks", "check", path)
    assert found.code == 1
    assert "1 of 2 tasks are defective" in found.err
    assert sweetrl("tasks", "check", path, "--limit", 1).code == 0
