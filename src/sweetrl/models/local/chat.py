"""Between chats and tokens: the tokenizer of a local model with its chat template."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

from jinja2 import TemplateError
from transformers import AutoTokenizer

from sweetrl.errors import ModelError, UsageError
from sweetrl.types import Message, Role

_PROBE = "probe"


class ChatTokenizer:
    """Encodes chats as prompts and decodes replies; safe to use from several threads."""

    def __init__(self, path: str) -> None:
        self._path = path
        # The Rust tokenizers raise an error when two threads use one at the same time.
        self._lock = Lock()
        self._tokenizer: Any = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
        if not self._tokenizer.chat_template:
            raise UsageError(
                f"hf:{path}: the tokenizer has no chat template; use an instruction-tuned checkpoint, "
                f"or add a chat_template.jinja to the folder"
            )

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """The prompt for the assistant's next message."""
        if any(message.images for message in messages):
            raise UsageError(
                f"hf:{self._path}: models in this process read text only; "
                f"serve a vision model and name it as openai:MODEL@URL"
            )
        text = self._render(messages, prompt=True)
        return self._encode_text(text)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a reply, without special tokens."""
        with self._lock:
            text: str = self._tokenizer.decode(
                tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        return text

    def end_tokens(self) -> set[int]:
        """Tokens that end a reply: the tokenizer's own and the one that the template puts after a message."""
        own = self._tokenizer.eos_token_id
        ends = set() if own is None else {int(own)}
        chat = [Message(Role.USER, _PROBE), Message(Role.ASSISTANT, _PROBE)]
        _, found, tail = self._render(chat, prompt=False).rpartition(_PROBE)
        after = self._encode_text(tail)[:1] if found else []
        return ends | {token for token in after if token in self._special_tokens()}

    def _special_tokens(self) -> set[int]:
        added = self._tokenizer.added_tokens_decoder
        return {token for token, details in added.items() if details.special}

    def _encode_text(self, text: str) -> list[int]:
        with self._lock:
            return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _render(self, messages: Sequence[Message], *, prompt: bool) -> str:
        chat = [{"role": str(message.role), "content": message.text} for message in messages]
        try:
            with self._lock:
                text: str = self._tokenizer.apply_chat_template(
                    chat, tokenize=False, add_generation_prompt=prompt
                )
        except TemplateError as error:
            raise ModelError(f"hf:{self._path}: the chat template refuses the chat: {error}") from error
        return text
