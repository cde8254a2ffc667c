"""How fast turn-DPO trains: ours against TRL's DPOTrainer, same pairs, model, precision and optimiser.

Both learn from the same turn pairs in steps of the same size, in alternating rounds of one run; reference
log-probabilities are computed beforehand by both and not timed. TRL gets its rows sorted by length and the
micro-batch size that is quickest for it. Tokens are counted once for both: all of both sequences of a pair.
Without a GPU, one thread and CPU seconds. Needs trl. Writes benchmarks/results/training.json.
"""

import argparse
import contextlib
import io
import json
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from transformers import AutoModelForCausalLM, TrainerCallback, logging  # noqa: E402

from models.tiny_llama import SENTENCES, save_tiny_llama, tiny_tokenizer  # noqa: E402
from sweetrl.learning.batches import Example, collate  # noqa: E402
from sweetrl.learning.checkpoints import RunFolder, TrainingCard  # noqa: E402
from sweetrl.learning.datasets import Dataset, Encoding, turn_pairs  # noqa: E402
from sweetrl.learning.loading import load_model, load_tokenizer  # noqa: E402
from sweetrl.learning.run_options import RunOptions  # noqa: E402
from sweetrl.learning.settings import TrainingSettings  # noqa: E402
from sweetrl.learning.tokens import DialogueEncoder  # noqa: E402
from sweetrl.learning.trainer import TurnTrainer, with_reference  # noqa: E402
from sweetrl.types import Message, Role, TurnPair  # noqa: E402

RATE, BETA = 1e-5, 0.1
# On a CPU that others use too, the time that a process had it is what can be compared.
clock = time.perf_counter if torch.cuda.is_available() else time.process_time
# Nothing after the end of a turn, so that both learn the same tokens.
TEMPLATE = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


# ---------------------------------------------------------------- the work


def seed_model(folder: Path) -> Path:
    """A random Llama of 9 million parameters that knows the template."""
    save_tiny_llama(
        folder,
        vocab_size=8192,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        initializer_range=0.02,
    )
    tiny_tokenizer(chat_template=TEMPLATE).save_pretrained(folder)
    return folder


def pairs_of_turns(count: int, seed: int = 0) -> list[TurnPair]:
    """Turns after histories of 300 to 1500 tokens, with replies of 20 to 120: the shape of ColBench dialogues."""
    draw = random.Random(seed)

    def text(words: int) -> str:
        return " ".join(draw.choice(SENTENCES[draw.randrange(5)].split()) for _ in range(words))

    pairs = []
    for number in range(count):
        history = [Message(Role.USER, text(draw.randint(80, 200)))]
        for _ in range(draw.randint(0, 6)):
            history += [Message(Role.ASSISTANT, text(12)), Message(Role.USER, text(20))]
        chosen, rejected = (text(draw.randint(8, 45)) for _ in range(2))
        pairs.append(
            TurnPair(
                episode_id=f"e{number}",
                task_id=f"t{number}",
                turn=0,
                history=tuple(history),
                chosen=chosen,
                rejected=rejected,
                margin=1.0,
            )
        )
    return pairs


@dataclass(frozen=True)
class Work:
    """What both contenders do."""

    model: Path
    pairs: list[TurnPair]
    batch: int

    @property
    def steps(self) -> int:
        """Of the optimiser."""
        return len(self.pairs) // self.batch

    def examples(self, *, branch: bool) -> Dataset:
        """The pairs as ours takes them."""
        encoder = DialogueEncoder(load_tokenizer(str(self.model)), max_tokens=4096)
        return turn_pairs(self.pairs, Encoding(encoder, branch=branch))

    @property
    def tokens(self) -> int:
        """In all sequences of all pairs."""
        return sum(
            len(each.ids) for example in self.examples(branch=False).examples for each in example.sequences
        )


# ---------------------------------------------------------------- contenders


