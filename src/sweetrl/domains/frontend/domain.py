"""The frontend domain: web pages, described by a designer and scored by how similar they look."""

from collections.abc import Sequence

from sweetrl.domains.domain import Domain, Labels, Pictures, Prompts, lazily
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.outputs import last_page, without_page
from sweetrl.prompts import load
from sweetrl.types import Message, Role

HERE = "sweetrl.domains.frontend"
PLAIN = "mini-frontend-plain"


def _current_page(history: Sequence[Message]) -> dict[str, str]:
    said = [message.text for message in history if message.role is Role.ASSISTANT]
    return {"current_page": last_page(said) or "(nothing has been shown yet)"}


FRONTEND = Domain(
    name="frontend",
    secret=FrontendSecret,
    reference=lambda secret: secret.page,
    prompts=Prompts(
        agent=load("agent-frontend", HERE),
        single_turn=load("agent-frontend-single-turn", HERE),
        collaborator=load("collaborator-frontend", HERE),
        privileged=load("privileged-frontend", HERE),
        more=(load("privileged-mini-page", HERE),),
    ),
    labels=Labels(
        task="An agent builds a web page from a description, shows drafts to a person who has the wanted page in view, "
        "and is scored by how similar its last page looks.",
        agent="Designer",
        reference="wanted page",
        language="html",
        reward="similarity",
        meaning="How similar the page is to the wanted one.",
        checks="aspects of the wanted page met",
        goal="Ask about what the request leaves open, then hand in an HTML page that looks like the wanted one.",
    ),
    answer=last_page,
    reply_limit=1000,
    scoring=lazily(f"{HERE}.scoring:open_pages"),
    by_success=False,
    collaborators={
        "designer": lazily(f"{HERE}.designer:open_designer"),
        "designer:quote": lazily(f"{HERE}.designer:open_quoting_designer"),
    },
    agents={
        "page-mediocre": lazily(f"{HERE}.plain_pages.builder:MediocreBuilder"),
        "page-listening": lazily(f"{HERE}.plain_pages.builder:ListeningBuilder"),
        "page-guessing": lazily(f"{HERE}.plain_pages.builder:GuessingBuilder"),
    },
    generators={
        "mini-frontend": lazily(f"{HERE}.mini_frontend:make_tasks"),
        PLAIN: lazily(f"{HERE}.plain_pages:make_tasks"),
    },
    turn_limits={PLAIN: 5},
    published_line=lazily("sweetrl.domains.colbench:published_line"),
    in_transcript=lambda said: without_page(said, "(a draft of the page)"),
    collaborator_fields=_current_page,
    pictures=Pictures(
        page=lambda secret: secret.page,
        collaborator=lazily(f"{HERE}.vision:VisionCollaborator"),
        collaborator_prompt=load("collaborator-frontend-vision", HERE),
        privileged_prompt=load("privileged-frontend-vision", HERE),
    ),
    leak_index=lazily("sweetrl.domains.leaks.detection:page_reference"),
    oracles={PLAIN: lazily(f"{HERE}.plain_pages:right_choices")},
)
