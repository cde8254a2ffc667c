"""`sweetrl-colbench`: the name by which verifiers finds our taskset, environment and harness.

verifiers imports a top-level module and takes what `__all__` names. A taskset of your own defaults is a subclass here.
"""

from sweetrl.integrations.verifiers import ChatHarness, ColBenchEnv, ColBenchTaskset

__all__ = ["ChatHarness", "ColBenchEnv", "ColBenchTaskset"]
