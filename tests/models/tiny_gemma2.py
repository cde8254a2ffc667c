"""A random Gemma 2: attention that PyTorch's kernel cannot compute, and layers that see through a window."""

from pathlib import Path

import torch
from transformers import Gemma2Config, Gemma2ForCausalLM

from models.tiny_llama import tiny_tokenizer


def save_tiny_gemma2(folder: Path) -> Path:
    """Write a checkpoint that caps the logits of attention and of its head well below their usual size."""
    torch.manual_seed(0)
    config = Gemma2Config(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        initializer_range=0.3,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=5.0,
        query_pre_attn_scalar=1,
        sliding_window=32,
        max_position_embeddings=512,
        pad_token_id=0,
    )
    Gemma2ForCausalLM(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder
