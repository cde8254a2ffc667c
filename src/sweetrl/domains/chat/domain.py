"""The chat domain: dialogues that took place elsewhere. Their outcomes are given, so it has no scorer."""

from sweetrl.domains.chat.secret import ChatSecret
from sweetrl.domains.domain import Domain, Labels, Prompts
from sweetrl.prompts import load

HERE = "sweetrl.domains.chat"


CHAT = Domain(
    name="chat",
    secret=ChatSecret,
    reference=lambda secret: secret.reference,
    prompts=Prompts(
        agent=load("agent-chat", HERE),
        single_turn=load("agent-chat-single-turn", HERE),
        collaborator=load("collaborator-chat", HERE),
        privileged=load("privileged-chat", HERE),
    ),
    labels=Labels(
        task="An assistant and a user talk; the outcome of each dialogue came with it.",
        collaborator="user",
        reward="outcome",
        share=False,
        meaning="The mean outcome that came with the dialogues.",
    ),
)
