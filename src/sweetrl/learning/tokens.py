"""Dialogues as tokens, each with the number of the agent's turn that it belongs to.

A turn is encoded as it is drawn: the prompt that the chat template makes of the history, then the raw output,
then the token that ends a turn, unless a limit of tokens ended it. A later turn continues the sequence of an
earlier one only where its prompt begins with exactly those tokens; otherwise it starts a sequence of its own. So
the masks are right under every template, whatever it trims, merges, moves or adds, and nothing is ever searched
for in a text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from sweetrl.errors import DataError, UsageError
from sweetrl.types import Message, Role, Turn, Unfinished

NO_TURN = -1
"""Marks tokens that are not the agent's."""

# Two contents without a common first or last character: what two renderings share is the template's.
_PROBES = ("probe", "other")
_ANCHOR = "\n"


class TooLongError(DataError):
    """A turn that does not fit into the context even without all that came before it."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; raise max_tokens or leave the dialogue out")
        self.reason = reason


@dataclass(frozen=True)
class EncodedSequence:
    """Tokens in the order in which the model reads them."""

    ids: list[int]
    turns: list[int]
    """For each token the turn (from 0) that it belongs to, the end-of-turn token included, or `NO_TURN`."""
    cut: int = 0
    """Old turns left out of the history to fit the context."""
    picture: Path | None = None
    """The picture for a critic that sees; its tokens are among the `ids`."""


@dataclass(frozen=True)
class EncodedDialogue:
    """One dialogue; each of its turns is in exactly one of the sequences."""

    sequences: list[EncodedSequence]
    """A single one where every prompt continues the turn before it."""

    @property
    def cut(self) -> int:
        """Old turns left out, summed over the sequences."""
        return sum(sequence.cut for sequence in self.sequences)


@dataclass(frozen=True)
class EncodedCandidates:
    """Several outputs for one history: `prefix + continuations[i]` is what `turn` gives for the i-th."""

    prefix: list[int]
    continuations: list[list[int]]
    """Each with its end-of-turn token."""
    cut: int = 0
    """Old turns left out; the longest output decides, because all share the prefix."""


class DialogueEncoder:
    """Encodes dialogues for one tokenizer, by its chat template.

    `privileged`, the information for a critic alone, is put before the request in the first message of the user,
    where every template has a place for it. Histories that do not fit lose their oldest turns, each whole,
    never the system prompt or the request.
    """

    def __init__(self, tokenizer: Any, *, max_tokens: int) -> None:
        """`max_tokens` is the length of the longest sequence, the context that the model is trained with."""
        if not tokenizer.chat_template:
            raise UsageError(
                f"{tokenizer.name_or_path or 'the model'}: the tokenizer has no chat template; use an "
                f"instruction-tuned checkpoint, or add a chat_template.jinja to the folder"
            )
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self._closing = self._end_of_turn()
        self._anchored = self._needs_anchor()

    def dialogue(
        self,
        request: str,
        turns: Sequence[Turn],
        *,
        system: str | None = None,
        privileged: str | None = None,
        name: str = "the dialogue",
    ) -> EncodedDialogue:
        """All turns: each output is learned, later ones see what was `said`. `name` is for error messages."""
        sequences: list[EncodedSequence] = []
        history = [Message(Role.USER, request)]
        for index, turn in enumerate(turns):
            said = self.output(turn.given)
            prompt, cut = self._fitting_prompt(
                _opened(history, system, privileged), room=self.max_tokens - len(said), name=name, turn=index
            )
            before = sequences[-1] if sequences else EncodedSequence([], [])
            continues = bool(sequences) and prompt[: len(before.ids)] == before.ids
            marks = before.turns if continues else []
            unmarked = [NO_TURN] * (len(prompt) - len(marks))
            merged = EncodedSequence(prompt + said, [*marks, *unmarked, *[index] * len(said)], cut)
            sequences[len(sequences) - continues :] = [merged]
            history += _heard(turn)
        return EncodedDialogue(sequences)

    def turn(
        self,
        history: Sequence[Message],
        output: str,
        *,
        system: str | None = None,
        privileged: str | None = None,
        name: str = "the dialogue",
    ) -> EncodedSequence:
        """One output after a history, as turn 0 of a sequence."""
        one = self.candidates(history, [output], system=system, privileged=privileged, name=name)
        said = one.continuations[0]
        return EncodedSequence(one.prefix + said, [NO_TURN] * len(one.prefix) + [0] * len(said), one.cut)

    def candidates(
        self,
        history: Sequence[Message],
        outputs: Sequence[str],
        *,
        system: str | None = None,
        privileged: str | None = None,
        name: str = "the dialogue",
    ) -> EncodedCandidates:
        """Several outputs after one history."""
        # As texts, an unfinished output and a finished one are equal.
        kinds = [(type(output), output) for output in outputs]
        encoded = {kind: self.output(kind[1]) for kind in dict.fromkeys(kinds)}
        continuations = [encoded[kind] for kind in kinds]
        longest = max(map(len, continuations), default=0)
        turn = sum(message.role is Role.ASSISTANT for message in history)
        prefix, cut = self._fitting_prompt(
            _opened(history, system, privileged), room=self.max_tokens - longest, name=name, turn=turn
        )
        return EncodedCandidates(prefix, continuations, cut)

    def output(self, text: str) -> list[int]:
        """The tokens of an output and, if it is finished, of the end of the turn.

        Special tokens in the output are encoded as ordinary text.
        """
        said = self._output(text, anchored=self._anchored)
        # Of an empty output only its end can be learned.
        return said if said and isinstance(text, Unfinished) else said + self._closing

    def ends_turn(self, ids: Sequence[int]) -> bool:
        """Whether generated tokens end with the end of a turn, not because of a limit."""
        return bool(self._closing) and list(ids[-1:]) == self._closing

    def between_turns(self, reply: str, *, finished: bool = True) -> list[int]:
        """The tokens between two outputs in a dialogue that is generated token by token: the reply in its template.

        An output that is not `finished` still lacks its end-of-turn token, which is then the first of these.
        """
        chat = [Message(Role.USER, _PROBES[0]), Message(Role.ASSISTANT, _PROBES[0])]
        before = self._ids(self._render(chat, prompt=False))
        after = self._ids(self._render([*chat, Message(Role.USER, reply)], prompt=True))
        ended = len(before)
        while ended and before[ended - 1 : ended] != self._closing:
            ended -= 1
        if not ended or after[:ended] != before[:ended]:
            raise UsageError(
                f"{self.tokenizer.name_or_path}: the chat template does not append a reply to what was said before; "
                f"dialogues cannot be generated token by token with it"
            )
        return after[ended:] if finished else after[ended - 1 :]

    def _fitting_prompt(
        self, messages: Sequence[Message], *, room: int, name: str, turn: int
    ) -> tuple[list[int], int]:
        """The prompt with as many of the latest turns as fit, and how many were left out."""
        opening, exchanges = _exchanges(messages)
        for cut in range(len(exchanges) + 1):
            kept = [message for exchange in exchanges[cut:] for message in exchange]
            prompt = self._prompt([*opening, *kept])
            if len(prompt) <= room:
                return prompt, cut
        needed = len(prompt) + self.max_tokens - room
        raise TooLongError(
            f"{name}: turn {turn + 1} alone has {needed} tokens with the request, the context only {self.max_tokens}"
        )

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        """The prompt as it is when the model is sampled from."""
        prompt = self._ids(self._render(messages, prompt=True))
        if not prompt:
            raise UsageError(f"{self.tokenizer.name_or_path}: the chat template makes an empty prompt")
        return prompt

    def _output(self, output: str, *, anchored: bool) -> list[int]:
        if anchored:
            head, whole = self._plain_ids(_ANCHOR), self._plain_ids(_ANCHOR + output)
            if whole[: len(head)] == head:
                return whole[len(head) :]
        return self._plain_ids(output)

    def _end_of_turn(self) -> list[int]:
        """The special token that the template puts after a message, or else the tokenizer's end of text."""
        one, other = (self._probe(probe) for probe in _PROBES)
        closing = self._ids(_common_end(one, other))[:1]
        if closing and self._is_special(closing[0]):
            return closing
        end_of_text = self.tokenizer.eos_token_id
        return [] if end_of_text is None else [int(end_of_text)]

    def _is_special(self, token: int) -> bool:
        """Whether a token is a special token. Some have no name (Phi-3's `<|end|>`): only their entry shows it."""
        added = self.tokenizer.added_tokens_decoder.get(token)
        return token in self.tokenizer.all_special_ids or bool(added and added.special)

    def _needs_anchor(self) -> bool:
        """Whether a text that is encoded alone gets a leading space that it does not have within a template.

        Tokenizers of the SentencePiece kind do that; they then encode outputs after a line break.
        """
        prompt = self._prompt([Message(Role.USER, _PROBES[0])])
        rendered = self._ids(self._probe(_PROBES[0]))

        def fits(*, anchored: bool) -> bool:
            expected = prompt + self._output(_PROBES[0], anchored=anchored)
            return rendered[: len(expected)] == expected

        return fits(anchored=True) and not fits(anchored=False)

    def _probe(self, content: str) -> str:
        chat = [Message(Role.USER, _PROBES[0]), Message(Role.ASSISTANT, content)]
        return self._render(chat, prompt=False)

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def _plain_ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    def _render(self, messages: Sequence[Message], *, prompt: bool) -> str:
        from jinja2 import TemplateError  # comes with `train`, which critics without a model do not need

        if any(message.images for message in messages):
            raise UsageError("models are trained on text only; leave dialogues with images out")
        chat = self._chat(messages)
        try:
            text: str = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=prompt)
        except TemplateError as error:
            where = self.tokenizer.name_or_path
            raise UsageError(f"{where}: the chat template refuses the dialogue: {error}") from error
        return text

    def _chat(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """The messages in the form that the chat template needs."""
        return [{"role": str(message.role), "content": message.text} for message in messages]


def _opened(history: Sequence[Message], system: str | None, privileged: str | None) -> list[Message]:
    """The history with the system prompt in front and the privileged text before the request."""
    messages = list(history)
    if privileged is not None:
        first = next(index for index, message in enumerate(messages) if message.role is Role.USER)
        messages[first] = Message(Role.USER, f"{privileged}\n\n{messages[first].text}")
    return messages if system is None else [Message(Role.SYSTEM, system), *messages]


def _heard(turn: Turn) -> list[Message]:
    """The messages that later turns see of a turn."""
    said = [Message(Role.ASSISTANT, turn.said)]
    return said if turn.reply is None else [*said, Message(Role.USER, turn.reply.text)]


def _exchanges(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """The messages before the agent first speaks, and then each of its messages with the replies to it."""
    opening = list(takewhile(lambda message: message.role is not Role.ASSISTANT, messages))
    exchanges: list[list[Message]] = []
    for message in messages[len(opening) :]:
        if message.role is Role.ASSISTANT:
            exchanges.append([])
        exchanges[-1].append(message)
    return opening, exchanges


def _common_end(one: str, other: str) -> str:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(reversed(one), reversed(other), strict=False))
    length = sum(1 for _ in same)
    return one[len(one) - length :]
