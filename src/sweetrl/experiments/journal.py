"""Which stages of an experiment are done: `run.json` in its folder."""

import shlex
from pathlib import Path
from typing import Any

from sweetrl.errors import ConfigError
from sweetrl.experiments.pipeline import Stage
from sweetrl.records import make_folder, read_json, write_json
from sweetrl.settings.words import same_command

JOURNAL = "run.json"


class Journal:
    """Which stages are done, in a file of the run's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL
        make_folder(folder)
        self.entries = self._read()

    def _read(self) -> list[dict[str, Any]]:
        there = self._path.exists()
        return read_json(self._path, list[dict[str, Any]], "the journal of a run") if there else []

    def has(self, stage: Stage) -> bool:
        """Whether the stage is done; one that was done otherwise is an error."""
        entry = next((each for each in self.entries if each["stage"] == stage.name), None)
        if entry is None:
            return False
        if not same_command(entry["arguments"], stage.arguments):
            raise ConfigError(
                f"{self._path}: the stage {stage.name} was done with other settings "
                f"({_difference(entry['arguments'], stage.arguments)}); choose another output"
            )
        return True

    def add(self, stage: Stage, code: int, seconds: float) -> None:
        """Note that the stage is done."""
        self.entries.append(
            {
                "stage": stage.name,
                "arguments": list(stage.arguments),
                "output": str(stage.output),
                "code": code,
                "seconds": round(seconds, 1),
            }
        )
        write_json(self._path, self.entries)


def _difference(before: list[str], now: tuple[str, ...]) -> str:
    gone = [word for word in before if word not in now]
    new = [word for word in now if word not in before]
    return f"was {shlex.join(gone) or 'without'}, now {shlex.join(new) or 'without'}"
