"""The chat domain: dialogues that were held elsewhere. Their outcomes are given, so it has no scorer."""

from sweetrl.domains.chat.secret import ChatSecret
from sweetrl.domains.domain import Domain, Prompts
from sweetrl.prompts import load

TEXTS = "sweetrl.domains.chat"


def _reference(secret: ChatSecret) -> str:
    return secret.reference


CHAT = Domain(
    name="chat",
    secret=ChatSecret,
    reference=_reference,
    prompts=Prompts(
        agent=load("agent-chat", TEXTS),
        single_turn=load("agent-chat-single-turn", TEXTS),
        collaborator=load("collaborator-chat", TEXTS),
        privileged=load("privileged-chat", TEXTS),
    ),
)
