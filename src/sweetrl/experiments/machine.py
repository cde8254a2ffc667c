"""What this machine can do, and what to do about the rest: the findings of `sweetrl doctor`."""

import os
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Literal

from sweetrl.browser.assets import INSTALLING, PACKAGES, WebAssets
from sweetrl.browser.chromium import PROGRAMS, find_browser
from sweetrl.errors import UsageError, installing
from sweetrl.models.probe import Probe
from sweetrl.sandbox import Offer
from sweetrl.sandbox.inside.confinement import world_readable

GIB = 1 << 30
CGROUP_MEMORY = Path("/sys/fs/cgroup/memory.max")

EXTRA_PURPOSES = {
    "serve": "models behind an OpenAI-compatible endpoint",
    "train": "language models in this process, and training",
    "browser": "screenshots for frontend tasks",
    "view": "`sweetrl view` and `sweetrl play --web`",
    "gym": "the Gymnasium environment",
    "hub": "tasks and dialogues on the Hugging Face hub",
    "inspect": "`inspect eval sweetrl/colbench`",
    "openenv": "the OpenEnv server and its client",
    "verifiers": "the taskset and environment for `vf-eval`",
    "trl": "GRPO and datasets for TRL",
    "ray": "stages and shards on a Ray cluster",
    "test": "running the tests",
    "test-slow": "tests with a real language model",
    "test-train": "tests of training",
    "dev": "working on sweetrl itself",
    "docs": "building the documentation site",
    "release": "building and checking a release",
}


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    status: Literal["ok", "limited", "missing"]
    found: str
    purpose: str
    advice: str = ""
    """What to do about it; empty if nothing needs to be done."""


def examine(offer: Offer) -> list[Finding]:
    """The findings about this machine; `offer` says which isolation of untrusted code it supports."""
    return [*_machine(), *_isolation(offer), *_programs(), _torch(), *_extras()]


# ---------------------------------------------------------------- the machine


def _machine() -> Iterator[Finding]:
    yield Finding("python", "ok", f"{platform.python_version()} ({sys.executable})", "runs sweetrl")
    yield Finding("processor", "ok", f"{len(os.sched_getaffinity(0))} cores", "workers of score and rollout")
    yield _amount("memory", _memory_bytes(), 4, "about 1 GB per scoring worker", "use fewer --workers")
    free = shutil.disk_usage(Path.cwd()).free
    yield _amount("disk", free, 5, f"record files and checkpoints in {Path.cwd()}", "free some space")
    yield Finding("user", "ok", _user(), "whose rights the sandbox gives up")


def _user() -> str:
    if os.geteuid() != 0:
        return f"unprivileged (uid {os.geteuid()})"
    if world_readable(sysconfig.get_path("stdlib")):
        return "root; untrusted code runs as nobody"
    return "root; untrusted code stays root without any capability, as others cannot read this interpreter"


def _amount(name: str, size: int, enough_gib: int, purpose: str, advice: str) -> Finding:
    found = f"{size / GIB:.1f} GiB"
    if size >= enough_gib * GIB:
        return Finding(name, "ok", found, purpose)
    return Finding(name, "limited", found, purpose, advice)


