"""Small databases, queries on them, and requests that leave out what matters."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from sweetrl import Secret, Task


class Theme(NamedTuple):
    """What a table is about, by column."""

    table: str
    who: str
    names: tuple[str, ...]
    where: str
    places: tuple[str, ...]
    measured: str
    ranked: str

    @property
    def columns(self) -> str:
        """As `CREATE TABLE` has them."""
        return f"{self.who} TEXT, {self.where} TEXT, {self.measured} INTEGER, {self.ranked} INTEGER"


THEMES = (
    Theme(
        "orders", "customer", ("Ada", "Bo", "Cleo"), "city", ("Oslo", "Lima", "Pune"), "amount", "priority"
    ),
    Theme(
        "visits", "patient", ("Ina", "Jo", "Kim"), "ward", ("north", "south", "east"), "minutes", "urgency"
    ),
    Theme("loans", "reader", ("Mia", "Ned", "Oki"), "branch", ("main", "river", "park"), "days", "renewals"),
)
MEASURES = {"total": "SUM", "average": "AVG", "largest": "MAX", "number": "COUNT"}
BOUNDS = range(2, 6)


class SqlSecret(Secret, frozen=True):
    """What only the analyst knows."""

    database: str
    """A script that creates the table and its rows."""
    query: str
    facts: dict[str, str]
    """What there is to ask: the topic, and the answer."""


def make_tasks(split: str, count: int, seed: int) -> Iterator[Task]:
    """Tasks from a seed; the same arguments give the same tasks."""
    for number in range(count):
        name = f"mini-sql-{split}-{seed}-{number}"
        yield _task(name, split, random.Random(name))


def _task(name: str, split: str, rng: random.Random) -> Task:
    theme = rng.choice(THEMES)
    measure, place, bound = rng.choice(sorted(MEASURES)), rng.choice(theme.places), rng.choice(BOUNDS)
    facts = {
        "measure": f"The {measure} of {theme.measured}.",
        "place": f"Only {theme.where} = '{place}'.",
        "bound": f"Only {theme.ranked} >= {bound}.",
    }
    return Task(
        id=name,
        domain="sql",
        split=split,
        request=f"One figure per {theme.who}, please, from {theme.table}({theme.columns}). Not all rows count.",
        secret=SqlSecret(_database(theme, rng), write_query(theme, measure, place, bound), facts),
    )


def write_query(theme: Theme, measure: str, place: str, bound: int) -> str:
    """The query that these facts add up to."""
    return (
        f"SELECT {theme.who}, {MEASURES[measure]}({theme.measured}) FROM {theme.table} "
        f"WHERE {theme.where} = '{place}' AND {theme.ranked} >= {bound} GROUP BY {theme.who}"
    )


def _database(theme: Theme, rng: random.Random) -> str:
    rows = [
        f"('{rng.choice(theme.names)}', '{rng.choice(theme.places)}', {rng.randrange(5, 90)}, {rng.randrange(1, 8)})"
        for _ in range(60)
    ]
    return f"CREATE TABLE {theme.table}({theme.columns}); INSERT INTO {theme.table} VALUES {', '.join(rows)};"
