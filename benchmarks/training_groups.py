"""What it costs to draw the examples of a step at random, and what sharing a prefix saves all the same.

Turn pairs: dialogues of 8 turns, of which each has 4 pairs over 5 candidates. Dialogue pairs: the best dialogue on
a task against 3 others. Each is learnt from in three ways:

- at random: as `sweetrl train` does it; the two sides of a pair share their history where the model can;
- no sharing: the same steps with a row for each sequence;
- by group: all pairs of a turn or task in one step, which shares the most and makes each step one of few tasks. This is
  how the first edition did it, at the expense of what is learnt.

One thread, CPU seconds; a random Llama of width 128 and 3 layers. Writes benchmarks/results/training_groups.json.
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from models.tiny_llama import save_tiny_llama  # noqa: E402
from sweetrl.learning.algorithms import default_settings, objective  # noqa: E402
from sweetrl.learning.batches import Example, TokenBatch, collate  # noqa: E402
from sweetrl.learning.loading import load_model  # noqa: E402
from sweetrl.learning.reference import with_reference  # noqa: E402
from sweetrl.learning.settings import TrainingSettings  # noqa: E402
from sweetrl.learning.tokens import EncodedSequence  # noqa: E402
from sweetrl.learning.trainer import StepsOfRun  # noqa: E402

TURNS, TOKENS, PAIRS, VOCABULARY = 8, 17, 4, 1024
draw = random.Random(0)


def said() -> list[int]:
    """A message."""
    return [draw.randrange(4, VOCABULARY) for _ in range(TOKENS)]


def pairs_of_turns(dialogues: int) -> list[Example]:
    """The first candidate of each turn against the four others."""
    examples = []
    for number in range(dialogues):
        history = said()
        for turn in range(TURNS):
            outputs = [said() for _ in range(PAIRS + 1)]
            best, *others = (
                EncodedSequence(history + each, [-1] * len(history) + [0] * TOKENS) for each in outputs
            )
            examples += [
                Example(f"{number}.{turn}.{at}", (best,), (other,), group=f"{number}.{turn}", branch=True)
                for at, other in enumerate(others)
            ]
            history = history + outputs[0] + said()
    return examples


def dialogue() -> EncodedSequence:
    """All turns of the agent, each after a message of the other side."""
    parts = [(said() + said(), [-1] * TOKENS + [turn] * TOKENS) for turn in range(TURNS)]
    return EncodedSequence(
        [id_ for ids, _ in parts for id_ in ids], [at for _, turns in parts for at in turns]
    )


def pairs_of_dialogues(tasks: int) -> list[Example]:
    """The best of four dialogues against each of the others."""
    examples = []
    for task in range(tasks):
        best, *others = (dialogue() for _ in range(4))
        examples += [
            Example(f"{task}.{at}", (best,), (other,), group=f"{task}", branch=True)
            for at, other in enumerate(others)
        ]
    return examples


def batches_at_random(examples: list[Example], settings: TrainingSettings) -> Iterator[TokenBatch]:
    """The passes of an epoch as training makes them."""
    steps = StepsOfRun(examples, settings, partial(collate, pad=0), processes=1, process=0)
    for step in range(steps.steps_per_epoch):
        yield from steps[step]


def batches_by_group(examples: list[Example], settings: TrainingSettings) -> Iterator[TokenBatch]:
    """A pass for each step; examples are in the order of their groups."""
    for start in range(0, len(examples), settings.batch_size):
        yield collate(examples[start : start + settings.batch_size], pad=0)


def speed(model: Any, batches: Iterable[TokenBatch], settings: TrainingSettings, count: int) -> float:
    """Examples in a CPU second, over an epoch of steps without the optimiser."""
    learn = objective(settings)
    started = time.process_time()
    for batch in batches:
        (learn(model, batch).losses * batch.weights).sum().backward()
    return count / (time.process_time() - started)


def compare(path: Path, examples: list[Example], method: str, batch_size: int) -> dict[str, float]:
    """All three ways, in one run."""
    settings = default_settings(method, epochs=1, batch_size=batch_size, tokens_per_pass=8192, max_tokens=512)
    model = load_model(str(path), settings)
    with tempfile.TemporaryDirectory() as folder:
        known = with_reference(examples, model, settings, Path(folder), torch.device("cpu"))
    alone = [replace(example, group="", branch=False) for example in known]
    measured = {
        "at random": speed(model, batches_at_random(known, settings), settings, len(known)),
        "no sharing": speed(model, batches_at_random(alone, settings), settings, len(known)),
        "by group": speed(model, batches_by_group(known, settings), settings, len(known)),
    }
    return {f"{way}, examples a CPU second": round(value, 1) for way, value in measured.items()} | {
        "sharing a prefix, faster by": round(measured["at random"] / measured["no sharing"], 2),
        "at random, of the speed by group": round(measured["at random"] / measured["by group"], 2),
    }


def main() -> None:
    """Print and write examples per CPU second."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        model = save_tiny_llama(
            Path(folder),
            vocab_size=VOCABULARY,
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=1024,
        )
        compare(model, pairs_of_turns(1), "policy", 8)  # warm
        results = {
            "turn pairs, policy": compare(model, pairs_of_turns(12), "policy", 16),
            "dialogue pairs, DPO": compare(model, pairs_of_dialogues(32), "dpo", 12),
            "dialogue pairs, critic": compare(model, pairs_of_dialogues(32), "critic", 12),
        }
    for name, result in results.items():
        print(name, *(f"  {what}: {value}" for what, value in result.items()), sep="\n")
    output = ROOT / "benchmarks/results/training_groups.json"
    output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
