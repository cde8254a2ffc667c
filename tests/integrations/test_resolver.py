"""Which extras can be installed together, and beside which packages: a resolver is asked, nothing is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
UV = shutil.which("uv")
USERS = "browser,gym,hub,inspect,openenv,ray,serve,train,trl,view"
"""Every extra that is not for working on sweetrl itself, but `verifiers`, which excludes `openenv`."""

pytestmark = pytest.mark.skipif(UV is None, reason="needs the program `uv`; run by `make test-integrations`")


def resolved(requirements: list[str], python: str = "3.11") -> subprocess.CompletedProcess[str]:
    assert UV is not None
    command = [UV, "pip", "compile", "--quiet", "--no-header", "--python-version", python, "-"]
    return subprocess.run(command, input="\n".join(requirements), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("python", ["3.11", "3.13"])
def test_all_extras_of_users_install_together(python: str) -> None:
    ended = resolved([f"sweetrl[{USERS}] @ file://{CHECKOUT}"], python)
    assert ended.returncode == 0, ended.stderr


def test_verifiers_installs_with_the_light_extras() -> None:
    ended = resolved([f"sweetrl[gym,hub,serve,verifiers,view] @ file://{CHECKOUT}"])
    assert ended.returncode == 0, ended.stderr


def test_verifiers_and_openenv_exclude_each_other_as_documented() -> None:
    assert resolved([f"sweetrl[openenv,verifiers] @ file://{CHECKOUT}"]).returncode != 0


@pytest.mark.parametrize("peer", ["verifiers", "openai>=2", "openai<2", "vllm", "inspect-ai", "litellm"])
def test_it_installs_beside(peer: str) -> None:
    ended = resolved([f"sweetrl[hub,serve,view] @ file://{CHECKOUT}", peer])
    assert ended.returncode == 0, ended.stderr


def test_the_resolver_can_say_no() -> None:
    assert resolved([f"sweetrl[serve] @ file://{CHECKOUT}", "aiohttp<3"]).returncode != 0
