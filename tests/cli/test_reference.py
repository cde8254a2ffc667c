import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
CHECKED_IN = CHECKOUT / "docs" / "cli.md"
SCRIPT = runpy.run_path(str(CHECKOUT / "scripts" / "cli_reference.py"))
help_pages, reference = SCRIPT["help_pages"], SCRIPT["reference"]
HEAVY = ("accelerate", "datasets", "openai", "peft", "pydantic", "scipy", "torch", "transformers")
NEEDLESS = (*HEAVY, "asyncio", "msgspec", "numpy", "rich")
"""To list the commands, which takes none of their modules."""

HELP = """
import json, sys
from sweetrl.cli.main import run

code = run([*sys.argv[1:], "--help"])
json.dump({"code": code, "modules": sorted(sys.modules)}, sys.stderr)
"""


def test_the_checked_in_reference_is_not_stale():
    assert CHECKED_IN.read_text() == reference(), "run: scripts/cli_reference.py > docs/cli.md"


def test_the_reference_covers_commands_of_groups():
    assert {"sweetrl", "sweetrl tasks", "sweetrl tasks import", "sweetrl doctor"} <= set(help_pages())


@pytest.mark.parametrize("path", help_pages())
def test_help_works_and_imports_nothing_heavy(path):
    ran = subprocess.run(
        [sys.executable, "-c", HELP, *path.split()[1:]], capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith(f"Usage: {path} ")
    ended = json.loads(ran.stderr)
    loaded = set(ended["modules"])
    assert (ended["code"], loaded & set(NEEDLESS if path == "sweetrl" else HEAVY)) == (0, set())


@pytest.mark.parametrize("path", help_pages())
def test_every_command_says_what_it_does(path):
    usage, blank, description, *_ = help_pages()[path].splitlines()
    assert usage.startswith("Usage: ")
    assert blank == ""
    assert description.strip()
    assert description.startswith("  ")
