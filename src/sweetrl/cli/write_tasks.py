"""`sweetrl tasks write`: tasks by a language model, of which only the sound and new ones are kept."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.reporting import TerminalReporter, report_tally
from sweetrl.dialogue.building import ModelSettings, parse_price
from sweetrl.domains.drafting import Draft
from sweetrl.domains.registry import DEFAULT, find_domain
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import UsageError
from sweetrl.experiments.stages import writing
from sweetrl.experiments.stages.filling import Tally
from sweetrl.records import refuse_existing
from sweetrl.types import Sampling


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
    temperature: Annotated[float, typer.Option("--temperature", min=0.0, help="Sampling temperature.")] = 1.0,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, help="The most tokens in one draft.")
    ] = 2048,
    price: Annotated[
        str | None, typer.Option("--price", metavar="IN/OUT", help="Per million tokens: 0.5/1.5.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Have a language model write tasks; keep those without a defect that repeat no other.

    Each draft is run in the sandbox. All drafts are kept beside the output with the reason why they were rejected; the
    same command resumes after an interruption, and a larger --n adds tasks.

    Example:
        sweetrl tasks write --model openai:MODEL@http://localhost:8000/v1 --topics topics.txt --n 50 -o tasks.jsonl
    """
    inspirations = _inspirations(topics, snippets)
    if not writing.drafts_of(output).exists():
        refuse_existing(output, replace=force)
    others = {task.id: task for source in against or () for task in load_tasks(source).values()}
    order = writing.Order(find_domain(domain or DEFAULT), inspirations, n, tuple(others.values()), seed)
    sampling = Sampling(temperature=temperature, max_tokens=max_tokens)
    writer = ModelSettings(model, sampling, parse_price(price))
    tally, drafts = writing.write_tasks_file(order, writer, output, TerminalReporter(quiet=quiet or json))
    _report(output, drafts, n, tally, json=json, quiet=quiet)


def _inspirations(topics: Path | None, snippets: Path | None) -> Sequence[str]:
    if topics is not None and snippets is None:
        return writing.read_topics(topics)
    if snippets is not None and topics is None:
        return writing.read_snippets(snippets)
    raise UsageError("give either --topics FILE, with a topic a line, or --from SNIPPETS.jsonl")


def _report(
    output: Path, drafts: Sequence[Draft], wanted: int, tally: Tally, *, json: bool, quiet: bool
) -> None:
    """Report how many tasks were kept, why the others were not, and what it cost."""
    tasks = min(wanted, sum(draft.kept for draft in drafts))
    reasons = Counter(draft.rejected.partition(":")[0] for draft in drafts if draft.rejected)
    tally.extra |= {"tasks": tasks, "tasks_file": str(output), "rejected": dict(reasons)}
    if not json and not quiet:
        why = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        console.note(
            f"{output}: {tasks} tasks of {len(drafts)} drafts"
            + (f"; rejected: {why}, see {tally.path}" if why else "")
        )
    if tasks < wanted:
        console.note(
            f"only {tasks} of {wanted} tasks were kept from {len(drafts)} drafts; another --model, more topics or "
            f"another --seed may help"
        )
    report_tally(tally, json=json, quiet=True)
    if tasks < wanted:
        raise typer.Exit(1)
