"""How a zygote is started: its command line, its environment, and the files that its forks may read."""

import glob
import marshal
import os
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sweetrl.sandbox.isolation import Isolation, available_isolation

HOME = Path(__file__).parent
"""The folder that holds the package `inside`."""
ENVIRONMENT = {
    "PYTHONPATH": str(HOME),
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "OPENBLAS_NUM_THREADS": "1",
    "LD_BIND_NOW": "1",  # or every fork would look up the functions that it is the first to call
}
# Asked for here, once: `sysconfig` gives threads that ask first, and at the same time, half an answer.
_MULTIARCH, _BUILT_FOLDER, _SHARED_LIBRARY = sysconfig.get_config_vars("MULTIARCH", "LIBDIR", "INSTSONAME")


def command(isolation: Isolation, settings: dict[str, Any]) -> list[str]:
    """What starts a zygote with these settings."""
    # -s -S: no site-packages; -P: no working directory on the path; -B: nothing written.
    # Not -I, which would ignore PYTHONHASHSEED: sets must come out in one order everywhere.
    # Not -m, which loads modules that every fork would pay for.
    start = "from inside.zygote import main; main()"
    python = [sys.executable, "-s", "-S", "-P", "-B", "-c", start, marshal.dumps(settings).hex()]
    if isolation is not Isolation.BUBBLEWRAP:
        return python
    wrapper = [str(available_isolation().bubblewrap), "--unshare-all", "--new-session", "--dev", "/dev"]
    for path in filter(os.path.exists, [*_interpreter_paths(), *settings["readable"]]):
        wrapper += ["--ro-bind", path, path]
    return [*wrapper, *python]


def zygote_settings(isolation: Isolation, packages: tuple[str, ...]) -> dict[str, Any]:
    """What a zygote is told about the files that its forks may read and about how to confine itself."""
    folders = _package_folders(packages)
    return {
        "home": str(HOME),
        "library": sysconfig.get_path("stdlib"),
        "landlock": isolation is Isolation.LANDLOCK,
        "filter": isolation is not Isolation.UNSAFE,
        "readable": [*_library_paths(), *folders.values(), *(f"{path}.libs" for path in folders.values())],
        "packages": folders,
    }


def _package_folders(packages: tuple[str, ...]) -> dict[str, str]:
    """Where the named packages lie, those that are installed."""
    found = {}
    for name in packages:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found[name] = spec.submodule_search_locations[0]
    return found


def _library_paths() -> list[str]:
    """What the standard library consists of: its entries, never the site-packages below it."""
    library = Path(sysconfig.get_path("stdlib")).resolve()
    entries = [
        str(entry) for entry in library.iterdir() if entry.name not in ("site-packages", "dist-packages")
    ]
    shared = [f"/usr/lib/{_MULTIARCH}", f"/lib/{_MULTIARCH}"]
    # Interpreters that bring their own libraries (conda's, for example) keep them next to the standard library.
    folder = _library_folder()
    brought = [] if folder in shared else glob.glob(f"{folder}/lib*.so*")  # noqa: PTH207  see below
    return [
        *entries,
        *shared,
        *brought,
        "/lib64",
        "/etc/ld.so.cache",
        "/usr/share/zoneinfo",
        "/dev/null",
        "/dev/urandom",
    ]


def _library_folder() -> str:
    """Where the interpreter's shared library is. One that was moved names the folder for which it was built."""
    # Not by pathlib, which fails where that folder may not be read.
    beside = f"{sys.base_prefix}/lib"
    return beside if os.path.exists(f"{beside}/{_SHARED_LIBRARY}") else _BUILT_FOLDER  # noqa: PTH110


def _interpreter_paths() -> list[str]:
    """What else starting the interpreter takes, inside namespaces that hold nothing."""
    executable = Path(sys.executable)
    paths = [executable, executable.resolve(), executable.parent.parent / "pyvenv.cfg", HOME]
    return [*(str(path) for path in paths), f"{_library_folder()}/{_SHARED_LIBRARY}"]
