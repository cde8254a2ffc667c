"""Prompts in files of the user's own, and the prompts that stored dialogues were rolled out with."""

from pathlib import Path

from sweetrl.domains.registry import all_domains, find_prompt
from sweetrl.errors import UsageError
from sweetrl.prompts import Prompt
from sweetrl.records import card_path, read_card, read_text


def read_prompt(name: str | Path | None) -> Prompt | None:
    """The prompt in a user's own file, or one that ships by its name, if one is given."""
    if name is None:
        return None
    if (shipped := find_prompt(str(name))) is not None:
        return shipped
    path = Path(name)
    return Prompt(read_text(path), source=path.name)


def refuse_other_domain(episodes: Path, name: str) -> None:
    """Refuse dialogues that were rolled out with the prompt of another domain, by their run card."""
    if not card_path(episodes).is_file():
        return
    used = str(read_card(episodes).config.get("agent_prompt", "")).partition(" ")[0]
    for other in all_domains():
        if other.name != name and used in (other.prompts.agent.source, other.prompts.single_turn.source):
            raise UsageError(f"{episodes}: rolled out with the prompt {used}; give --domain {other.name}")
