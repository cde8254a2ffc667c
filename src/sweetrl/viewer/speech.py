"""What a player sees of a reply that is still coming."""

from collections.abc import Callable

from sweetrl.errors import NoReplyError


class Speech:
    """What may be shown of words that are still coming: nothing that may be a thought.

    A collaborator's thought may quote the reference, and a text that has only begun does not tell a thought from a
    reply. So words are shown as they come once a thought has ended, or if the model's replies before had none.
    """

    def __init__(self, spoken: Callable[[str], str]) -> None:
        """`spoken` drops the thought of a whole text."""
        self._spoken = spoken
        self._thinks: bool | None = None
        """None before the first whole reply."""

    def so_far(self, text: str) -> str:
        """The part of a text that may be shown."""
        said = self._without_thought(text)
        return said if self._thinks is False or said != text.strip() else ""

    def learn(self, text: str) -> None:
        """Take in a whole reply."""
        self._thinks = bool(self._thinks) or self._without_thought(text) != text.strip()

    def _without_thought(self, text: str) -> str:
        try:
            return self._spoken(text).strip()
        except NoReplyError:
            return ""
