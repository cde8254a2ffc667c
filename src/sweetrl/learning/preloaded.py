"""Imports all that a stage may need which trains a model or talks to one in its own process."""

import transformers.models.llama.modeling_llama  # noqa: F401  of the models that ship

import sweetrl.learning.heads
import sweetrl.learning.networks
import sweetrl.learning.training
import sweetrl.models.local  # noqa: F401
