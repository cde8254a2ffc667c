"""The secret of a chat."""

from sweetrl.types import Secret


class ChatSecret(Secret, frozen=True, forbid_unknown_fields=True):
    """Information about a chat that a critic may see and the agent did not."""

    reference: str = ""
    """A good result, or anything else that distinguishes good turns from bad ones; may be empty."""
