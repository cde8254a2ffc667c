"""Files on the Hugging Face hub, named as its own tools name them: `hf://datasets/OWNER/NAME[@REVISION]/FILE`.

Such a name may stand wherever a file is read. The file is fetched once, into the hub's own cache; with `HF_HUB_OFFLINE`
set, only what is there is read.
"""

import re
from functools import cache
from pathlib import Path

from sweetrl.errors import UsageError, first_line, needs_extra

# A `Path` keeps one slash of two.
_NAME = re.compile(
    r"hf:/{1,2}(?P<datasets>datasets/)?+(?P<repo>[^/@]+/[^/@]+)(?:@(?P<revision>[^/]+))?/(?P<file>[^/].*)"
)


def is_on_hub(path: Path | str) -> bool:
    """Whether a path is the name of something on the hub."""
    return str(path).startswith("hf:/")


def on_disk(path: Path) -> Path:
    """The path itself, or the copy in the cache of the file that it names on the hub."""
    return _fetched(str(path)) if is_on_hub(path) else path


@cache
def _fetched(name: str) -> Path:
    matched = _NAME.fullmatch(name)
    if matched is None:
        raise UsageError(f"{shown(name)}: write hf://datasets/OWNER/NAME/FILE, or @REVISION after the NAME")
    with needs_extra("a file on the hub", "hub"):
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError
    try:
        return Path(
            hf_hub_download(
                matched["repo"],
                matched["file"],
                repo_type="dataset" if matched["datasets"] else "model",
                revision=matched["revision"],
            )
        )
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = first_line(error).rstrip(".") or type(error).__name__
        raise UsageError(
            f"{shown(name)}: cannot be downloaded from the hub: {reason}; "
            f"check the name, or log in with `hf auth login`"
        ) from error


def shown(name: str) -> str:
    """The name with both of its slashes."""
    return re.sub(r"\Ahf:/+", "hf://", name)
