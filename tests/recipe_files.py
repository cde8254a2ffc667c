"""A small recipe that tests plan, estimate and run."""

from pathlib import Path

import msgspec

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.types import Task


def write_recipe(folder: Path) -> Path:
    """The recipe and its tasks, written to a folder."""
    tasks = [
        Task(
            id=f"t{n}",
            domain="backend",
            request="Do.",
            secret=BackendSecret(f"def f(): return {n}", {"a": "f()"}),
        )
        for n in range(3)
    ]
    (folder / "tasks.jsonl").write_bytes(b"".join(msgspec.json.encode(task) + b"\n" for task in tasks))
    path = folder / "recipe.toml"
    path.write_text(f"""
output = "{folder}/run"
algorithm = "sweet"
[tasks]
train = "{folder}/tasks.jsonl"
test = "{folder}/tasks.jsonl"
[agent]
model = "scripted:curious"
[collaborator]
model = "scripted:unsure"
[rollout]
attempts = 2
[candidates]
critic = "scripted:overlap"
[policy]
model = "some/model"
[estimate]
turns = 3
output_tokens = 100
reply_tokens = 50
prompt_tokens = 400
parameters = 1e9
gpu_tflops = 100
""")
    return path
