"""The secret of a chat."""

from sweetrl.types import Secret


class ChatSecret(Secret, frozen=True, forbid_unknown_fields=True):
    """What a critic may see of a chat and the agent did not."""

    reference: str = ""
    """A good result, or whatever else tells good turns from bad ones; empty where there is none."""
