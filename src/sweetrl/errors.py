"""Every error that sweetrl raises on purpose.

    SweetError
    ├── UsageError           the caller can fix it: one line, exit code 2
    │   ├── ConfigError      an impossible option or recipe
    │   ├── DataError        a file has unexpected content; names file and line
    │   ├── EndpointDown     the endpoint of a model does not respond; the run stops, and can be resumed
    │   └── MissingExtra     an optional dependency is not installed
    ├── StageError           one item failed through no fault of the agent; recorded as a `Failure`
    │   ├── ModelError       a language model or its endpoint
    │   │   └── NoReplyError it works, but gives no reply to these words: too long, filtered, or empty
    │   ├── CollaboratorError
    │   ├── SandboxError     the isolation around untrusted code
    │   └── RenderError      the browser
    ├── PageError            a page cannot be shown, through the fault of its author
    ├── WordsError           no reply is possible, through the fault of the agent's words
    └── TrainingError        a training run cannot continue

An infrastructure failure is never turned into a reward: a `StageError` leaves its item unscored. Where the words
of an agent may be the cause, `dialogue/blame.py` finds out whether they are before it counts as one.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from traceback import extract_tb


class SweetError(Exception):
    """Base of all errors raised on purpose; its text is one line that a person can act on."""


class UsageError(SweetError):
    """The command or call cannot be carried out as given."""


class ConfigError(UsageError):
    """An option or a configuration value is wrong."""


class DataError(UsageError):
    """A file or a record is not what it should be."""

    def __init__(self, message: str, *, path: Path | None = None, line: int | None = None) -> None:
        """`line` counts from 1, as editors do."""
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message)


class MissingExtra(UsageError):  # noqa: N818  the name says it all
    """A feature needs packages of an extra that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package: {installing(extra)}")


def installing(extra: str) -> str:
    """The command that installs an extra here: in a checkout from its files, elsewhere by the package's name."""
    checkout = Path(__file__).parents[2]
    if not (checkout / "pyproject.toml").is_file():
        return f"pip install 'sweetrl[{extra}]'"
    inside = Path.cwd() == checkout
    pip = (Path() if inside else checkout) / ".venv/bin/pip" if (checkout / ".venv").is_dir() else "pip"
    return f"{pip} install -e '{'.' if inside else checkout}[{extra}]'"


class EndpointDown(UsageError):  # noqa: N818  the name says it all
    """No connection to a model's server for so long that waiting is pointless. What is done is kept."""

    kind = "connection"


@contextmanager
def needs_extra(feature: str, extra: str) -> Iterator[None]:
    """Report an import that fails in the block as a missing extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sweetrl"):
            raise
        raise MissingExtra(feature, extra) from error


def suggestion(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the most similar one, or all that there are."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names) or 'none'}"


def one_line(error: BaseException) -> str:
    """The message of an error, without line breaks."""
    return " ".join(str(error).split())


def first_line(error: BaseException) -> str:
    """The first line of an error's message: libraries add advice of their own."""
    return str(error).strip().partition("\n")[0]


def broke_down(what: str, error: Exception) -> UsageError:
    """What code that somebody wrote for a domain raised, with the line of it that was called from here."""
    frames = extract_tb(error.__traceback__)
    place = frames[min(1, len(frames) - 1)]
    reason = f"{type(error).__name__}: {one_line(error)}"
    return UsageError(
        f"{what} raised {reason} ({place.filename}:{place.lineno}); fix it and rerun the same command to resume"
    )


def unloadable(path: str, what: str, error: BaseException) -> UsageError:
    """An error for something that a folder or the hub could not provide: the library's reason, and our next step."""
    reason = first_line(error).rstrip(" .:").removesuffix(" from one of")  # and a list of ways below
    step = "give the folder of a model, or its name on the hub"
    return UsageError(f"{path}: cannot load {what} from there: {reason}; {step}")


class StageError(SweetError):
    """One item could not be processed; the others go on."""


class ModelError(StageError):
    """A language model did not answer, or not usably."""

    def __init__(self, message: str, *, kind: str = "model") -> None:
        """`kind` is one word for the cause, such as `context_length` or `timeout`."""
        super().__init__(message)
        self.kind = kind


class NoReplyError(ModelError):
    """A working model gave no usable reply to a chat: too long, stopped by a content filter, or empty.

    Whoever wrote the words may be to blame. `kind` is `context_length`, `content_filter` (the chat was refused),
    `reply_filtered`, `reply_too_large` or `no_content` (what the model itself wrote is the cause).
    """


class CollaboratorError(StageError):
    """The collaborator's side of a dialogue broke down."""


class SandboxError(StageError):
    """The sandbox itself failed, as opposed to the code inside it."""


class RenderError(StageError):
    """The browser itself failed, as opposed to the page it was given."""


class PageError(SweetError):
    """A page cannot be shown, by its own fault: too large, never ready, or in need of what is not offered.

    Its text may be shown to whoever wrote the page. A scorer gives such a page the lowest reward.
    """


class WordsError(SweetError):
    """The words of an agent are the reason that it gets no reply, or cannot go on: scored, never left out."""

    def __init__(self, message: str, *, kind: str) -> None:
        """`kind` is one word for the cause, such as `context_length`."""
        super().__init__(message)
        self.kind = kind


class TrainingError(SweetError):
    """A training run cannot go on (a loss that is not a number, for example)."""
