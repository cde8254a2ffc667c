"""Dialogues as prompts for a model that plays the collaborator, and the parsing of its replies."""

import re
from collections.abc import Sequence

from sweetrl.domains.domain import Domain
from sweetrl.errors import NoReplyError
from sweetrl.types import Message, Role, Sampling

COLLABORATOR_SAMPLING = Sampling(temperature=0.0, max_tokens=512)
"""Temperature 0 is the paper's; 512 tokens are more than the rules keep of a reply."""


_THOUGHT_END = "</think>"
_SPECIAL_TOKEN = re.compile(r"<\|[^|<>]{1,40}\|>|</?s>|<(?:pad|eos|bos|unk|(?:start|end)_of_turn)>")


def spoken_reply(text: str) -> str:
    """The spoken part of a reply of a model that plays the collaborator; its thought may quote the reference.

    `NoReplyError` if that is empty: white space, special tokens, or a thought without an end.
    """
    said = text.rpartition(_THOUGHT_END)[2]
    words = "" if said.lstrip().startswith("<think>") else _SPECIAL_TOKEN.sub("", said)
    if not any(each.isprintable() and not each.isspace() for each in words):
        raise NoReplyError("the model that plays the collaborator said nothing", kind="no_content")
    return said


def transcript(history: Sequence[Message], domain: Domain) -> str:
    """A dialogue as text for its collaborator, who is `You`."""
    return "\n".join(
        f"{domain.labels.agent}: {domain.in_transcript(message.text)}"
        if message.role is Role.ASSISTANT
        else f"You: {message.text}"
        for message in history
    )
