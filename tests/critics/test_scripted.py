import asyncio
import subprocess
import sys

import pytest

from candidates.stored import task
from sweetrl.critics.scripted import critic_named
from sweetrl.errors import UsageError
from sweetrl.types import Message, Role


def overlap(output: str, *history: str) -> float:
    seen = [Message(Role.USER, text) for text in history]
    return asyncio.run(critic_named("overlap").advantages(task(), seen, [output]))[0]


def test_words_of_the_reference_are_worth_something_unless_they_were_said_before():
    assert overlap("Is it 4711 times?") == pytest.approx(1 / 2)
    assert overlap("Is it 4711 times?", "It is 4711.") == 0.0
    assert overlap("") == 0.0


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(UsageError, match="did you mean 'overlap'"):
        critic_named("overlaps")


WITHOUT_TRAIN = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jinja2", "torch", "transformers", "tokenizers", "safetensors"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, NotInstalled())
from sweetrl.critics import open_critic

print(open_critic("scripted:mini-backend").name)
"""


def test_critics_without_a_model_need_nothing_of_the_training_stack():
    ran = subprocess.run([sys.executable, "-c", WITHOUT_TRAIN], capture_output=True, text=True, check=False)
    assert ran.stdout == "scripted:mini-backend\n", ran.stderr
