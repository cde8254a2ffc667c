"""What all pages share: head, navigation, switches, and addresses."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from urllib.parse import urlencode

from sweetrl.report.markup import Markup, element, excerpt

KEYS = (
    ("/", "search"),
    ("j k", "next or previous dialogue in the list, turn in a dialogue"),
    ("Enter", "open the dialogue"),
    ("← →", "previous or next dialogue"),
    ("h", "show or hide hidden information"),
    ("u", "back to the list"),
    ("?", "these keys"),
)


PLAY_KEYS = (("Ctrl Enter", "send the message"), ("?", "these keys"))

TABS = {"Dialogues": "/", "Metrics": "/metrics"}
"""The navigation: titles and addresses."""


def address(path: str, *pairs: tuple[str, object], **fields: object) -> str:
    """A path of this server with its query; fields that are empty are left out."""
    query = [(name, value) for name, value in (*pairs, *fields.items()) if value not in ("", None, False)]
    return f"{path}?{urlencode(query)}" if query else path


def page(
    title: str, *content: Markup | None, at: str = "", live: bool | int = False, is_game: bool = False
) -> str:
    """A whole page. A `live` one is fetched again when the runs have grown; a game has no others beside it.

    A number is the version of the index that a live page shows; otherwise it is the one at the time when it is open.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", excerpt(f"{title} · sweetrl", 200)),
        element("link", rel="stylesheet", href="/static/style.css"),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        element("script", src="/static/report.js", defer=True),
        element("script", src="/static/viewer.js", defer=True),
    )
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        _header(at, {} if is_game else TABS),
        element("main", *content, id="content", data_live=live),
        _keys(PLAY_KEYS if is_game else KEYS),
        element(
            "dialog", element("button", "×", type="button", class_="close", aria_label="close"), id="enlarged"
        ),
        element("div", id="tip", role="tooltip", hidden=True),
        element("div", id="said", role="status", class_="unseen"),
    )
    return "<!doctype html>\n" + element("html", head, body, lang="en", class_="viewer") + "\n"


def _header(at: str, tabs: Mapping[str, str]) -> Markup:
    links = [
        element("li", element("a", title, href=target, aria_current="page" if title == at else None))
        for title, target in tabs.items()
    ]
    return element(
        "header",
        element("a", "sweetrl", href="/", class_="brand"),
        element("nav", element("ul", *links), aria_label="pages"),
        element("span", "live", id="pulse", title="the page follows the run", hidden=True),
        element("button", "?", type="button", id="help", aria_label="keys", title="keys"),
        element("button", "◐", type="button", id="theme", aria_label="light or dark", title="light or dark"),
    )


def _keys(known: Sequence[tuple[str, str]]) -> Markup:
    rows = [
        element("tr", element("th", element("kbd", keys), scope="row"), element("td", what))
        for keys, what in known
    ]
    return element(
        "dialog",
        element("h2", "Keys"),
        element("table", element("tbody", *rows)),
        element("form", element("button", "Close"), method="dialog"),
        id="keys",
    )


def choice(
    name: str, label: str, options: Mapping[str, str] | Iterable[str], chosen: str, anything: str = ""
) -> Markup:
    """A labelled menu; `anything` is the first entry, which chooses nothing."""
    named = options if isinstance(options, Mapping) else {each: each.replace("_", " ") for each in options}
    entries = [element("option", anything, value="")] if anything else []
    entries += [
        element("option", excerpt(title, 60), value=value, selected=value == chosen)
        for value, title in named.items()
    ]
    return element("label", element("span", label), element("select", *entries, name=name), class_="choice")


def hidden_switch(here: str, *, shown: bool) -> Markup:
    """The link that shows what agents must not see, or hides it again."""
    return element(
        "a",
        element("span", class_="knob", aria_hidden="true"),
        "hidden information",
        href=here,
        id="hidden-switch",
        role="switch",
        aria_checked="true" if shown else "false",
        class_="switch",
    )


def static_files() -> dict[str, tuple[bytes, str]]:
    """Style, script and icon, by name, with their types."""
    report, own = resources.files("sweetrl.report"), resources.files("sweetrl.viewer")
    style = report.joinpath("style.css").read_bytes() + own.joinpath("viewer.css").read_bytes()
    return {
        "style.css": (style, "text/css; charset=utf-8"),
        "report.js": (report.joinpath("script.js").read_bytes(), "text/javascript; charset=utf-8"),
        "viewer.js": (own.joinpath("viewer.js").read_bytes(), "text/javascript; charset=utf-8"),
        "icon.svg": (_ICON, "image/svg+xml"),
    }


_ICON = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" '
    b'fill="#0072b2"/><path d="M3 11V8h2v3zm4 0V4h2v7zm4 0V6h2v5z" fill="#fff"/></svg>'
)