def _memory_bytes() -> int:
    """Memory of the machine, or of the container if that has less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(physical, int(CGROUP_MEMORY.read_text()))
    except (OSError, ValueError):
        return physical


# ---------------------------------------------------------------- isolation of untrusted code


def _isolation(offer: Offer) -> Iterator[Finding]:
    yield _landlock(offer.landlock)
    yield Finding(
        "seccomp",
        "ok" if offer.seccomp else "missing",
        "filters work" if offer.seccomp else "no filters",
        "keeps system calls from untrusted code",
        "" if offer.seccomp else "use Linux 4.14 or newer on x86_64 or aarch64",
    )
    yield _bubblewrap(offer)


def _landlock(version: int) -> Finding:
    purpose = "keeps files and network from untrusted code"
    if version == 0:
        advice = "use Linux 5.13 or newer booted with lsm=landlock, or bubblewrap"
        return Finding("landlock", "missing", "not offered by the kernel", purpose, advice)
    if version < 4:
        advice = "Linux 6.7 or newer denies TCP twice; until then only the system call filter does"
        return Finding("landlock", "limited", f"version {version}", purpose, advice)
    return Finding("landlock", "ok", f"version {version}", purpose)


def _bubblewrap(offer: Offer) -> Finding:
    purpose = "isolates untrusted code where Landlock cannot"
    if offer.bubblewrap:
        return Finding("bubblewrap", "ok", offer.bubblewrap, purpose)
    needed = "not needed here, since Landlock works" if offer.landlock else "apt install bubblewrap"
    if shutil.which("bwrap"):
        advice = needed if offer.landlock else "allow unprivileged user namespaces, or run as root"
        return Finding("bubblewrap", "limited", "installed, but may not make namespaces", purpose, advice)
    return Finding("bubblewrap", "missing", "no bwrap on PATH", purpose, needed)


# ---------------------------------------------------------------- programs and packages


def _programs() -> Iterator[Finding]:
    yield _browser()
    yield _web_assets()
    purpose = "fetches the stylesheets that pages use (npm)"
    if path := shutil.which("node"):
        yield Finding("node", "ok", path, purpose)
    else:
        yield Finding("node", "missing", "no node on PATH", purpose, "apt install nodejs npm")


def _browser() -> Finding:
    purpose = "renders pages of frontend tasks"
    try:
        path = find_browser()
    except UsageError:
        named = os.environ.get("SWEETRL_BROWSER")
        found = f"no {named}, which SWEETRL_BROWSER names" if named else f"no {' or '.join(PROGRAMS)} on PATH"
        return Finding("browser", "missing", found, purpose, "apt install chromium-headless-shell")
    if os.geteuid() == 0:
        advice = "run as another user where pages may be malicious and not merely strange"
        return Finding("browser", "limited", f"{path}; refuses its own sandbox to root", purpose, advice)
    return Finding("browser", "ok", f"{path}; in its own sandbox", purpose)


def _web_assets() -> Finding:
    assets, purpose = WebAssets(), "stylesheets and fonts of pages"
    if absent := assets.missing():
        return Finding(
            "web assets", "missing", f"no {', '.join(absent)} in {assets.folder}", purpose, INSTALLING
        )
    return Finding("web assets", "ok", f"{', '.join(PACKAGES)} in {assets.folder}", purpose)


def _torch() -> Finding:
    purpose = "runs and trains models in this process"
    try:
        import torch
    except ModuleNotFoundError:
        return Finding("torch", "missing", "not installed", purpose, installing("train"))
    except (ImportError, OSError) as error:
        return Finding("torch", "limited", f"cannot be imported: {error}", purpose, "install it anew")
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    if devices:
        return Finding("torch", "ok", f"{torch.__version__}, {', '.join(devices)}", purpose)
    advice = "enough for small models; large ones need a GPU"
    return Finding("torch", "limited", f"{torch.__version__}, no GPU", purpose, advice)


def _extras() -> Iterator[Finding]:
    """One line per extra of the package, as its own metadata list them."""
    requirements = requires("sweetrl") or []
    for extra in metadata("sweetrl").get_all("Provides-Extra") or []:
        own = [each for each in requirements if re.search(rf"extra == ['\"]{extra}['\"]", each)]
        names = [match[0] for match in map(re.compile(r"[\w.-]+").match, own) if match]
        yield _extra(extra, [name for name in names if not _installed(name)])


def _extra(extra: str, absent: list[str]) -> Finding:
    name, purpose = f"extra {extra}", EXTRA_PURPOSES.get(extra, "an optional part")
    if not absent:
        return Finding(name, "ok", "installed", purpose)
    return Finding(name, "missing", f"no {', '.join(absent)}", purpose, installing(extra))


def _installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


# ---------------------------------------------------------------- models


def examine_model(name: str, probe: Probe) -> list[Finding]:
    """The findings about a model's server, from a probe (`models/probe.py`)."""
    varied = probe.varies and probe.distinct
    return [
        Finding(
            "sampling",
            "ok" if varied else "missing",
            "samples differ" if varied else f"{name} gives the same text again and again at temperature 1",
            "candidates of a turn must differ, or nothing is learned from them",
            "" if varied else "use a server that honours `temperature`, `seed` and `n`, such as vLLM",
        ),
        _honoured("n", probe.at_once, "several samples with one request", "candidates take more requests"),
        _honoured("temperature 0", probe.greedy, "the likeliest text", "greedy runs are not repeatable"),
        _honoured("seed", probe.seeded, "the same text again", "a run that is made again will differ"),
        _honoured("logprobs", probe.logprobs, "of sampled tokens", "nothing of sweetrl needs them"),
    ]


def _honoured(name: str, honoured: bool, purpose: str, consequence: str) -> Finding:  # noqa: FBT001
    found = "honoured" if honoured else "ignored or refused"
    return Finding(name, "ok" if honoured else "limited", found, purpose, "" if honoured else consequence)
