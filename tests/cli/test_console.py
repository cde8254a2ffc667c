import contextlib
import io
import json
import re

import pytest

from sweetrl.cli import console
from sweetrl.experiments import progress
from sweetrl.types import Metric


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    """To be entered by the test itself: pytest puts its own streams back after fixtures were made."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    console.messages.cache_clear()
    yield contextlib.redirect_stderr(Terminal())
    console.messages.cache_clear()


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_json_goes_to_standard_output_as_one_line_with_records_inside(capsys):
    console.print_json({"metric": Metric("success", 0.5, 0.4, 0.6, 10)})
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.count("\n") == 1
    assert json.loads(captured.out)["metric"]["high"] == 0.6


def test_notes_go_to_standard_error_and_are_never_wrapped(capsys):
    console.note("a" * 300)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "a" * 300 + "\n")


def test_sentences_are_broken_between_words_on_a_terminal_alone(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    console.results.cache_clear()
    console.paragraphs(["This run is too small to rank [the methods]."])
    assert capsys.readouterr().out == "This run is too small to rank [the methods].\n"
    monkeypatch.setenv("TERM", "xterm")
    with contextlib.redirect_stdout(Terminal()) as screen:
        console.results.cache_clear()
        console.paragraphs(["This run is too small to rank [the methods]."])
    console.results.cache_clear()
    assert screen.getvalue().split("\n") == ["This run is too ", "small to rank [the ", "methods].", ""]


def test_progress_is_silent_where_standard_error_is_no_terminal(capsys):
    with console.progress("scoring", total=2) as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")


def test_a_log_file_is_told_once_whom_the_work_waits_for(capsys):
    with console.progress("turns", total=2) as advance:
        for waits_for in ("", "no connection to host", "no connection to host", "", "no connection to host"):
            advance(0, waits_for)
    assert capsys.readouterr().err == "no connection to host\n" * 2


def test_the_bar_says_whom_the_work_waits_for_until_it_goes_on(terminal):
    with terminal as shown:
        with console.progress("turns", total=2) as advance:
            advance(0, "no connection to host")
        waiting = without_colours(shown.getvalue())
        with console.progress("turns", total=2) as advance:
            advance(0, "no connection to host")
            advance(1)
    assert "no connection to host" in waiting.splitlines()[-1]
    assert without_colours(shown.getvalue()).splitlines()[-1].startswith("turns")


def test_who_started_the_command_is_told_whom_it_waits_for(tmp_path, monkeypatch):
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "progress"))
    with console.progress("turns", total=2) as advance:
        advance(0, "no connection to host")
    assert progress.trouble(tmp_path / "progress") == "no connection to host"


def test_progress_is_silent_when_asked(terminal):
    with terminal as shown, console.progress("scoring", total=2, quiet=True) as advance:
        advance(2)
    assert shown.getvalue() == ""


def test_progress_shows_count_rate_elapsed_and_remaining_time(terminal):
    with terminal as shown, console.progress("[scoring]", total=10, done=4) as advance:
        advance(6)
    pattern = r"\[scoring\] .* 10/10 +[\d.]+/s +0:00:\d\d +left +0:00:00"
    assert re.search(pattern, without_colours(shown.getvalue()))


def test_the_rate_does_not_count_what_an_earlier_run_did(terminal):
    with terminal as shown, console.progress("scoring", total=10, done=10):
        pass
    assert " 0.0/s " in without_colours(shown.getvalue())


def test_printable_keeps_letters_of_every_script_and_the_characters_asked_for():
    assert console.printable("naïve 日本\x1b[0m\tx\n", keep="\n") == "naïve 日本 [0m x\n"
