"""One dialogue, a turn at a time, with all the rules: the only place that knows what a turn is.

    dialogue = Dialogue(task, collaborator, seed=1)
    reply = await dialogue.say("What should happen to empty lists?")      # a `Reply`
    ended = await dialogue.say("I WANT TO ANSWER: def first(xs): ...")    # a `Conclusion`
    dialogue.episode                                                      # the record

The rollout engine, `sweetrl play` and the Gymnasium environment all run dialogues through it, so the same task, seed,
attempt and agent messages give the same episode everywhere.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from sweetrl.dialogue import rules as game
from sweetrl.dialogue.background import run_in_background
from sweetrl.dialogue.blame import cause, reply_or_excuse
from sweetrl.dialogue.rules import Conclusion, Rules
from sweetrl.domains.registry import domain_of
from sweetrl.errors import UsageError, WordsError, one_line
from sweetrl.protocols import Collaborator
from sweetrl.records import without_surrogates
from sweetrl.seeds import derive_seed
from sweetrl.types import Ending, Episode, Failure, Message, Reply, Role, Task, Turn, Unfinished, history_of

MESSAGE_CHARACTERS = 500
"""How much of an error's text a record keeps."""


class Dialogue:
    """A dialogue on one task. Whoever speaks for the agent calls `say` until it returns a `Conclusion`."""

    def __init__(
        self,
        task: Task,
        collaborator: Collaborator,
        *,
        rules: Rules | None = None,
        seed: int = 0,
        attempt: int = 0,
        agent: str = "agent",
        past: Sequence[Turn] = (),
    ) -> None:
        """`agent` is how the record names the agent. `past`: turns already taken, each with its reply."""
        self.task = task
        self._collaborator = collaborator
        self._rules = rules or Rules()
        self._seed = seed
        self._attempt = attempt
        self._agent = agent
        self._turns = list(past)
        self._history = list(history_of(task.request, past))
        self._unanswered: Turn | None = None
        """A turn whose reply is not there yet, or failed."""
        self._failure: Failure | None = None
        self._conclusion: Conclusion | None = None

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages that the agent may see: request, its own and the replies, without a system prompt."""
        return tuple(self._history)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far; one that failed is not among them."""
        return tuple(self._turns)

    @property
    def conclusion(self) -> Conclusion | None:
        """How the dialogue ended; None while it is open."""
        return self._conclusion

    def seed_of(self, speaker: str) -> int:
        """The seed of what `speaker` (`agent` or `collaborator`) says at this turn."""
        return derive_seed(self._seed, self.task.id, self._attempt, len(self._turns), speaker)

    async def say(self, output: str, *, trouble: str = "") -> Reply | Conclusion:
        """Take the agent's raw output as its turn; returns the collaborator's reply, or how this ended the dialogue.

        When the collaborator fails through no fault of the agent, its error is raised, `episode` is the record of a
        failed dialogue, and `say` may be called again. `trouble` is kept with the turn.
        """
        self._refuse_if_over()
        text = without_surrogates(output)
        turn = Turn(text, game.spoken(text), unfinished=isinstance(output, Unfinished), trouble=trouble)
        ended = game.conclude(domain_of(self.task), [*self._said(), turn.said], self._rules)
        if ended is not None:
            return self._end(turn, ended)
        self._unanswered, self._failure = turn, None
        try:
            reply = await self._reply_to(turn)
        except UsageError:
            raise
        except BaseException as error:
            self.fail("collaborator", error)
            raise
        self._add(replace(turn, reply=reply))
        return reply

    def say_sync(self, output: str) -> Reply | Conclusion:
        """`say` for code without an event loop, and for notebooks."""
        return run_in_background(self.say(output))

    def break_off(self, error: WordsError) -> Conclusion:
        """End the dialogue because the agent's own words keep it from going on; what it has said is scored."""
        self._refuse_if_over()
        ended = game.broken_off(domain_of(self.task), self._said())
        return self._end(Turn("", "", unfinished=True, trouble=f"agent: {error.kind}"), ended)

    def fail(self, stage: str, error: BaseException) -> Episode:
        """The record of this dialogue, which broke down in `stage` through no fault of the agent."""
        message = one_line(error)[:MESSAGE_CHARACTERS]
        self._failure = Failure(stage, cause(error), without_surrogates(message))
        return self.episode

    @property
    def episode(self) -> Episode:
        """The record. Before the end it reads as if the agent had broken off here."""
        ended, turns = self._conclusion, self._turns
        if self._failure is not None:
            ended = Conclusion(Ending.FAILED, None)
            turns = turns if self._unanswered is None else [*turns, self._unanswered]
        elif ended is None:
            ended = game.broken_off(domain_of(self.task), self._said())
        return Episode(
            task_id=self.task.id,
            attempt=self._attempt,
            seed=self._seed,
            agent=self._agent,
            collaborator=self._collaborator.name,
            request=self.task.request,
            turns=tuple(turns),
            ending=ended.ending,
            answer=ended.answer,
            failure=self._failure,
        )

    async def _reply_to(self, turn: Turn) -> Reply:
        history = [*self._history, Message(Role.ASSISTANT, turn.said)]
        seed = self.seed_of("collaborator")
        reply = await reply_or_excuse(self._collaborator, self.task, history, seed=seed)
        return replace(reply, text=game.cut_reply(without_surrogates(reply.text), domain_of(self.task)))

    def _end(self, turn: Turn, conclusion: Conclusion) -> Conclusion:
        self._conclusion = conclusion
        self._add(turn)
        return conclusion

    def _add(self, turn: Turn) -> None:
        self._unanswered = self._failure = None
        self._turns.append(turn)
        self._history.append(Message(Role.ASSISTANT, turn.said))
        if turn.reply is not None:
            self._history.append(Message(Role.USER, turn.reply.text))

    def _said(self) -> list[str]:
        return [turn.said for turn in self._turns]

    def _refuse_if_over(self) -> None:
        if self._conclusion is not None:
            raise UsageError(f"the dialogue is over: {self._conclusion.ending}; make a new one to go on")
