"""`mini-frontend`: small design tasks made from a seed, for training without any other data at hand.

A page is drawn as a `Design`: the sections it has, their order, and the colours, alignments and sizes of each.
The request names the business and little else, so that these choices can be learned from the collaborator only.
Which split a design belongs to follows from its page alone: no page is in two splits, whatever the seeds.
"""

import html
import random
from collections.abc import Callable, Iterator

from msgspec import Struct

from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import UsageError
from sweetrl.seeds import derive_seed
from sweetrl.types import Task, digest

NAME = "mini-frontend"
STYLESHEET = "https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css"

SPLIT_SHARES = {"train": 80, "validation": 10, "test": 10}
"""Per cent of all designs."""

DARK = ("gray-800", "red-600", "blue-600", "green-600", "purple-600", "indigo-800", "pink-600")
LIGHT = ("white", "gray-200", "yellow-200", "blue-100", "green-100", "red-100", "purple-100")
PAGE_COLOURS = ("white", "gray-100", "yellow-50", "blue-50", "green-50")
ALIGNMENTS = ("left", "center", "right")
MIDDLE = ("hero", "cards", "table", "form")


class Business(Struct, frozen=True):
    """The business that a page presents."""

    what: str
    name: str
    headline: str
    pages: tuple[str, ...]
    """Links of the navigation."""
    items: tuple[str, ...]
    """The entries of the cards and the table."""


BUSINESSES = (
    Business("a bakery", "Golden Crust", "Bread worth waking up for", ("Menu", "Orders", "Visit"),
             ("Rye loaf", "Croissant", "Apple pie", "Bagel", "Brioche")),
    Business("a bicycle shop", "Two Wheels", "Ride further every day", ("Bikes", "Repairs", "Tours", "About"),
             ("City bike", "Road bike", "Trail bike", "Helmet", "Pump")),
    Business("a small museum", "Harbour Museum", "Four centuries at sea", ("Exhibits", "Tickets", "Contact"),
             ("Old maps", "Ship models", "Lighthouse", "Nets", "Compass")),
    Business("a yoga studio", "Still Point", "Breathe in and stretch out", ("Classes", "Teachers", "Prices"),
             ("Morning flow", "Deep rest", "Balance", "Strength", "Evening calm")),
    Business("a law office", "Marsh and Hill", "Plain advice in hard times", ("Services", "People", "Contact"),
             ("Contracts", "Family law", "Property", "Employment", "Wills")),
    Business("a garden centre", "Deep Roots", "Everything that grows", ("Plants", "Tools", "Advice", "Find us"),
             ("Roses", "Ferns", "Tomatoes", "Lavender", "Herbs")),
    Business("a music school", "Open String", "Play your first song in a week", ("Lessons", "Concerts", "Join"),
             ("Piano", "Violin", "Guitar", "Drums", "Singing")),
    Business("a travel agency", "Far Shores", "Find a quieter beach", ("Trips", "Offers", "Stories", "Contact"),
             ("Lisbon", "Kyoto", "Oslo", "Quito", "Naples")),
    Business("a pet clinic", "Kind Paws", "Care for every companion", ("Services", "Team", "Emergency"),
             ("Vaccines", "Dental care", "Surgery", "Check-up", "Grooming")),
    Business("a coffee roaster", "Slow Drip", "Roasted this very morning", ("Beans", "Brewing", "Shop"),
             ("Dark roast", "Light roast", "Decaf", "Espresso", "Filter")),
    Business("a software start-up", "Loopworks", "Ship your work on time", ("Product", "Pricing", "Docs", "Blog"),
             ("Planner", "Tracker", "Reports", "Alerts", "Archive")),
    Business("a charity", "Full Plate", "A warm meal for everyone", ("Projects", "Donate", "Volunteer"),
             ("Kitchens", "Food bank", "School meals", "Gardens", "Training")),
)  # fmt: skip

IDEAS = (
    "A page for {what} called {name}.",
    "We run {what} and need a simple website.",
    "Please design a landing page for {what}.",
    "{name} is {what}. Make it a welcoming page.",
    "A clean one-page site for {what}.",
)


class Design(Struct, frozen=True, kw_only=True):
    """Every choice behind a page. Colours are names of Tailwind's palette."""

    business: Business
    sections: tuple[str, ...]
    """Names from `MIDDLE`, from top to bottom."""
    page_colour: str
    header_colour: str
    navigation: str
    """`right`: in the header; `bar`: a bar of its own below; `none`."""
    bar_colour: str
    hero_colour: str
    hero_align: str
    hero_padding: int
    heading_size: str
    button_colour: str
    """Colour of the buttons in the hero and the form."""
    card_count: int
    card_colour: str
    card_pictures: bool
    table_rows: int
    table_colour: str
    form_fields: int
    form_width: str
    footer_colour: str
    """Empty for a page without a footer."""
    footer_align: str


def make_tasks(split: str, count: int, seed: int = 0) -> Iterator[Task]:
    """`count` different tasks of a split; a greater `count` only adds to them."""
    return tasks_of_designs(NAME, draw_design, split, count, seed)


def tasks_of_designs(
    name: str, draw: Callable[[random.Random], Design], split: str, count: int, seed: int
) -> Iterator[Task]:
    """Tasks of the generator `name`, whose designs `draw` draws."""
    if split not in SPLIT_SHARES:
        raise UsageError(f"{name} has no split {split!r}; it has {', '.join(SPLIT_SHARES)}")
    rng = random.Random(derive_seed(name, split, seed))  # noqa: S311  pages, no secrets
    seen: set[str] = set()
    while len(seen) < count:
        design = draw(rng)
        page = page_of(design)
        page_digest = digest(page)
        request = rng.choice(IDEAS).format(what=design.business.what, name=design.business.name)
        if page_digest in seen or split_of(page) != split:
            continue
        seen.add(page_digest)
        yield Task(
            id=f"{name}-{page_digest}",
            domain="frontend",
            split=split,
            request=request,
            secret=FrontendSecret(page),
        )


