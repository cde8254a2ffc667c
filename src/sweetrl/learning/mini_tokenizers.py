"""Tokenizers of the tiny models: one of whole words and lines of code, and an ordinary byte-level BPE.

They differ in what the length of a turn means. With whole lines an answer is not much longer than a question; with BPE
it is five to ten times as long, as it is for large models.
"""

from collections.abc import Iterable
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD, USER, AGENT, END = "<|pad|>", "<|user|>", "<|agent|>", "<|end|>"
TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'user' -%}<|user|>{{ message['content'] }}<|end|>"
    "{%- elif message['role'] == 'assistant' -%}<|agent|>{{ message['content'] }}<|end|>"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|agent|>{%- endif -%}"
)
"""Instructions are left out: so small a model follows none."""

PIECES = r"\n    [^\n]+|def \w+\(\w+\):|I WANT TO ANSWER:\n| ?\w+| ?[^\s\w]+|\s+"
"""The texts that `word_tokenizer` makes one token. A line of code is one, so an answer is not much longer than a
question, and the mean over the tokens of a turn means the same for both."""

_CHOICE = r"bg-(?!white\")[\w-]+ text-[\w-]+|(?<= text-)(?:left|center|right)|(?<=<h2 class=\"text-)\dxl"
PAGE_PIECES = (
    rf"{_CHOICE}|<html>(?:(?!{_CHOICE})[\s\S])+|(?<=\w)(?:\">| p[xy]?-\d| font-)(?:(?!{_CHOICE})[\s\S])+"
    r"|I WANT TO ANSWER:\n| ?\w+| ?[^\s\w]+|\s+"
)
"""The pieces of plain pages: a choice is one token, and so is everything between two choices."""


def word_tokenizer(texts: Iterable[str], pieces: str = PIECES) -> PreTrainedTokenizerFast:
    """A token for every piece of the texts, and one for every byte, so that nothing is unknown."""
    split = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    words = {piece for text in texts for piece, _ in split.pre_tokenize_str(text)}
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = [
        *((special, 0.0) for special in (PAD, USER, AGENT, END)),
        *((byte, -10.0) for byte in bytes_),
        *((word, -1.0) for word in sorted(words) if len(word) > 1),
    ]
    return _for_chat(Tokenizer(models.Unigram(vocabulary, unk_id=None, byte_fallback=False)), split)


def bpe_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE with `vocabulary` tokens, split as GPT-2 does and trained on the texts."""
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, USER, AGENT, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _for_chat(tokenizer, split)


def _for_chat(tokenizer: Tokenizer, split: Any) -> PreTrainedTokenizerFast:
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        extra_special_tokens=[USER, AGENT],
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = TEMPLATE
    return fast
