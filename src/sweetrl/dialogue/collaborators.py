"""Collaborators: the person's side of a dialogue, played by a model, a script or a recording."""

from collections.abc import Callable, Iterable, Sequence

from sweetrl.dialogue.blame import readable
from sweetrl.domains.domain import Domain
from sweetrl.domains.transcripts import COLLABORATOR_SAMPLING, spoken_reply, transcript
from sweetrl.errors import CollaboratorError, WordsError
from sweetrl.prompts import Prompt
from sweetrl.protocols import ChatModel
from sweetrl.types import Episode, Message, Reply, Role, Sampling, Task, digest

_OFFERED = {"problem_description", "hidden_information", "dialogue_history"}


class ModelCollaborator:
    """A collaborator played by a chat model that sees the reference.

    It reads the whole dialogue in one message that begins with the constant part, so that a server with a
    prefix cache reads the reference once. Pages are shown as their source.
    """

    def __init__(
        self, model: ChatModel, prompt: Prompt, *, domain: Domain, sampling: Sampling = COLLABORATOR_SAMPLING
    ) -> None:
        """`domain` is that of all tasks it will be asked about."""
        offered = _OFFERED.union(domain.collaborator_fields(()))
        prompt.check(needed={"hidden_information", "dialogue_history"}, offered=offered)
        self._model = model
        self.name = model.name
        self._prompt = prompt
        self._domain = domain
        self._sampling = sampling

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        """The model's reply, whole: the rules cut it."""
        view = self._view(task, history)
        [completion] = await self._model.complete([view], n=1, sampling=self._sampling, seed=seed)
        return Reply(spoken_reply(completion.text))

    def _view(self, task: Task, history: Sequence[Message]) -> Message:
        if task.domain != self._domain.name:
            raise CollaboratorError(
                f"a collaborator for {self._domain.name} tasks was given a {task.domain} task"
            )
        fields = {
            "problem_description": task.request,
            "hidden_information": self._domain.reference(task.secret),
            "dialogue_history": transcript(history, self._domain),
            **self._domain.collaborator_fields(history),
        }
        used = {name: text for name, text in fields.items() if name in self._prompt.fields}
        return Message(Role.USER, self._prompt.render(**used))


Script = Callable[[Task, Sequence[Message], int], str]
"""(task, history, seed) -> what the collaborator says."""


class ScriptedCollaborator:
    """A collaborator with fixed lines, one for each turn, or with a function that makes them up."""

    def __init__(self, script: Sequence[str] | Script, *, name: str = "scripted") -> None:
        self._script = script
        self.name = name

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        """The line for this turn."""
        if callable(self._script):
            return Reply(self._script(task, history, seed))
        turn = sum(message.role is Role.ASSISTANT for message in history) - 1
        if turn >= len(self._script):
            raise CollaboratorError(
                f"the script has {len(self._script)} lines, turn {turn + 1} needs one more"
            )
        return Reply(self._script[turn])


class ReplayedCollaborator:
    """A collaborator that says again what was said in stored dialogues, word for word.

    It can answer only where a stored dialogue of the task went exactly the same way so far. Where several did
    and got different replies, the seed picks one. Words that were never said before get no reply.
    """

    def __init__(self, episodes: Iterable[Episode], *, name: str = "replayed") -> None:
        self.name = name
        self._replies: dict[str, list[Reply]] = {}
        self._tasks: set[str] = set()
        for episode in episodes:
            for number, turn in enumerate(episode.turns):
                if turn.reply is not None:
                    self._tasks.add(episode.task_id)
                    history = (*episode.history(number), Message(Role.ASSISTANT, turn.said))
                    known = self._replies.setdefault(_situation(episode.task_id, history), [])
                    if turn.reply not in known:
                        known.append(turn.reply)

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        """The stored collaborator's reply in exactly this situation."""
        known = self._replies.get(_situation(task.id, history))
        if task.id not in self._tasks:
            raise CollaboratorError(f"no stored dialogue of task {task.id} has a reply")
        if known is None:
            raise WordsError(f"no stored dialogue of task {task.id} goes on from here", kind="not_stored")
        return known[seed % len(known)]


def _situation(task_id: str, history: Sequence[Message]) -> str:
    return digest("\x1f".join((task_id, *(message.text for message in readable(history)))))
