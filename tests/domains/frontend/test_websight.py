"""WebSight rows as tasks, through `datasets` and a file of the same columns."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.domains.frontend.websight import normalise_pictures, tasks_of
from sweetrl.domains.sources import read_tasks
from sweetrl.errors import DataError


@pytest.mark.parametrize(
    ("address", "size"),
    [
        ("https://source.unsplash.com/random/300x200/?logo", "300/200"),
        ("https://source.unsplash.com/random/800x600", "800/600"),
        ("https://picsum.photos/200/300", "200/300"),
        ("https://picsum.photos/id/237/200/300?grayscale", "200/300"),
        ("https://picsum.photos/150", "150/150"),
        ("https://via.placeholder.com/640x360.png/09f/fff", "640/360"),
        ("https://images.unsplash.com/photo-15?w=500&amp;h=250", "500/250"),
        ("http://source.unsplash.com/random", "300/200"),
    ],
)
def test_a_picture_of_a_service_becomes_the_fixed_one_of_its_size(address, size):
    page = f'<img src="{address}" alt="x"><div style="background: url({address})">'
    fixed = f"https://picsum.photos/id/48/{size}"
    assert normalise_pictures(page) == f'<img src="{fixed}" alt="x"><div style="background: url({fixed})">'


def test_other_addresses_stay():
    page = '<link href="https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/x.css"><img src="logo.png"> 300x200'
    assert normalise_pictures(page) == page


@given(st.text(alphabet='<>"/ picsum.photos:httd0123456789x?&', max_size=80))
def test_doing_it_twice_changes_nothing(text):
    page = f'<img src="https://picsum.photos/{text}">'
    assert normalise_pictures(normalise_pictures(page)) == normalise_pictures(page)


ROWS = [
    {"llm_generated_idea": " A shop. ", "text": '<html><img src="https://picsum.photos/9/8"></html>'},
    {"llm_generated_idea": "A bank.", "text": "<html>bank</html>"},
    {"llm_generated_idea": "A bank.", "text": "<html>bank</html>"},
]


def test_rows_become_tasks_and_repetitions_are_dropped():
    tasks = list(tasks_of(ROWS, split="train"))
    assert [(task.domain, task.split, task.request) for task in tasks] == [
        ("frontend", "train", "A shop."),
        ("frontend", "train", "A bank."),
    ]
    assert "picsum.photos/id/48/9/8" in tasks[0].secret.page
    assert tasks[0].id != tasks[1].id


def test_a_row_of_another_dataset_is_named():
    with pytest.raises(DataError, match="row 1 lacks"):
        list(tasks_of([ROWS[0], {"text": "x"}]))


def test_import_websight_reads_through_datasets(sweetrl, tmp_path):
    pytest.importorskip("datasets")
    folder, output = tmp_path / "rows", tmp_path / "tasks.jsonl"
    folder.mkdir()
    lines = [json.dumps({**row, "image": "unused"}) + "\n" for row in ROWS]
    (folder / "train.jsonl").write_text("".join(lines))
    done = sweetrl("tasks", "import", "websight", "--from", folder, "--n", 2, "-o", output)
    assert done.code == 0, done.err
    assert list(read_tasks(output)) == list(tasks_of(ROWS, split="train"))


def test_a_dataset_that_cannot_be_read_is_one_line(sweetrl, tmp_path):
    pytest.importorskip("datasets")
    done = sweetrl("tasks", "import", "websight", "--from", tmp_path / "nothing", "-o", tmp_path / "t.jsonl")
    assert done.code == 2
    assert "cannot be read" in done.err
    assert len(done.err.splitlines()) == 1
