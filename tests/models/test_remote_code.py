"""Model folders and hub repositories may bring Python code of their own: it is never run."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.tiny_llama import save_tiny_llama
from sweetrl.errors import UsageError
from sweetrl.models import open_model

SOURCES = Path(__file__).resolve().parents[2] / "src"
ADAPTERS = "PeftModel"
"""Loads adapters that this program has written; it has no such option, and runs no code from a folder."""


def refuses_code(call: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    value = given.get("trust_remote_code")
    return isinstance(value, ast.Constant) and value.value is False


def loads(tree: ast.AST) -> Iterator[tuple[ast.Attribute, ast.Call | None]]:
    """Every mention of `from_pretrained`, with the call that it is part of."""
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "from_pretrained":
            yield node, calls.get(id(node))


def test_every_model_tokenizer_and_processor_is_loaded_without_its_code() -> None:
    found = 0
    for path in SOURCES.rglob("*.py"):
        for loaded, call in loads(ast.parse(path.read_text())):
            if ast.unparse(loaded.value) == ADAPTERS:
                continue
            found += 1
            assert call is not None, f"{path}:{loaded.lineno} hides which options it loads with"
            assert refuses_code(call), f"{path}:{loaded.lineno} lacks trust_remote_code=False"
    assert found > 5


@pytest.mark.parametrize("part", ["config.json", "tokenizer_config.json"])
def test_code_in_a_model_folder_is_not_run(tmp_path: Path, part: str) -> None:
    folder = save_tiny_llama(tmp_path / "model")
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: ...\n")
    settings = json.loads((folder / part).read_text())
    settings["auto_map"] = {
        "AutoConfig": "evil.Evil",
        "AutoModelForCausalLM": "evil.Evil",
        "AutoTokenizer": [None, "evil.Evil"],
    }
    settings |= {"model_type": "evil"} if part == "config.json" else {"tokenizer_class": "Evil"}
    (folder / part).write_text(json.dumps(settings))
    with pytest.raises(UsageError):
        open_model(f"hf:{folder}")
    assert not (tmp_path / "ran").exists()
