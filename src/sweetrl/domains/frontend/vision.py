"""A collaborator for pages played by a model that sees: the wanted page and the draft, as pictures."""

from collections.abc import Sequence

from sweetrl.domains.frontend.designer import Keep, reference_shot
from sweetrl.domains.registry import domain_of
from sweetrl.domains.transcripts import COLLABORATOR_SAMPLING, spoken_reply, transcript
from sweetrl.errors import PageError
from sweetrl.outputs import last_page
from sweetrl.prompts import Prompt
from sweetrl.protocols import ChatModel, Renderer
from sweetrl.types import Message, Reply, Role, Sampling, Shot, Task, picture_digest

_OFFERED = {"problem_description", "dialogue_history", "current_page"}


class VisionCollaborator:
    """A `Collaborator` for frontend tasks: each turn one message with two pictures and the instruction."""

    def __init__(
        self,
        model: ChatModel,
        prompt: Prompt,
        renderer: Renderer,
        *,
        sampling: Sampling = COLLABORATOR_SAMPLING,
        keep: Keep = picture_digest,
    ) -> None:
        """The renderer should remember references; `keep` is given every draft that the model sees."""
        prompt.check(needed={"dialogue_history"}, offered=_OFFERED)
        self._model = model
        self.name = model.name
        self._prompt = prompt
        self._renderer = renderer
        self._sampling = sampling
        self._keep = keep

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        """The model's reply, whole: the rules cut it."""
        reference = await reference_shot(self._renderer, task)
        shown, note = await self._draft(history)
        view = self._view(task, history, note, [reference] if shown is None else [reference, shown])
        [completion] = await self._model.complete([view], n=1, sampling=self._sampling, seed=seed)
        said = spoken_reply(completion.text)
        return Reply(said, None if shown is None else self._keep(shown.png))

    async def _draft(self, history: Sequence[Message]) -> tuple[Shot | None, str]:
        """The last page shown and the prompt's sentence about it."""
        page = last_page([message.text for message in history if message.role is Role.ASSISTANT])
        if page is None:
            return None, "The designer has not shown a draft yet."
        try:
            return await self._renderer.render(page), "The second picture is the designer's current draft."
        except PageError as error:
            return None, f"The designer's current draft cannot be shown: {error}."

    def _view(self, task: Task, history: Sequence[Message], note: str, shots: Sequence[Shot]) -> Message:
        fields = {
            "problem_description": task.request,
            "dialogue_history": transcript(history, domain_of(task)),
            "current_page": note,
        }
        used = {name: text for name, text in fields.items() if name in self._prompt.fields}
        return Message(Role.USER, self._prompt.render(**used), tuple(shot.png for shot in shots))
