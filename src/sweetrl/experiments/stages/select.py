"""`select`: copies the records of files that are on some tasks."""

from collections.abc import Container, Iterator, Sequence
from pathlib import Path

import msgspec

from sweetrl.errors import DataError, UsageError
from sweetrl.records import LineDecoder, make_folder, read_lines, write_lines


def select_records(files: Sequence[Path], tasks: Container[str], folder: Path) -> dict[str, int]:
    """Copy what is on these tasks into files of the same names; how many records each has."""
    _refuse_clashes(files, folder)
    counts = {path: sum(1 for _ in _chosen(path, tasks)) for path in files}
    for path in files:
        if not counts[path]:
            raise DataError("has no record on these tasks; give the tasks that it is about", path=path)
    make_folder(folder)
    # The lines as they are, so that nothing of them is lost.
    return {
        str(folder / path.name): write_lines(folder / path.name, _chosen(path, tasks), replace=True)
        for path in files
    }


def _refuse_clashes(files: Sequence[Path], output: Path) -> None:
    names = [path.name for path in files]
    if len(set(names)) < len(names):
        raise UsageError("two files have the same name; select from them into different folders")
    for path in files:
        if path.resolve().parent == output.resolve():
            raise UsageError(f"{path}: is in {output} itself; choose another folder with -o")


def _chosen(path: Path, tasks: Container[str]) -> Iterator[bytes]:
    class OnTask(msgspec.Struct):
        task_id: str

    decode = LineDecoder(OnTask, path)
    for number, line in read_lines(path):
        if decode(number, line).task_id in tasks:
            yield line.rstrip(b"\n") + b"\n"
