"""`sweetrl tasks write`: tasks by a language model, of which only the sound and new ones are kept."""

from collections import Counter
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from sweetrl import interrupts
from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.reporting import report_tally
from sweetrl.dialogue.building import ModelSettings, parse_price
from sweetrl.domains.drafting import Draft, Drafting, kept_tasks, write_drafts
from sweetrl.domains.duplicates import KnownTasks
from sweetrl.domains.registry import find_domain
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import DataError, UsageError
from sweetrl.experiments.stages.filling import Tally, opened_models
from sweetrl.records import RecordLog, open_log, read_lines, read_records, refuse_existing, write_lines
from sweetrl.settings import ScorerSettings
from sweetrl.types import Sampling, Task, digest

DRAFTS_PER_TASK = 10
"""How many drafts are written at most for each task that is wanted."""


def write(
    output: Annotated[Path, typer.Option("-o", "--output", help="The tasks.jsonl to write.")],
    *,
    model: Annotated[str, typer.Option("--model", help="Who writes: openai:MODEL@URL or hf:PATH_OR_ID.")],
    n: Annotated[int, typer.Option("--n", min=1, help="How many tasks.")] = 100,
    topics: Annotated[
        Path | None, typer.Option("--topics", help="What they are about: a file with a topic a line.")
    ] = None,
    snippets: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Or a .jsonl of texts or code to start from, in `code`, `text` or alone."
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against", metavar="TASKS", help="Tasks not to repeat, such as a test set; repeatable."
        ),
    ] = None,
    domain: DomainOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed writes other tasks.")] = 0,
    temperature: Annotated[float, typer.Option("--temperature", min=0.0, help="Of the writing.")] = 1.0,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of one draft.")] = 2048,
    price: Annotated[
        str | None, typer.Option("--price", metavar="IN/OUT", help="Per million tokens: 0.5/1.5.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Have a language model write tasks; keep those without a defect that repeat no other.

    Each draft is run in the sandbox. All drafts are kept beside the output with the reason why they were rejected; the
    same command goes on where it was stopped, and a larger --n adds to what is there.

    Example:
        sweetrl tasks write --model openai:MODEL@http://localhost:8000/v1 --topics topics.txt --n 50 -o tasks.jsonl
    """
    inspirations, kind = _inspirations(topics, snippets), find_domain(domain or "backend")
    drafts = output.with_suffix(".drafts.jsonl")
    if not drafts.exists():
        refuse_existing(output, replace=force)
    sampling = Sampling(temperature=temperature, max_tokens=max_tokens)
    config = {
        "model": model,
        "domain": kind.name,
        "inspirations": digest("\n".join(inspirations)),
        "sampling": sampling,
        "seed": seed,
    }
    tally = Tally(drafts, "drafts")
    others = {task.id: task for source in against or () for task in load_tasks(source).values()}

    async def fill(log: RecordLog[Draft]) -> list[Task]:
        async with opened_models(tally) as models:
            writing = models.of(ModelSettings(model, sampling, parse_price(price)))
            drafting = Drafting(kind, writing, inspirations, sampling, seed, output.stem)
            return await _fill(log, drafting, others.values(), n, tally, quiet=quiet or json)

    with open_log(
        drafts,
        Draft,
        command="tasks write",
        config=config,
        identity=lambda draft: draft.id,
        settled=lambda draft: draft.failure is None,
    ) as log:
        tasks = interrupts.run(fill, log)
    encode = msgspec.json.encode
    write_lines(output, (encode(task) + b"\n" for task in tasks), replace=True)
    _report(output, drafts, len(tasks), n, tally, json=json, quiet=quiet)


async def _fill(
    log: RecordLog[Draft],
    drafting: Drafting,
    others: Iterable[Task],
    wanted: int,
    tally: Tally,
    *,
    quiet: bool,
) -> list[Task]:
    """Write drafts until enough are kept; the tasks of all that are there."""
    done = list(read_records(log.path, Draft)) if len(log) else []
    kept = sum(draft.kept for draft in done)
    known = KnownTasks(drafting.domain, others)
    with (
        drafting.domain.open_scoring(ScorerSettings()) as scoring,
        console.progress("tasks", wanted, done=min(kept, wanted), quiet=quiet) as advance,
    ):
        drafts = write_drafts(drafting, scoring, known, done, wanted=wanted, most=wanted * DRAFTS_PER_TASK)
        async with aclosing(drafts):
            async for draft in drafts:
                log.append(draft.id, draft)
                tally.add(draft.failure)
                done.append(draft)
                advance(int(draft.kept))
    return list(kept_tasks(drafting, done, wanted))


def _report(
    output: Path, drafts: Path, tasks: int, wanted: int, tally: Tally, *, json: bool, quiet: bool
) -> None:
    """How many were kept, why the others were not, and what it cost."""
    written = list(read_records(drafts, Draft))
    reasons = Counter(draft.rejected.partition(":")[0] for draft in written if draft.rejected)
    tally.extra |= {"tasks": tasks, "output": str(output), "rejected": dict(reasons)}
    if not json and not quiet:
        share = f"{tasks} of {len(written)} drafts" if len(written) != tasks else f"all {tasks} drafts"
        why = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        console.note(
            f"wrote {share} as tasks to {output}" + (f"; rejected: {why}, see {drafts}" if why else "")
        )
    if tasks < wanted:
        console.note(
            f"only {tasks} of {wanted} tasks came of {len(written)} drafts; another --model, more topics or another "
            f"--seed may help"
        )
    report_tally(tally, json=json, quiet=True)
    if tasks < wanted:
        raise typer.Exit(1)


def _inspirations(topics: Path | None, snippets: Path | None) -> list[str]:
    if (topics is None) == (snippets is None):
        raise UsageError("give either --topics FILE, with a topic a line, or --from SNIPPETS.jsonl")
    found = _topics(topics) if topics is not None else _snippets(snippets) if snippets is not None else []
    if not found:
        raise DataError("has nothing to start from", path=topics or snippets)
    return found


def _topics(path: Path) -> list[str]:
    lines = (line.decode("utf-8", "replace").strip() for _, line in read_lines(path))
    return [line for line in lines if line]


def _snippets(path: Path) -> list[str]:
    """Each line is a text, or an object with one in `code`, `text` or `content`."""
    found = []
    for number, line in read_lines(path):
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise DataError(
                "is not JSON; each line is a text or an object with `code`", path=path, line=number
            ) from None
        fields = value if isinstance(value, dict) else {"text": value}
        text = next(
            (fields[key] for key in ("code", "text", "content") if isinstance(fields.get(key), str)), None
        )
        if not text:
            raise DataError("has no text in `code`, `text` or `content`", path=path, line=number)
        found.append(text)
    return found
