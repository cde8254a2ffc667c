"""How much quicker training is for computing once what examples of one turn or one task have in common.

Turn pairs: dialogues of 8 turns, of which each has 4 pairs over 5 candidates. Dialogue pairs: the best dialogue on
a task against 3 others. Both are learnt from with their groups and, for comparison, each example alone. One thread,
CPU seconds; a random Llama of width 128 and 3 layers. Writes benchmarks/results/training_groups.json.
"""

import json
import random
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from models.tiny_llama import save_tiny_llama  # noqa: E402
from sweetrl.learning.batches import Example, collate  # noqa: E402
from sweetrl.learning.checkpoints import RunFolder  # noqa: E402
from sweetrl.learning.datasets import Dataset  # noqa: E402
from sweetrl.learning.loading import load_model  # noqa: E402
from sweetrl.learning.objectives import objective  # noqa: E402
from sweetrl.learning.settings import Method, TrainingSettings, default_settings  # noqa: E402
from sweetrl.learning.tokens import EncodedSequence  # noqa: E402
from sweetrl.learning.trainer import StepsOfRun, with_reference  # noqa: E402

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


def speeds(model_path: Path, examples: list[Example], settings: TrainingSettings) -> dict[str, float]:
    """Examples in a CPU second: of the reference pass, and of an epoch of steps without the optimiser."""
    model = load_model(str(model_path), settings)
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        data = with_reference(
            Dataset(examples), model, settings, RunFolder(Path(folder)), torch.device("cpu")
        )
        reference = time.process_time() - started
    learn = objective(settings)
    started = time.process_time()
    steps = StepsOfRun(data.examples, settings, partial(collate, pad=0), processes=1, process=0)
    for step in range(steps.steps_per_epoch):
        for batch in steps[step]:
            (learn(model, batch).losses * batch.weights).sum().backward()
    training = time.process_time() - started
    return {"training": len(examples) / training, "reference": len(examples) / reference}


def compare(model: Path, examples: list[Example], method: Method, batch_size: int) -> dict[str, float]:
    """With groups and without."""
    settings = default_settings(method, epochs=1, batch_size=batch_size, tokens_per_pass=8192, max_tokens=512)
    alone = speeds(model, [replace(example, group="") for example in examples], settings)
    together = speeds(model, examples, settings)
    result = {}
    for what, before in alone.items():
        result[f"{what}, each alone"] = round(before, 1)
        result[f"{what}, in groups"] = round(together[what], 1)
        result[f"{what}, faster by"] = round(together[what] / before, 2)
    return result


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
        compare(model, pairs_of_turns(1), Method.POLICY, 8)  # warm
        results = {
            "turn pairs, policy": compare(model, pairs_of_turns(12), Method.POLICY, 16),
            "dialogue pairs, DPO": compare(model, pairs_of_dialogues(32), Method.DPO, 12),
            "dialogue pairs, critic": compare(model, pairs_of_dialogues(32), Method.CRITIC, 12),
        }
    for name, result in results.items():
        print(name, *(f"  {what}: {value}" for what, value in result.items()), sep="\n")
    output = ROOT / "benchmarks/results/training_groups.json"
    output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
