"""Pages with broken text in every place that is read from a page."""

BROKEN = (
    "\ud800 \udfff \udc00\ud800 &#xD800; &#55296; &#xDFFF; \\d800 \\00dfff \\ud800 \ufffe \uffff \U0010ffff \ufeff"
    " &#x110000; &#99999999999; &#"
    + "9" * 5000
    + "; \u202e \u2028 \x0b \x7f \x80 e\u0301\u0301 \U0001f468\u200d"
)
"""Halves of characters as they are, as entities and as escapes; characters that are none; numbers out of bounds."""
CUT = "a" * 1999 + "\U0001f600" * 2
"""A text that is cut in the middle of a character."""

_SCRIPT = "<script src='https://cdn.tailwindcss.com'></script>"
_SCRIPT_4 = "<script src='https://cdn.jsdelivr.net/npm/@tailwindcss/browser@4'></script>"
_LINK = "<link href='https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css' rel='stylesheet'>"

_PLACES = {
    "text": "<p>{x}</p>",
    "texts of many elements": "<p>{x}</p>" * 30,
    "text around elements": "<p>{x}<b>{x}</b>{x}</p>",
    "heading": "<h1>{x}</h1>",
    "button": "<button style='background:#ff0000'>{x}</button>" * 2,
    "title": "<title>{x}</title><p>x",
    "comment": "<!-- {x} --><p>x",
    "field": '<input value="{x}">',
    "hint of a field": '<input placeholder="{x}">',
    "type of a field": '<input type="{x}" value=x>',
    "hint of a text area": '<textarea placeholder="{x}">{x}</textarea>',
    "choices": "<select><option>{x}</option></select>",
    "class": '<p class="{x}">x</p>',
    "id": '<p id="{x}">x</p>',
    "style": '<p style="{x}; color: {x}; background: url({x})">x</p>',
    "name of a tag": "<p{x}>x</p{x}><{x}>x",
    "name of an attribute": '<p {x}="{x}">x</p>',
    "marquee": '<marquee class="{x}" id="{x}" style="{x}">{x}</marquee>',
    "language": '<html lang="{x}" dir="{x}"><p>x',
    "stylesheet": "<style>p::before { content: '{x}' } .{x} { color: {x} }</style><p>x",
    "font": "<style>@font-face { font-family: '{x}'; src: url('{x}') } p { font-family: '{x}' }</style><p>x",
    "custom property": "<style>p { --{x}: {x}; width: var(--{x}) }</style><p>x",
    "picture": '<img src="{x}" alt="{x}"><img src="https://picsum.photos/30/20?{x}">',
    "picture beside": '<img srcset="{x} 2x, https://picsum.photos/{x}/20 1x"><picture><source srcset="{x}"></picture>',
    "link": '<a href="{x}">{x}</a>',
    "own stylesheet": '<link rel=stylesheet href="{x}.css"><p>x',
    "other stylesheet": '<link rel=stylesheet href="https://cdn.example.com/{x}.css"><p>x',
    "base": '<base href="https://{x}.example/"><img src="{x}">',
    "charset": '<meta charset="{x}"><p>x',
    "drawing": "<svg width=90 height=90><text y=20>{x}</text><a href='{x}'><path d='{x}' /></a></svg>",
    "classes beside tailwind": _LINK + '<body class="bg-red-500 {x}"><p class="{x}">{x}',
    "classes for tailwind's script": _SCRIPT + '<body class="bg-red-500 {x}">',
    "styles for tailwind's script": _SCRIPT + "<style type='text/tailwindcss'>.a { content: '{x}' }</style>x",
    "config": _SCRIPT + "<script>tailwind.config = { theme: { extend: { colors: { b: '{x}' } } } }</script>"
    "<body class='bg-b'>x",
    "names in a config": _SCRIPT + "<script>tailwind.config = { '{x}': { '{x}': ['{x}'] } }</script>x",
    "prefix in a config": _SCRIPT + "<script>tailwind.config = { prefix: '\\ud800' }</script>{x}",
    "theme of version 4": _SCRIPT_4 + "<style type='text/tailwindcss'>@theme { --color-b: '{x}' }</style>x",
    "address of a script": '<script src="{x}"></script><script src="https://cdn.tailwindcss.com/{x}"></script>x',
}


def broken_pages() -> dict[str, str]:
    """By name: each place once with broken text, and once with text that is cut in the middle of a character."""
    return {
        f"{place}, {kind}": page.replace("{x}", text)
        for place, page in _PLACES.items()
        for kind, text in (("broken", BROKEN), ("cut", CUT))
    }
