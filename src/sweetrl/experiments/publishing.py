"""Publishing on the Hugging Face hub: which files of a model or a run go there, and what their card says.

Planning sends nothing. Checkpoints are not published, nor is any file of an unknown kind: a folder may hold keys or
notes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sweetrl.errors import DataError, UsageError, first_line, needs_extra
from sweetrl.experiments.layout import METRICS
from sweetrl.records import card_path, read_card, read_json, read_lines
from sweetrl.types import RunMetrics

if TYPE_CHECKING:
    from huggingface_hub import HfApi

CARD = "README.md"
RESULTS = ".eval_results/sweetrl.yaml"
MODEL_FILES = ("*.safetensors", "*.json", "*.jinja", "*.model", "merges.txt", "vocab.txt", "log.jsonl", CARD)
"""Files at the top of a trained model's folder; its checkpoints are in folders below and are not published."""
RECORD_FILES = ("*.jsonl", "*.run.json", "metrics.json", "results.json", "results.md", "report.html")


@dataclass(frozen=True)
class Publication:
    """Files that would be published on the hub."""

    repository: str
    kind: Literal["model", "dataset"]
    files: dict[str, Path | bytes]
    """By name in the repository: a file of this machine, or content written for the hub."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(
            len(each) if isinstance(each, bytes) else each.stat().st_size for each in self.files.values()
        )


def plan_publication(
    source: Path,
    repository: str,
    *,
    results: Path | None = None,
    benchmark: str | None = None,
    licence: str | None = None,
) -> Publication:
    """The files of a trained model's folder, a run's folder or one record file that belong on the hub.

    `results` is a scored run of that model on the dataset `benchmark`, told in the hub's own format.
    """
    if repository.count("/") != 1:
        raise UsageError(f"{repository}: write OWNER/NAME of the repository on the hub")
    if (results is None) != (benchmark is None):
        raise UsageError("--results FOLDER and --benchmark OWNER/NAME belong together; give both or neither")
    if (source / "config.json").is_file():
        files: dict[str, Path | bytes] = dict(_found(source, MODEL_FILES))
        if results is not None and benchmark is not None:
            files[RESULTS] = _results_yaml(results, benchmark)
        return Publication(repository, "model", files)
    if results is not None:
        raise UsageError(f"{source}: has no config.json, so it is no model that results could be about")
    records = dict(_found(source, RECORD_FILES)) if source.is_dir() else _one_file(source)
    if not any(name.endswith(".jsonl") for name in records):
        raise DataError("has neither a model nor record files (.jsonl)", path=source)
    card = _dataset_card(repository, records, licence)
    return Publication(repository, "dataset", {**records, CARD: card.encode()})


def publish(publication: Publication, *, private: bool) -> str:
    """Send it; the address of the commit. The client's own login is used."""
    with needs_extra("publishing", "hub"):
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError
    try:
        return _send(HfApi(library_name="sweetrl"), publication, private=private)
    except (HfHubHTTPError, LocalTokenNotFoundError, OSError, ValueError) as error:
        reason = first_line(error).rstrip(".")
        raise UsageError(
            f"{publication.repository}: the hub says: {reason}; log in with `hf auth login`"
        ) from error


def _send(api: "HfApi", publication: Publication, *, private: bool) -> str:
    from huggingface_hub import CommitOperationAdd

    api.create_repo(publication.repository, repo_type=publication.kind, private=private, exist_ok=True)
    additions = [
        CommitOperationAdd(name, content if isinstance(content, bytes) else str(content))
        for name, content in publication.files.items()
    ]
    commit = api.create_commit(
        publication.repository,
        additions,
        commit_message=f"{len(additions)} files by sweetrl",
        repo_type=publication.kind,
    )
    return str(commit.commit_url)


def _found(folder: Path, patterns: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    paths = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return ((path.name, path) for path in sorted(paths))


def _one_file(path: Path) -> dict[str, Path]:
    if not path.is_file():
        raise DataError("no such file or folder; give a model, a run or a record file", path=path)
    beside = card_path(path)
    return {path.name: path} | ({beside.name: beside} if beside.is_file() else {})


# ---------------------------------------------------------------- results and cards


def _results_yaml(folder: Path, benchmark: str) -> bytes:
    """The success of a scored run in the hub's format of evaluation results."""
    with needs_extra("results for the hub", "hub"):
        from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    metrics = read_json(folder / METRICS, RunMetrics, "the metrics of a scored run")
    success = metrics.metrics["success"]
    if success.value is None:
        raise DataError("has no success rate: nothing was scored", path=folder / METRICS)
    low, high = (100 * (bound or 0) for bound in (success.low, success.high))
    entry = EvalResultEntry(
        dataset_id=benchmark,
        task_id="success",
        value=round(100 * success.value, 2),
        notes=f"{success.count} dialogues, 95 % interval {low:.1f} to {high:.1f}",
    )
    # JSON is valid YAML.
    return msgspec.json.format(msgspec.json.encode(eval_result_entries_to_yaml([entry]))) + b"\n"


def _dataset_card(repository: str, files: dict[str, Path], licence: str | None) -> str:
    told = "\n".join(_row(name, path) for name, path in files.items() if name.endswith(".jsonl"))
    terms = f"license: {licence}\n" if licence else ""
    return f"""---
{terms}tags: [sweetrl, multi-turn, credit-assignment]
---

# {repository.partition("/")[2]}

Records of multi-turn dialogues, one JSON object a line, written by sweetrl.

| file | records | what they are | how they were made |
|---|---|---|---|
{told}
"""


def _row(name: str, path: Path) -> str:
    count, schema = 0, "unknown"
    for _, line in read_lines(path):
        if not count:
            schema = _schema(line)
        count += 1
    return f"| `{name}` | {count:,} | `{schema}` | {_made_by(path)} |"


def _schema(line: bytes) -> str:
    try:
        first: Any = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return "unknown"
    return str(first.get("schema", "unknown")) if isinstance(first, dict) else "unknown"


def _made_by(path: Path) -> str:
    try:
        card = read_card(path)
    except DataError:
        return "not known: it has no run card"
    ended = "" if card.finished else ", not finished"
    return f"`sweetrl {card.command}`, version {card.versions.get('sweetrl', 'unknown')}{ended}"