class Stopwatch(TrainerCallback):
    """When training began and ended."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """All steps count: sorted by length, no two are alike."""
        self.times.append(clock())

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """The last step is done."""
        self.times.append(clock())


def ours(work: Work, *, branch: bool = True, tokens_per_pass: int = 8192) -> float:
    """Seconds for all steps."""
    settings = TrainingSettings(
        algorithm="policy",
        epochs=1,
        batch_size=work.batch,
        learning_rate=RATE,
        beta=BETA,
        nll=0.0,
        max_tokens=4096,
        tokens_per_pass=tokens_per_pass,
    )
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder, RunFolder(Path(folder) / "run") as run:
        card = run.claim(TrainingCard(model=str(work.model), settings=settings))
        tokenizer, data = load_tokenizer(str(work.model)), work.examples(branch=branch)
        model = load_model(str(work.model), settings)
        data = with_reference(
            data, model, settings, run, torch.device("cuda" if torch.cuda.is_available() else "cpu")
        )
        trainer = TurnTrainer(model, tokenizer, data, card, run, RunOptions(save_every=10**6))
        trainer.add_callback(watch)
        trainer.args.save_strategy = "no"
        trainer.train()
    return watch.times[-1] - watch.times[0]


def trl(work: Work, *, micro_batch: int) -> float:
    """Seconds for all steps."""
    from trl import DPOConfig, DPOTrainer

    def chat(messages: Any) -> list[dict[str, str]]:
        return [{"role": str(each.role), "content": each.text} for each in messages]

    rows = [
        {
            "prompt": chat(pair.history),
            "chosen": [{"role": "assistant", "content": pair.chosen}],
            "rejected": [{"role": "assistant", "content": pair.rejected}],
        }
        for pair in sorted(work.pairs, key=lambda pair: sum(len(each.text) for each in pair.history))
    ]
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        arguments = DPOConfig(
            output_dir=folder,
            per_device_train_batch_size=micro_batch,
            gradient_accumulation_steps=work.batch // micro_batch,
            # Rows are sorted by length: the least padding that there can be.
            train_sampling_strategy="sequential",
            precompute_ref_log_probs=True,
            num_train_epochs=1,
            learning_rate=RATE,
            beta=BETA,
            max_length=None,
            bf16=False,
            gradient_checkpointing=False,
            use_cpu=not torch.cuda.is_available(),
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
        )
        DPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(work.model, dtype=torch.float32),
            args=arguments,
            train_dataset=datasets.Dataset.from_list(rows),
            processing_class=load_tokenizer(str(work.model)),
            callbacks=[watch],
        ).train()
    return watch.times[-1] - watch.times[0]


# ---------------------------------------------------------------- arithmetic


def gemm_peak() -> float:
    """Floating-point operations per second of a large matrix product: the most that this machine does."""
    size = 2048
    one, other = torch.randn(size, size), torch.randn(size, size)
    best = float("inf")
    for _ in range(8):
        started = clock()
        one @ other
        best = min(best, clock() - started)
    return 2 * size**3 / best


def operations(work: Work) -> float:
    """Floating-point operations that our steps need: forward and twice that backward, padding left out."""
    config = AutoModelForCausalLM.from_pretrained(work.model).config
    model = AutoModelForCausalLM.from_pretrained(work.model)
    head = model.get_output_embeddings().weight.numel()
    body = sum(weight.numel() for name, weight in model.named_parameters() if "embed" not in name) - head
    total = 0.0
    for example in work.examples(branch=True).examples:
        total += _operations_of(example, body, head, config.num_hidden_layers * config.hidden_size)
    return total


def _operations_of(example: Example, body: int, head: int, width: int) -> float:
    batch = collate([example], pad=0)
    # Each token and each one that it sees: a product for the score and one for the mean.
    attention = 4 * width * sum(length**2 / 2 for length in batch.lengths.tolist())
    # The head is computed twice: its output is not kept for the backward pass.
    return 3 * (2 * body * batch.tokens + attention) + 4 * 2 * head * len(batch.targets)


# ---------------------------------------------------------------- report


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The libraries' own chatter would drown the table."""
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    datasets.disable_progress_bars()
    nothing = contextlib.redirect_stdout(io.StringIO())
    with warnings.catch_warnings(), nothing:
        warnings.simplefilter("ignore")
        yield


def contenders(work: Work, micro_batches: list[int]) -> dict[str, Callable[[], float]]:
    """What to time, by name."""
    found: dict[str, Callable[[], float]] = {
        f"TRL DPOTrainer, micro-batch {size}": (lambda size=size: trl(work, micro_batch=size))
        for size in micro_batches
    }
    found["sweetrl, no shared histories"] = lambda: ours(work, branch=False)
    found["sweetrl"] = lambda: ours(work)
    return found


def main() -> None:
    """Run the rounds, print a table, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a chat model; without it, a random Llama of 9 M")
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks/results/training.json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        with quiet():
            model = options.model or seed_model(Path(folder))
            work = Work(model, pairs_of_turns(options.pairs), options.batch)
            ways = contenders(work, [1, options.batch // 2, options.batch])
            peaks, seconds = [gemm_peak()], {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, way in ways.items():
                    seconds[name].append(way())
                peaks.append(gemm_peak())
            needed = operations(work)
        report(work, seconds, max(peaks), needed, options.output)


def report(work: Work, seconds: dict[str, list[float]], peak: float, needed: float, output: Path) -> None:
    """Medians over the rounds, our ratio to the best of TRL's, and the share of the peak."""
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    best = min((name for name in medians if name.startswith("TRL")), key=medians.__getitem__)
    share = needed / medians["sweetrl"] / peak
    result = {
        "pairs": len(work.pairs),
        "tokens": work.tokens,
        "threads": torch.get_num_threads(),
        "tokens_per_second": {name: round(work.tokens / each, 1) for name, each in medians.items()},
        "best_of_trl": best,
        "ours_is_faster_by": round(medians[best] / medians["sweetrl"], 2),
        "gemm_peak_gflops": round(peak / 1e9, 1),
        "step_gflops": round(needed / medians["sweetrl"] / 1e9, 1),
        "share_of_peak": round(share, 3),
    }
    for name, speed in result["tokens_per_second"].items():  # type: ignore[attr-defined]
        print(f"{name:<36}{speed:>10} tokens/s")
    print(f"ours is faster than the best of TRL's by {result['ours_is_faster_by']}")
    print(f"our steps do {result['step_gflops']} of {result['gemm_peak_gflops']} GFLOP/s ({share:.0%})")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
