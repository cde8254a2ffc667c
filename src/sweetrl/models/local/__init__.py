"""Chat models in this process: any Hugging Face causal language model that keeps a plain key-value cache.

One thread owns the network. It batches whatever requests are open, lets requests join and leave between
two tokens, and reuses the keys and values of text that it has already read. Needs the `train` extra.
"""

from sweetrl.models.local.model import LocalModel

__all__ = ["LocalModel"]
