"""The page about reports says what is so."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec

from report.reading import read
from report.samples import records

PAGE = (Path(__file__).parents[2] / "docs/report.md").read_text()


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    for name, reward in (("base", 0.0), ("sweet", 1.0)):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        for file, items in zip(("episodes", "verdicts"), records({"a": reward, "b": 1.0}), strict=True):
            (folder / f"{file}.jsonl").write_bytes(
                b"".join(msgspec.json.encode(each) + b"\n" for each in items)
            )
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True)
    page = read((tmp_path / "report.html").read_text())
    assert page.one(class_="kicker").text == page.one("title").text == "My experiment, second try"
    assert page.one("h1").text.startswith("SWEET-RL solves 100\N{NO-BREAK SPACE}% of 2 tasks")
    assert "SWEET-RL − Base model" in page.text
    assert "Best of N" in page.text


def test_every_section_of_a_page_is_described() -> None:
    from sweetrl.report.contents import ReportContents
    from sweetrl.report.page import _sections

    described = PAGE.replace("**", "").lower()
    titles = [title.lower() for _, title, _, _ in _sections(ReportContents("t"))]
    assert [title for title in titles if title not in described] == ["task by task"]
