"""A chat model small enough for quick tests: a random Llama and a tokenizer trained on a few sentences."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CHAT_TEMPLATE = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)

SENTENCES = (
    "Please write a Python function that returns the average price of the items in a list.",
    "Should an empty list give zero, or should the function raise an error?",
    "It should give zero, and prices below zero are to be ignored.",
    "def average(prices):\n    kept = [price for price in prices if price >= 0]\n    return sum(kept)",
    "I want the page to have a dark header, three columns and a footer with links.",
    "system user assistant 0 1 2 3 4 5 6 7 8 9",
)


def tiny_tokenizer(
    vocabulary: int = 400, chat_template: str | None = CHAT_TEMPLATE
) -> PreTrainedTokenizerFast:
    """Byte-level, so that any text can be encoded and comes back unchanged."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|pad|>", "<|bye|>", "<|turn|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    # The end-of-text token is deliberately not the template's end of turn, as in many real checkpoints.
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        eos_token="<|bye|>",
        additional_special_tokens=["<|turn|>", "<|end|>"],
    )
    fast.chat_template = chat_template
    return fast


def tiny_config(**changes: Any) -> LlamaConfig:
    """A Llama of about 100,000 parameters with grouped key-value heads."""
    fields: dict[str, Any] = {
        "vocab_size": 400,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": 1,
        # Large enough for a random network to prefer some tokens clearly.
        "initializer_range": 0.3,
        "tie_word_embeddings": False,
    }
    return LlamaConfig(**{**fields, **changes})


def save_tiny_llama(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    """Write a checkpoint as `save_pretrained` does; `changes` go to the configuration."""
    torch.manual_seed(seed)
    LlamaForCausalLM(tiny_config(**changes)).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder
