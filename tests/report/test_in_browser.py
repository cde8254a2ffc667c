"""Reports in a real browser: nothing that models wrote runs or is fetched, and the page can be used."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from report.samples import credit, episode, png, records, verdict
from sweetrl.browser import WebAssets, find_browser
from sweetrl.browser.chromium import launch, write_font_configuration
from sweetrl.errors import UsageError
from sweetrl.report import (
    Comparison,
    Example,
    Figure,
    Measure,
    Method,
    Pictures,
    Point,
    Provenance,
    ReportContents,
    Run,
    Series,
    TaskScore,
    Training,
    compose,
    render,
)
from sweetrl.report.contents import Table
from sweetrl.types import Check, Failure, Metric, Outcome, Reply, TokenCredit, Turn, TurnCredit

LISTENER = "http://127.0.0.1:9"
ATTACKS = (
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 2</script>",
    "</style></title></pre></textarea><img src=x onerror='window.hit = 3'>",
    "\" onmouseover=\"window.hit = 4\" autofocus onfocus=\"window.hit = 5\" x=\"",
    "' onclick='window.hit = 6",
    f"<img src='{LISTENER}/a.png'><link rel=stylesheet href='{LISTENER}/b.css'><iframe src='{LISTENER}/c'></iframe>",
    "<svg><script>window.hit = 7</script><a xlink:href='javascript:window.hit=8'><text>x</text></a></svg>",
    "<meta http-equiv=refresh content='0;url=javascript:window.hit=9'><base href='http://127.0.0.1:9/'>",
    "<!--", "]]>", "&lt;script&gt;window.hit = 10&lt;/script&gt;", "{{constructor.constructor('window.hit=11')()}}",
    "javascript:window.hit=12", "\u202egnp.exe \x00\x1b[2J \ud83d \ufeff\ufffe", "<plaintext>",
    f"<style>@import '{LISTENER}/d.css'; * {{ background: url({LISTENER}/e) }}</style>",
    "```html\n<script>window.hit = 13</script>\n```", "<html><body onload='window.hit = 14'></body></html>",
    "def f():\n    '''</code></pre><script>window.hit = 15</script>'''",
)  # fmt: skip
HOSTILE = "\n".join(ATTACKS)


def hostile_example() -> Example:
    """Every field that a model, a critic or a scorer fills, filled with attacks."""
    held = episode("t")
    turns = tuple(Turn(f"{each} OUTPUT: {each}", each, Reply(each, each)) for each in ATTACKS)
    held = msgspec.structs.replace(
        held, task_id=HOSTILE, request=HOSTILE, turns=turns, failure=Failure(HOSTILE, HOSTILE, HOSTILE)
    )
    judged = msgspec.structs.replace(
        verdict("t", 0.5), scorer=HOSTILE, checks=tuple(Check(each, Outcome.WRONG, each) for each in ATTACKS)
    )
    credited = tuple(
        TurnCredit(
            episode_id="t",
            task_id="t",
            turn=turn,
            critic=HOSTILE,
            advantage=0.1,
            tokens=tuple(TokenCredit(each, (-1) ** turn) for each in ATTACKS),
        )
        for turn in range(len(ATTACKS))
    )
    fake = Pictures(
        HOSTILE.encode("utf-8", "replace"), b"<svg onload='window.hit=16'>", {ATTACKS[0]: png(20, 10)}
    )
    return Example(HOSTILE, held, judged, credited, reference=HOSTILE, pictures=fake)


def hostile_contents() -> ReportContents:
    metric = Metric(HOSTILE, 0.4, 0.3, 0.5, 10)
    points = (Point(1, 0.1, 0.0, 0.2), Point(2, 0.4, 0.3, 0.5))
    tasks = {each: TaskScore(1, number % 2, 0.5) for number, each in enumerate(ATTACKS)}
    methods = tuple(
        Method(name, HOSTILE, "s", (metric,), 9, tasks, dict.fromkeys(ATTACKS, HOSTILE))
        for name in (HOSTILE, "b")
    )
    return ReportContents(
        title=HOSTILE,
        summary=HOSTILE,
        methods=methods,
        measures=(Measure(HOSTILE, HOSTILE, meaning=HOSTILE),),
        comparisons=(Comparison(HOSTILE, "b", HOSTILE, metric),),
        figures=(Figure(HOSTILE, HOSTILE, HOSTILE, (Series(HOSTILE, points),), HOSTILE),),
        trainings=(Training(HOSTILE, {HOSTILE: ((1, 1.0), (2, 2.0))}, ((HOSTILE, HOSTILE),)),),
        examples=(hostile_example(),),
        provenance=(Provenance(HOSTILE, ((HOSTILE, HOSTILE),), HOSTILE),),
    )


# ---------------------------------------------------------------- the browser


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def browser(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    playwright_api = pytest.importorskip("playwright.async_api", reason="needs the extra `browser`")
    try:
        program = find_browser()
    except UsageError as error:
        pytest.skip(str(error))
    fonts = write_font_configuration(tmp_path_factory.mktemp("fonts"), WebAssets().fonts)

    async def start() -> tuple[Any, Any]:
        playwright = await playwright_api.async_playwright().start()
        return playwright, await launch(playwright, program, fonts)

    playwright, started = run(start())
    yield started
    run(started.close())
    run(playwright.stop())


class Opened:
    """A report in a tab, and what the tab did."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))


@pytest.fixture
def opened(browser: Any, run: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def show(contents: ReportContents, **options: Any) -> Opened:
        path = tmp_path / "report.html"
        path.write_text(render(contents), encoding="utf-8")

        async def open_page() -> Opened:
            context = await browser.new_context(viewport={"width": 1200, "height": 800}, **options)
            contexts.append(context)
            tab = Opened(await context.new_page())
            await tab.page.goto(path.as_uri())
            return tab

        return run(open_page())

    yield show
    for context in contexts:
        run(context.close())


def test_nothing_that_models_wrote_runs_or_is_fetched(opened, run, tmp_path) -> None:
    tab = opened(hostile_contents())

    async def use() -> dict[str, Any]:
        page = tab.page
        await page.evaluate(
            """() => {
                for (const each of document.querySelectorAll("details")) each.open = true;
                for (const each of document.querySelectorAll("[data-tip]"))
                    each.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
                for (const each of document.querySelectorAll("button")) each.click();
            }"""
        )
        await page.keyboard.press("Escape")
        await page.wait_for_load_state("networkidle")
        return await page.evaluate(
            """() => ({
                hit: window.hit ?? null,
                scripts: document.scripts.length,
                styles: document.querySelectorAll("style, link").length,
                foreign: document.querySelectorAll("iframe, object, embed, base, form, video, audio, plaintext").length,
                pictures: [...document.images].map((image) => image.src.slice(0, 22)),
                links: [...document.querySelectorAll("a")].map((link) => link.getAttribute("href")),
                handlers: [...document.querySelectorAll("*")].flatMap((each) => each.getAttributeNames())
                    .filter((name) => name.startsWith("on") || name === "style" || name === "autofocus"),
                tip: document.getElementById("tip").children.length,
                title: document.title,
                shown: document.body.textContent,
            })"""
        )

    found = run(use())
    assert found["hit"] is None
    assert (found["scripts"], found["styles"], found["foreign"], found["tip"]) == (1, 1, 0, 0)
    assert all(picture == "data:image/png;base64," for picture in found["pictures"])
    assert all(link.startswith("#") for link in found["links"])
    # The tip under the pointer is placed by our script; nothing else has a style of its own.
    assert set(found["handlers"]) <= {"style"}
    assert found["handlers"].count("style") <= 1
    assert found["title"].startswith("<script>window.hit = 1</script>")
    assert "</script><script>window.hit = 2</script>" in found["shown"]
    assert [url for url in tab.requests if not url.startswith("data:")] == [
        (tmp_path / "report.html").as_uri()
    ]
    assert tab.complaints == []


def test_such_a_script_would_be_noticed(opened, run, monkeypatch) -> None:
    """The policy alone stops what escaping might miss, and the browser says so."""
    from sweetrl.report import page
    from sweetrl.report.markup import Markup

    monkeypatch.setattr(page, "excerpt", lambda value, _: Markup(value))
    tab = opened(ReportContents(f"</title><script>window.hit = 1</script><img src='{LISTENER}/x.png'>"))
    assert run(tab.page.evaluate("window.hit ?? null")) is None
    assert run(tab.page.evaluate("document.scripts.length")) > 1
    assert any("Content Security Policy" in complaint for complaint in tab.complaints)


def sample() -> ReportContents:
    rewards = {f"task-{number:02}": 1.0 * (number % 2) for number in range(20)}
    base = Run("base", *records(rewards))
    sweet = Run("sweet", *records(dict.fromkeys(rewards, 1.0)), credit=credit("task-03", [0.2, -0.1]))
    points = tuple((step, 1 / step) for step in range(1, 300))
    training = Training("critic", {"loss": points, "accuracy": points, "margin": points})
    contents = compose("A report", [base, sweet], trainings=[training])
    first = contents.examples[0]
    pictured = Example(
        first.method, first.episode, first.verdict, pictures=Pictures(png(300, 200), png(300, 400))
    )
    return replace(contents, examples=(pictured, *contents.examples[1:]))


def test_the_list_of_tasks_can_be_filtered(opened, run) -> None:
    tab = opened(sample())

    async def use() -> list[Any]:
        page, found = tab.page, []

        async def note() -> None:
            rows = await page.locator(".task-list > .task:visible").count()
            found.append((rows, await page.locator(".controls output").inner_text()))

        await note()
        await page.locator(".matrix button").nth(1).click()
        await note()
        await page.get_by_label("Search").fill("TASK-04")
        await note()
        await page.get_by_label("Search").fill("")
        await page.locator(".matrix button").nth(1).click()
        await page.get_by_label("Better with").select_option("0")
        await note()
        return found

    assert run(use()) == [
        (20, "20 tasks"),
        (10, "10 of 20 tasks"),
        (1, "1 of 20 tasks"),
        (0, "0 of 20 tasks"),
    ]
    assert tab.complaints == []


def test_a_row_of_the_list_opens_the_dialogues_on_its_task(opened, run) -> None:
    tab = opened(sample())

    async def use() -> list[bool]:
        row = tab.page.locator(".task-list > .task").nth(3)
        said = row.locator(".brief li").first
        before = await said.is_visible()
        await row.locator("summary").first.click()
        await row.locator(".dialogue summary").first.click()
        return [before, await said.is_visible()]

    assert run(use()) == [False, True]


def test_words_and_numbers_of_a_chart_do_not_run_into_each_other(opened, run) -> None:
    metrics = (Metric("repeats", 0.29, 0.24, 0.35, 300), Metric("leaking_dialogues", 0.001, 0.0, 0.013, 300))
    other = (Metric("repeats", 0.09, 0.06, 0.12, 300), Metric("leaking_dialogues", 0.0, 0.0, 0.012, 300))
    runs = [
        Run(name, *records({"a": reward, "b": 0.5}), metrics=more)
        for name, reward, more in (("base", 0.0, other), ("sweet", 1.0, metrics))
    ]
    tab = opened(compose("t", runs, trainings=[Training("c", {"loss": ((0, 1.0), (123456, 0.5))})]))
    touching = """() => [...document.querySelectorAll("svg.chart")].flatMap((chart) => {
        const boxes = [...chart.querySelectorAll("text")].map((each) => [each.textContent, each.getBBox()]);
        return boxes.flatMap(([a, one], i) => boxes.slice(i + 1).filter(([, two]) =>
            one.x < two.x + two.width && two.x < one.x + one.width
            && one.y < two.y + two.height && two.y < one.y + one.height).map(([b]) => `${a} | ${b}`));
    })"""
    assert run(tab.page.evaluate(touching)) == []


def test_pictures_are_enlarged_and_dialogues_opened_from_the_keyboard(opened, run) -> None:
    tab = opened(sample())

    async def use() -> list[bool]:
        page = tab.page
        await page.locator(".zoom").first.focus()
        await page.keyboard.press("Enter")
        large = await page.locator("dialog img").is_visible()
        await page.keyboard.press("Escape")
        closed = not await page.locator("dialog").is_visible()
        await page.locator("#dialogues .dialogue summary").first.focus()
        await page.keyboard.press("Enter")
        return [large, closed, await page.locator("#dialogues .dialogue .bubble").first.is_visible()]

    assert run(use()) == [True, True, True]


def test_a_tip_says_what_is_under_the_pointer(opened, run) -> None:
    tab = opened(sample())

    async def use() -> str:
        await tab.page.locator(".bar").first.hover()
        return await tab.page.locator("#tip").inner_text()

    assert run(use()).startswith("base: success 50.0 (")


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_and_its_words_stand_out(opened, run, width, scheme) -> None:
    tab = opened(sample(), color_scheme=scheme)

    async def use() -> dict[str, Any]:
        await tab.page.set_viewport_size({"width": width, "height": 800})
        return await tab.page.evaluate(
            """() => {
                const light = (colour) => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number); return r + g + b };
                const style = getComputedStyle(document.body);
                return {
                    overflow: document.documentElement.scrollWidth - innerWidth,
                    ground: light(style.backgroundColor), ink: light(style.color),
                };
            }"""
        )

    found = run(use())
    assert found["overflow"] <= 0
    assert abs(found["ground"] - found["ink"]) > 500
    assert (found["ground"] > found["ink"]) == (scheme == "light")


@pytest.mark.parametrize("contents", [sample, hostile_contents], ids=["ordinary", "hostile"])
def test_on_a_phone_what_is_wide_scrolls_in_its_own_box_and_never_the_page(opened, run, contents) -> None:
    tab = opened(contents())

    async def use() -> dict[str, Any]:
        await tab.page.set_viewport_size({"width": 390, "height": 844})
        return await tab.page.evaluate(
            """() => {
                for (const each of document.querySelectorAll("details")) each.open = true;
                const charts = [...document.querySelectorAll(".chart.bars, .chart.differences")];
                const boxes = charts.map((each) => each.closest(".scroll"));
                return {
                    overflow: document.documentElement.scrollWidth - innerWidth,
                    scrolling: boxes.map((box) => box.scrollWidth > box.clientWidth && box.clientWidth < innerWidth),
                };
            }"""
        )

    found = run(use())
    assert found["overflow"] <= 0
    assert found["scrolling"]
    assert all(found["scrolling"])


def test_a_table_of_texts_fits_a_phone(opened, run) -> None:
    headings = ("dialogue", "among all turns", "what the assistant said")
    row = ("ticket-1", "rank 10 of 9,200, lower than 90% of all the turns", "a long sentence " * 9)
    tab = opened(ReportContents("Credit", tables=(Table("Turns", headings, (row,)),)))

    async def use() -> dict[str, Any]:
        await tab.page.set_viewport_size({"width": 390, "height": 844})
        return await tab.page.evaluate(
            """() => ({
                overflow: document.documentElement.scrollWidth - innerWidth,
                cut: [...document.querySelectorAll("td")].filter((each) => each.scrollWidth > each.clientWidth).length,
            })"""
        )

    assert run(use()) == {"overflow": 0, "cut": 0}


def test_the_button_turns_light_into_dark(opened, run) -> None:
    tab = opened(sample(), color_scheme="light")

    async def use() -> list[str]:
        ground = "getComputedStyle(document.body).backgroundColor"
        before = await tab.page.evaluate(ground)
        await tab.page.locator("#theme").click()
        return [before, await tab.page.evaluate(ground)]

    before, after = run(use())
    assert before == "rgb(255, 255, 255)"
    assert after != before


def test_on_paper_nothing_is_folded_away(opened, run) -> None:
    tab = opened(sample())

    async def use() -> list[int]:
        closed = "document.querySelectorAll('details:not([open])').length"
        counts = [await tab.page.evaluate(closed)]
        for event in ("beforeprint", "afterprint"):
            await tab.page.evaluate(f"dispatchEvent(new Event('{event}'))")
            counts.append(await tab.page.evaluate(closed))
        return counts

    before, printing, after = run(use())
    assert (printing, after) == (0, before)
    assert before > 0


def test_without_scripts_everything_can_be_read_all_the_same(opened, run) -> None:
    tab = opened(sample(), java_script_enabled=False)
    assert run(tab.page.locator(".task-list > .task:visible").count()) == 20
    run(tab.page.locator("#dialogues .dialogue summary").first.click())
    assert run(tab.page.locator("#dialogues .dialogue .bubble").first.is_visible())
