"""Options of commands: those made from settings classes, and the files that several commands read and write."""

import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import NODEFAULT

from sweetrl.settings.schema import Field, build, section_in, settings_fields

TasksOption = Annotated[
    str,
    typer.Option(
        "--tasks", metavar="TASKS", help="A tasks.jsonl, a ColBench file, or mini-backend[:SPLIT[:N[:SEED]]]."
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, help="Only the first N tasks.", show_default="all"),
]
KnownTasksOption = Annotated[
    str | None,
    typer.Option(
        "--tasks", metavar="TASKS", help="The tasks, if published dialogues were scored by their ids."
    ),
]
EpisodesOption = Annotated[
    Path, typer.Option("--episodes", metavar="EPISODES", help="Ours, or published dialogues.")
]
CandidatesOption = Annotated[
    Path, typer.Option("--candidates", metavar="CANDIDATES", help="The output of `candidates` or `rank`.")
]
OutputOption = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The file to write.")]
FolderOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write; made if need be.")
]


def with_options(body: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the fields of each settings object that it takes as options of their own."""
    own = inspect.signature(body, eval_str=True).parameters.values()
    sections = {each.name: section for each in own if (section := section_in(each.annotation)) is not None}

    @functools.wraps(body)
    def command(**given: Any) -> Any:
        settings = {name: build(section, given) for name, section in sections.items()}
        kept = {each.name: given[each.name] for each in own if each.name not in sections}
        return body(**settings, **kept)

    parameters = [option for each in own for option in _parameters(each)]
    # Typer reads the signature; what the annotations of the body name need not exist here.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command


def _parameters(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """A parameter as it is, or the options of a settings object."""
    section = section_in(parameter.annotation)
    if section is None:
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        return
    for field in settings_fields(section):
        yield parameter_of(field)


def parameter_of(field: Field, name: str = "") -> inspect.Parameter:
    """A setting as an option, given to a parameter of its own name unless another is given."""
    option = typer.Option(
        field.option,
        help=field.setting.help,
        metavar=field.setting.metavar or None,
        min=field.low,
        max=field.high,
        show_default=field.setting.default or True,
    )
    return inspect.Parameter(
        name or field.name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[field.type, option],
        default=inspect.Parameter.empty if field.default is NODEFAULT else field.default,
    )
