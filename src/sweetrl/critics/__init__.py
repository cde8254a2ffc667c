"""Critics: who scores single turns at training time, when the task's hidden information may be used.

Each file of this folder with an object `CRITIC` is one kind, and installed packages may bring more in the entry
point group `sweetrl.critics`.
"""

import pkgutil
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from sweetrl.critics.critic_type import NO_TOOLS, CriticTools, CriticType
from sweetrl.errors import DataError, UsageError
from sweetrl.learning.critic_cards import CRITIC_CARD, read_critic_card
from sweetrl.protocols import TurnCritic

GROUP = "sweetrl.critics"
FOLDER = CriticType(name="folder", argument="folder", takes=("precision",))
"""A trained critic, before its card is read."""


@cache
def critic_types() -> dict[str, CriticType]:
    """All kinds of critics by name; of two with one name, the one in this folder."""
    modules = (import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__))
    ours = [module.CRITIC for module in modules if hasattr(module, "CRITIC")]
    installed = [each.load() for each in entry_points(group=GROUP)]
    return {each.name: each for each in (*installed, *ours)}


def type_of(spec: str) -> CriticType:
    """The kind of critic that `--critic` calls so."""
    name, colon, _ = spec.partition(":")
    critic = critic_types().get(name, FOLDER)
    named = critic.open is not None and (colon or critic.usage.startswith(f"{name},"))
    return critic if named else FOLDER


def open_critic(spec: str, tools: CriticTools = NO_TOOLS) -> TurnCritic:
    """The critic that `--critic` calls so: the folder of a trained one, or NAME:... of another kind."""
    critic, (name, _, rest) = type_of(spec), spec.partition(":")
    if complaint := tools.unused(critic, spec):
        raise UsageError(complaint)
    if critic.open is None:
        return load_critic(Path(spec.removeprefix("hf:")), tools)
    if critic.usage.startswith(f"{name}:") and not rest:
        raise UsageError(f"'{spec}' lacks its second half; write {critic.usage}")
    return critic.open(rest, tools)


def load_critic(folder: Path, tools: CriticTools = NO_TOOLS) -> TurnCritic:
    """The critic that training left in a folder."""
    if not folder.is_dir():
        raise UsageError(_complaint(str(folder)))
    card = read_critic_card(folder)
    kind = "vision" if card.vision else card.kind
    for critic in critic_types().values():
        if kind in critic.cards and critic.load is not None:
            if complaint := tools.unused(critic, str(folder)):
                raise UsageError(complaint)
            return critic.load(folder, card, tools)
    raise DataError(f"is a critic of the kind '{kind}', which is not installed", path=folder / CRITIC_CARD)


def _complaint(spec: str) -> str:
    usages = {name: critic.usage for name, critic in critic_types().items() if critic.usage}
    name, colon, _ = spec.partition(":")
    close = get_close_matches(name, usages, n=1) if colon else []
    if close:
        return f"there is no kind of critic '{name}'; did you mean {usages[close[0]]}?"
    return f"{spec}: there is no such folder of a critic; give one, or write {'; '.join(usages.values())}"
