import logging
import os
import subprocess
import sys
from importlib.metadata import version

import pytest
import typer

from sweetrl.cli import commands
from sweetrl.errors import ConfigError, DataError, SandboxError, TrainingError


@pytest.fixture
def failing(monkeypatch, sweetrl):
    """Runs a command that raises the given error, or whatever else is typed instead of it."""

    def call(error, *typed):
        app = typer.Typer(rich_markup_mode=None)

        def fail(*, hard: bool = False) -> None:
            raise error

        app.command("fail")(fail)
        app.callback()(lambda: None)
        monkeypatch.setattr(commands, "app", app)
        return sweetrl(*(typed or ["fail"]))

    return call


@pytest.mark.parametrize("error", [ConfigError("no such model"), DataError("bad", line=3)])
def test_a_usage_error_is_one_line_and_exit_code_2(failing, error):
    finished = failing(error)
    assert (finished.code, finished.out, finished.err) == (2, "", f"error: {error}\n")


@pytest.mark.parametrize("error", [SandboxError("no isolation"), TrainingError("loss is nan")])
def test_a_failure_of_ours_is_one_line_and_exit_code_1(failing, error):
    finished = failing(error)
    assert (finished.code, finished.out, finished.err) == (1, "", f"error: {error}\n")


def test_of_the_processes_of_torchrun_the_first_one_complains_about_bad_input(failing, monkeypatch):
    for rank, said in ((0, "error: bad\n"), (1, "")):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        assert (finished := failing(DataError("bad"))).code == 2
        assert finished.err == said
    # What only one process knows is told by whichever it is.
    assert failing(TrainingError("loss is nan")).err == "error: loss is nan\n"


def test_a_message_cannot_break_the_line_or_drive_the_terminal(failing):
    finished = failing(ConfigError("odd\nname \x1b[2Jhere"))
    assert finished.err == "error: odd name  [2Jhere\n"


def test_a_warning_of_the_library_cannot_drive_the_terminal(monkeypatch, sweetrl):
    app = typer.Typer(rich_markup_mode=None)
    app.command("warn")(
        lambda: logging.getLogger("sweetrl.viewer").warning("%s: gone", "\x1b]0;owned\x07run")
    )
    app.callback()(lambda: None)
    monkeypatch.setattr(commands, "app", app)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    assert sweetrl("warn").err == " ]0;owned run: gone\n"


def test_an_interrupt_is_exit_code_130_and_a_note(failing):
    assert failing(KeyboardInterrupt()).err == "interrupted; rerun the same command to resume\n"
    finished = failing(KeyboardInterrupt("3 of 5 written"))
    assert finished.err == "interrupted: 3 of 5 written; rerun the same command to resume\n"
    assert finished.code == 130


def test_an_error_that_nobody_planned_for_keeps_its_traceback(failing):
    with pytest.raises(ZeroDivisionError):
        failing(ZeroDivisionError("a bug"))


def test_a_command_chooses_its_exit_code(failing):
    assert failing(typer.Exit(1)).code == 1


def test_a_reader_that_went_away_is_no_reason_to_complain(failing):
    finished = failing(BrokenPipeError())
    assert (finished.code, finished.out, finished.err) == (1, "", "")


def test_an_unknown_command_gets_a_suggestion(failing):
    finished = failing(None, "fial")
    assert finished.code == 2
    assert finished.err == "error: No such command 'fial'. Did you mean 'fail'? See `sweetrl --help`\n"


def test_an_unknown_option_names_the_command_whose_help_to_read(failing):
    finished = failing(None, "fail", "--hrd")
    assert finished.code == 2
    assert finished.err.startswith("error: No such option: --hrd")
    assert finished.err.endswith("see `sweetrl fail --help`\n")
    assert finished.err.count("\n") == 1


def test_the_version_is_the_installed_one(sweetrl):
    finished = sweetrl("--version")
    assert (finished.code, finished.out) == (0, f"sweetrl {version('sweetrl')}\n")


def test_without_a_command_the_help_is_shown(sweetrl):
    finished = sweetrl()
    assert finished.code == 0
    assert finished.out.startswith("Usage: sweetrl")


def test_the_module_is_the_same_command():
    ran = subprocess.run(
        [sys.executable, "-m", "sweetrl", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout == f"sweetrl {version('sweetrl')}\n"


POLICY = """
import atexit, os
from sweetrl.cli import main
atexit.register(lambda: print(os.environ["OMP_WAIT_POLICY"]))
main.main()
"""


@pytest.mark.parametrize(("chosen", "policy"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_do_not_wait_in_a_busy_loop_unless_the_user_wants_it(chosen, policy):
    known = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | chosen
    ran = subprocess.run(
        [sys.executable, "-c", POLICY, "--version"], env=known, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == policy


FLOOD = """
import typer
from sweetrl.cli import commands, console, main

def flood() -> None:
    for _ in range(100_000):
        console.print_json({"line": "x" * 50})

commands.app.command("flood")(flood)
raise SystemExit(main.run(["flood"]))
"""


def test_piping_into_head_leaves_no_traceback():
    flood = subprocess.Popen(
        [sys.executable, "-c", FLOOD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert flood.stdout.readline().startswith('{"line"')
    flood.stdout.close()
    assert flood.stderr.read() == ""
    flood.stderr.close()
    assert flood.wait() == 1
