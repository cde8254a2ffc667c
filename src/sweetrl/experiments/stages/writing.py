"""`tasks write`: tasks by a language model, of which only the sound and new ones are kept."""

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

import msgspec

from sweetrl import interrupts
from sweetrl.dialogue.building import ModelSettings
from sweetrl.domains.domain import Domain
from sweetrl.domains.drafting import Draft, Drafting, kept_tasks, write_drafts
from sweetrl.domains.duplicates import KnownTasks
from sweetrl.errors import DataError
from sweetrl.experiments.stages.filling import Tally, opened_models
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.models.specification import parse_spec
from sweetrl.records import RecordLog, open_log, read_lines, read_records, record_lines, write_lines
from sweetrl.settings import ScorerSettings
from sweetrl.types import Task, digest

DRAFTS_PER_TASK = 10
"""How many drafts are written at most for each task that is wanted."""


class Order(NamedTuple):
    """How many tasks to write, of which domain, and from what."""

    domain: Domain
    inspirations: Sequence[str]
    """Topics or snippets."""
    wanted: int
    against: Iterable[Task] = ()
    """Tasks not to repeat."""
    seed: int = 0


def drafts_of(output: Path) -> Path:
    """Where all drafts are kept, those that were rejected too."""
    return output.with_suffix(".drafts.jsonl")


def write_tasks_file(
    order: Order, writer: ModelSettings, output: Path, reporter: Reporter = SILENT
) -> tuple[Tally, list[Draft]]:
    """Write tasks until there are enough, or too many drafts were rejected; the drafts of this and earlier runs."""
    parse_spec(writer.spec)  # a wrong name is refused before a file is written
    tally = Tally(drafts_of(output), "drafts")
    config = {
        "model": writer.spec,
        "domain": order.domain.name,
        "inspirations": digest("\n".join(order.inspirations)),
        "sampling": writer.sampling,
        "seed": order.seed,
    }
    with open_log(
        tally.path,
        Draft,
        command="tasks write",
        config=config,
        identity=lambda draft: draft.id,
        settled=lambda draft: draft.failure is None,
    ) as log:
        return tally, interrupts.run(_write, order, writer, output, log, tally, reporter)


async def _write(
    order: Order,
    writer: ModelSettings,
    output: Path,
    log: RecordLog[Draft],
    tally: Tally,
    reporter: Reporter,
) -> list[Draft]:
    done = list(read_records(log.path, Draft)) if len(log) else []
    tally.before = len(done)
    async with opened_models(tally) as models:
        drafting = Drafting(
            order.domain, models.of(writer), order.inspirations, writer.sampling, order.seed, output.stem
        )
        await _draft(order, drafting, log, done, tally, reporter)
    tasks = list(kept_tasks(drafting, done, order.wanted))
    write_lines(output, record_lines(tasks), replace=True)
    return done


async def _draft(
    order: Order,
    drafting: Drafting,
    log: RecordLog[Draft],
    done: list[Draft],
    tally: Tally,
    reporter: Reporter,
) -> None:
    """Write drafts until enough are kept."""
    known, wanted = KnownTasks(order.domain, order.against), order.wanted
    kept = min(wanted, sum(draft.kept for draft in done))
    with (
        order.domain.open_scoring(ScorerSettings()) as scoring,
        reporter.progress("tasks", wanted, done=kept) as advance,
    ):
        drafts = write_drafts(
            drafting, scoring, known, tuple(done), wanted=wanted, most=wanted * DRAFTS_PER_TASK
        )
        async with aclosing(drafts):
            async for draft in drafts:
                log.append(draft.id, draft)
                tally.add(draft.failure)
                done.append(draft)
                advance(int(draft.kept))


def read_topics(path: Path) -> list[str]:
    """A topic a line."""
    lines = (line.decode("utf-8", "replace").strip() for _, line in read_lines(path))
    return _some([line for line in lines if line], path)


def read_snippets(path: Path) -> list[str]:
    """Each line is a text, or an object with one in `code`, `text` or `content`."""
    return _some([_snippet(line, path, number) for number, line in read_lines(path)], path)


def _snippet(line: bytes, path: Path, number: int) -> str:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        complaint = "is not JSON; each line is a text or an object with `code`"
        raise DataError(complaint, path=path, line=number) from None
    fields = value if isinstance(value, dict) else {"text": value}
    for key in ("code", "text", "content"):
        if isinstance(fields.get(key), str) and fields[key]:
            return str(fields[key])
    raise DataError("has no text in `code`, `text` or `content`", path=path, line=number)


def _some(found: list[str], path: Path) -> list[str]:
    if not found:
        raise DataError("has nothing to start from", path=path)
    return found