def split_of(page: str) -> str:
    """The split that a page belongs to."""
    place = derive_seed(NAME, page) % 100
    for split, share in SPLIT_SHARES.items():
        if place < share:
            return split
        place -= share
    raise AssertionError("the shares add up to 100")


def draw_design(rng: random.Random) -> Design:
    """A design at random."""
    middle = rng.sample(MIDDLE, rng.randint(2, len(MIDDLE)))
    return Design(
        business=rng.choice(BUSINESSES),
        sections=tuple(middle),
        page_colour=rng.choice(PAGE_COLOURS),
        header_colour=rng.choice(DARK + LIGHT),
        navigation=rng.choice(("right", "bar", "none")),
        bar_colour=rng.choice(DARK + LIGHT),
        hero_colour=rng.choice(DARK + LIGHT),
        hero_align=rng.choice(ALIGNMENTS),
        hero_padding=rng.choice((8, 16, 24)),
        heading_size=rng.choice(("2xl", "4xl", "6xl")),
        button_colour=rng.choice(DARK),
        card_count=rng.randint(2, 4),
        card_colour=rng.choice(LIGHT),
        card_pictures=rng.random() < 0.5,
        table_rows=rng.randint(2, 5),
        table_colour=rng.choice(DARK),
        form_fields=rng.randint(1, 3),
        form_width=rng.choice(("1/3", "1/2", "full")),
        footer_colour=rng.choice(("", *DARK, *LIGHT)),
        footer_align=rng.choice(ALIGNMENTS),
    )


# ---------------------------------------------------------------- pages


def page_of(design: Design) -> str:
    """The page as HTML."""
    parts = [_header(design), *(_SECTIONS[name](design) for name in design.sections), _footer(design)]
    body = "\n".join(part for part in parts if part)
    return (
        f'<html>\n<link href="{STYLESHEET}" rel="stylesheet">\n'
        f'<body class="bg-{design.page_colour}">\n{body}\n</body>\n</html>'
    )


def _header(design: Design) -> str:
    links = " ".join(f'<a href="#" class="mx-3">{html.escape(page)}</a>' for page in design.business.pages)
    title = f'<h1 class="text-2xl font-bold">{html.escape(design.business.name)}</h1>'
    inside = f"\n    <nav>{links}</nav>" if design.navigation == "right" else ""
    header = (
        f'  <header class="{_painted(design.header_colour)} p-4 flex items-center justify-between">\n'
        f"    {title}{inside}\n  </header>"
    )
    if design.navigation != "bar":
        return header
    return f'{header}\n  <nav class="{_painted(design.bar_colour)} p-2 text-center">{links}</nav>'


def _hero(design: Design) -> str:
    return f"""\
  <section class="{_painted(design.hero_colour)} py-{design.hero_padding} px-8 text-{design.hero_align}">
    <h2 class="text-{design.heading_size} font-bold mb-4">{html.escape(design.business.headline)}</h2>
    {_button(design, design.business.pages[0])}
  </section>"""


def _cards(design: Design) -> str:
    picture = '<img src="https://picsum.photos/id/48/300/150" class="mb-2">' if design.card_pictures else ""
    cards = "\n".join(
        f'    <div class="{_painted(design.card_colour)} p-6 rounded shadow">{picture}'
        f'<h3 class="text-xl font-bold">{html.escape(item)}</h3></div>'
        for item in design.business.items[: design.card_count]
    )
    return f'  <div class="grid grid-cols-{design.card_count} gap-6 p-8">\n{cards}\n  </div>'


def _table(design: Design) -> str:
    rows = "\n".join(
        f'      <tr class="border-b"><td class="p-3">{html.escape(item)}</td><td class="p-3">{5 + 3 * place}.50'
        "</td></tr>"
        for place, item in enumerate(design.business.items[: design.table_rows])
    )
    return f"""\
  <div class="p-8">
    <table class="w-full bg-white">
      <tr class="{_painted(design.table_colour)} text-left"><th class="p-3">Name</th><th class="p-3">Price</th></tr>
{rows}
    </table>
  </div>"""


def _form(design: Design) -> str:
    fields = "\n".join(
        f'      <label class="block mb-1">{label}</label><input class="border w-full p-2 mb-3">'
        for label in ("Name", "Email", "Message")[: design.form_fields]
    )
    return f"""\
  <div class="p-8">
    <form class="w-{design.form_width} mx-auto bg-white p-6 shadow">
{fields}
      {_button(design, "Send")}
    </form>
  </div>"""


def _footer(design: Design) -> str:
    if not design.footer_colour:
        return ""
    return (
        f'  <footer class="{_painted(design.footer_colour)} p-6 text-{design.footer_align}">'
        f"<p>{html.escape(design.business.name)}, all rights reserved</p></footer>"
    )


def _button(design: Design, label: str) -> str:
    return f'<button class="{_painted(design.button_colour)} px-6 py-2 rounded">{html.escape(label)}</button>'


def _painted(colour: str) -> str:
    return f"bg-{colour} text-{'white' if colour in DARK else 'gray-800'}"


_SECTIONS = {"hero": _hero, "cards": _cards, "table": _table, "form": _form}
