"""LoRA adapters that a run trains and a running vLLM server loads."""

import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from sweetrl.errors import UsageError
from sweetrl.experiments.listings import MOST_READ, answer_of, models_in
from sweetrl.settings import ServerSettings

LOAD_PATH = "/v1/load_lora_adapter"
CONFIG = "adapter_config.json"
"""Written last: a folder that has it is complete."""
LOAD_SECONDS = 600.0
"""How long a server has to load an adapter."""


def load(settings: ServerSettings, folder: Path) -> None:
    """Give a server those of its adapters that have been trained and that it does not list yet."""
    listed = models_in(answer_of(settings.ready) or b"")
    for name, place in settings.adapters.items():
        path = Path(place.replace("{output}", str(folder))).resolve()
        if name not in listed and (path / CONFIG).is_file():
            _post(settings, {"lora_name": name, "lora_path": str(path)})


def _post(settings: ServerSettings, body: dict[str, str]) -> None:
    parts = urlsplit(settings.ready)
    address = urlunsplit((parts.scheme, parts.netloc, LOAD_PATH, "", ""))
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, msgspec.json.encode(body), headers)  # noqa: S310  the recipe's own
    try:
        urllib.request.urlopen(request, timeout=LOAD_SECONDS).close()  # noqa: S310
    except urllib.error.HTTPError as error:
        said = error.read(MOST_READ).decode("utf-8", "replace")
        advice = (
            "; start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 and --enable-lora"
            if error.code == 404
            else ""
        )
        raise UsageError(
            f"{address}: cannot load the adapter {body['lora_path']}: HTTP {error.code} {said[:300]}{advice}"
        ) from None
    except OSError as error:
        raise UsageError(f"{address}: cannot load the adapter {body['lora_path']}: {error}") from None
