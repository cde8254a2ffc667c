"""Run cards: what changes results is on the card of a stage, and nothing else is."""

from pathlib import Path
from typing import Any, get_args

import pytest

from cli.stored_run import COMMANDS, command, write_run, written_by
from sweetrl.records import read_card, shard_path
from sweetrl.settings import settings_fields
from sweetrl.settings.schema import Field, Record
from sweetrl.settings.words import STAGES

ELSEWHERE = {
    "critic_prompt": "takes a critic zero:hf:PATH",
    "judge_prompt": "takes a judge",
    "judge_rounds": "takes a judge",
    "similarity": "takes pages",
    "show": "takes pages",
    "margin": "of pairs: takes another rule",
    "single_turn": "contradicts a collaborator",
    "critic": "is the point of `rank`",
    "precision": "takes a trained critic",
}
"""Settings that mean nothing to this small run, and why; their own tests change them."""
BESIDE = {"best_of": ("--critic", "scripted:overlap"), "max_cost": ("--price-agent", "1/1")}
"""Settings that do not come alone."""
PROMPT = "{problem_description} {hidden_information} {dialogue_history}"
VALUES: dict[str, Any] = {
    "agent": "scripted:unsure",
    "collaborator": "scripted:babble",
    "price_agent": "1/2",
    "price_collaborator": "1/2",
    "time_limit": "1h",
    "isolation": "unsafe",
    "limit": 2,
    "shard": "1/1",
    "max_tokens_total": 10**9,
    "max_cost": 10**9,
    "pairs rule": "frontend",
}


def changed(name: str, field: Field, folder: Path) -> tuple[str, ...]:
    """Words that give the setting a value which it does not have in the small run."""
    return (field.option,) if field.type is bool else (field.option, _other(name, field, folder))


def _other(name: str, field: Field, folder: Path) -> str:
    if field.name.endswith("_prompt"):
        (folder / "prompt.txt").write_text(PROMPT if field.name.startswith("collaborator") else "Work.")
        return str(folder / "prompt.txt")
    for known in (f"{name} {field.name}", field.name):
        if known in VALUES:
            return str(VALUES[known])
    if choices := [each for each in get_args(field.type) if isinstance(each, str)]:
        return next(each for each in choices if each != field.default)
    return str((field.default or 0) + 3) if field.high is None else str(field.high)


def config(sweetrl, folder: Path, name: str, output: str, *more: str) -> dict[str, Any]:
    fewer = ("--attempts", "1") if name in ("rollout", "candidates") else ()
    finished = sweetrl(*command(name, folder, folder / output), *fewer, *more)
    assert finished.code == 0, finished.err
    shard = more[more.index("--shard") + 1] if "--shard" in more else None
    return dict(read_card(shard_path(written_by(name, folder / output), shard)).config)


CASES = [
    pytest.param(name, field, id=f"{name} {field.option}")
    for name in COMMANDS
    for section in STAGES[name]
    for field in settings_fields(section)
    if field.name not in ELSEWHERE
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize(("name", "field"), CASES)
def test_a_card_tells_what_changes_results_and_nothing_else(
    sweetrl, small: Path, name: str, field: Field
) -> None:
    before = config(sweetrl, small, name, f"{name}-as-it-is")
    words = (*changed(name, field, small), *BESIDE.get(field.name, ()))
    after = config(sweetrl, small, name, f"{name}-{field.name}", *words)
    assert (before != after) == (field.setting.record is not Record.NOTHING)
