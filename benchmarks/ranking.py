"""Ranking 16 candidates for one turn: one run over the shared history against a full forward for each.

    python benchmarks/ranking.py

The history has 512 tokens, each candidate 64. The peer is plain `transformers` at its best of several batch
sizes, with logits only where a candidate's token is predicted. Both give the same log-probabilities, which is
checked. Both run on one thread and are compared by the processor time that they take, because that is what a
busy machine leaves alone. Writes benchmarks/results/ranking.json.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import LlamaForCausalLM

from sweetrl.learning.candidates import candidate_logprobs
from sweetrl.learning.tokens import EncodedCandidates
from sweetrl.models.local.network import GROUPED_ATTENTION

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from models.tiny_llama import tiny_config  # noqa: E402

HISTORY, CANDIDATES, LENGTH = 512, 16, 64
BATCH_SIZES = (1, 16)
ROUNDS = 3
WANTED_RATIO = 5.0
# Proportions of a real language model: most of the work is in the weights.
SMALL = {
    "vocab_size": 2000,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
}
# So small that attention and the head, which cannot be shared, are a large part of it.
TINY = {
    "vocab_size": 4000,
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
}


@torch.no_grad()
def full_forwards(model: Any, prefix: list[int], candidates: list[list[int]], batch: int) -> Tensor:
    """What a short script would do: (candidates, length)."""
    parts = []
    for start in range(0, len(candidates), batch):
        ids = torch.tensor([prefix + each for each in candidates[start : start + batch]])
        logits = model(ids, use_cache=False, logits_to_keep=LENGTH + 1).logits[:, :-1]
        parts.append(logits.log_softmax(-1).gather(-1, ids[:, -LENGTH:, None])[..., 0])
    return torch.cat(parts)


def timed(work: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Seconds of processor time, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measure(name: str, changes: dict[str, int]) -> dict[str, Any]:
    """Both ways in turn, several rounds, the peer with the batch size that is quickest for it."""
    torch.manual_seed(0)
    config = tiny_config(max_position_embeddings=1024, initializer_range=0.05, **changes)
    model = LlamaForCausalLM(config).eval()
    tokens = torch.randint(4, config.vocab_size, (HISTORY + CANDIDATES * LENGTH,)).tolist()
    prefix, rest = tokens[:HISTORY], tokens[HISTORY:]
    candidates = [rest[at : at + LENGTH] for at in range(0, len(rest), LENGTH)]

    def full(batch: int) -> tuple[float, Tensor]:
        model.set_attn_implementation("sdpa")
        return timed(lambda: full_forwards(model, prefix, candidates, batch))

    def shared() -> tuple[float, Tensor]:
        # As critics load their models.
        model.set_attn_implementation(GROUPED_ATTENTION)
        turn = EncodedCandidates(prefix, candidates)
        return timed(lambda: torch.stack(candidate_logprobs(model, [turn])[0]))

    shared()
    tried = {batch: full(batch)[0] for batch in BATCH_SIZES}
    best = min(tried, key=tried.__getitem__)
    rounds = [(full(best), shared()) for _ in range(ROUNDS)]
    ratios = [theirs[0] / ours[0] for theirs, ours in rounds]
    return {
        "model": name,
        "parameters": model.num_parameters(),
        "full_ms": round(1000 * statistics.median(theirs[0] for theirs, _ in rounds), 1),
        "full_batch_size": best,
        "shared_ms": round(1000 * statistics.median(ours[0] for _, ours in rounds), 1),
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
        "largest_difference": max(float((theirs[1] - ours[1]).abs().max()) for theirs, ours in rounds),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The results for people."""
    lines = [f"{'model':<20}{'params':>8}{'full (best)':>14}{'shared':>12}{'ratio':>8}{'difference':>13}"]
    lines += [
        f"{row['model']:<20}{row['parameters'] / 1e6:>7.1f}M{row['full_ms']:>11} ms{row['shared_ms']:>9} ms"
        f"{row['ratio']:>8}{row['largest_difference']:>13.1e}"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, write the result file, print the table."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    torch.set_num_threads(1)
    rows = [measure("small random Llama", SMALL), measure("tiny random Llama", TINY)]
    result = {
        "unit": "median milliseconds of processor time to rank one turn, fp32, one thread",
        "history_tokens": HISTORY,
        "candidates": CANDIDATES,
        "tokens_per_candidate": LENGTH,
        "wanted_ratio": WANTED_RATIO,
        "threads": torch.get_num_threads(),
        "cpus": os.cpu_count(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "results": rows,
    }
    target = HERE / "results" / "ranking.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n")
    print(table(rows))
    if rows[0]["ratio"] < WANTED_RATIO or max(row["largest_difference"] for row in rows) > 1e-4:
        sys.exit(f"not {WANTED_RATIO} times as fast on the small model, or not the same numbers")


if __name__ == "__main__":
    main()
