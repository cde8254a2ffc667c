"""Pictures by real browsers: what they show, what they tell, and how browsers fail."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.hostile_pages import hostile_pages
from browser.pixels import pixels
from sweetrl.browser import Box, BrowserPool, Limits, PageError, RenderError, Shot, WebAssets, tab
from sweetrl.browser import pool as pool_module
from sweetrl.errors import UsageError

Render = Callable[[str], Shot]
TAILWIND_LINK = (
    '<link href="https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css" rel="stylesheet">'
)


def box(shot: Shot, tag: str) -> Box:
    return next(each for each in shot.boxes if each.tag == tag)


# ---------------------------------------------------------------- pictures


def test_a_picture_shows_the_page(render: Render) -> None:
    shot = render(
        "<body style='margin:0'><div style='height:40px;background:#ff0000'></div><div style='height:9px'>"
    )
    picture = pixels(shot.png)
    assert picture.shape == (shot.height, shot.width, 3) == (49, 1366, 3)
    assert (picture[:40] == [255, 0, 0]).all()
    assert (picture[40:] == 255).all()


@pytest.mark.parametrize("doctype", ["", "<!doctype html>"])
@pytest.mark.parametrize(
    ("style", "height"),
    [
        ("height:100px", 100),
        ("height:100vh", 682),
        ("height:1000px", 1000),
        ("position:absolute;top:150px;height:50px;width:9px", 200),
        ("height:100px;overflow:hidden'><p style='height:400px", 100),
    ],
)
def test_a_picture_ends_where_the_page_does(render: Render, doctype: str, style: str, height: int) -> None:
    assert render(f"{doctype}<body style='margin:0'><div style='{style}'>").height == height


def test_content_in_the_middle_of_the_window_is_not_cut(render: Render) -> None:
    shot = render(
        "<!doctype html><style>html, body { height: 100%; margin: 0 } body { display: flex; align-items: center }"
        "</style><p style='background:#ff0000;height:60px;width:60px'>"
    )
    assert shot.height >= 371
    assert (pixels(shot.png) == [255, 0, 0]).all(axis=2).sum() == 3600


def test_a_wide_page_is_shown_in_its_width_up_to_the_limit(render: Render) -> None:
    wide = "<body style='margin:0'><div style='width:{}px;height:9px'>"
    assert render(wide.format(2000)).width == 2000
    cut = render(wide.format(9000))
    assert cut.width == 2732
    assert cut.warnings == ("the page has 9000 x 9 pixels and was cut to 2732 x 9",)


def test_moving_things_stand_still(render: Render) -> None:
    page = (
        "<style>@keyframes k { from { width: 10px } to { width: 300px } } #a, #b { height: 9px; background: red }"
        "#a { animation: k 100s forwards } #b { animation: k .3s infinite; width: 50px }</style>"
        "<div id=a></div><div id=b></div><progress></progress><marquee>walking</marquee>"
        "<svg width=90 height=9><rect width=9 height=9><animate attributeName=x to=80 dur=.3s repeatCount=indefinite />"
        "</rect></svg><input autofocus>"
    )
    first = render(page)
    widths = [each.width for each in first.boxes if each.background == "#ff0000"]
    assert widths == [300, 50]
    assert len({render(page).png for _ in range(5)} | {first.png}) == 1


@pytest.mark.parametrize("more", ["", "transition:all 5s;"])
@pytest.mark.parametrize("start", ["<html>", "<html><base>"], ids=["used document", "new document"])
def test_nothing_looks_as_if_it_were_pointed_at(render: Render, start: str, more: str) -> None:
    style = (
        f"body{{margin:0}} a{{display:block;{more}color:#000001}} a:hover{{color:#ff0000;background:#00ff00}}"
    )
    # With the pointer in the corner, some new documents were measured before it was noticed and drawn after.
    shots = [
        render(f"{start}<style>{style}</style><a style='height:{height}px'>Home</a>")
        for height in (20, 30, 40, 50)
    ]
    for shot in shots:
        assert (box(shot, "a").color, box(shot, "a").background) == ("#000001", "")
        assert (pixels(shot.png)[:, 600:] == 255).all()


def test_pictures_have_the_size_that_they_were_asked_for_in(render: Render) -> None:
    shot = render(
        "<body style='margin:0'><img src='https://picsum.photos/id/48/300/200' style='display:block'>"
    )
    assert (box(shot, "img").width, box(shot, "img").height) == (300, 200)
    assert len(set(map(tuple, pixels(shot.png)[:200, :300].reshape(-1, 3)))) > 3
    assert shot.blocked == ()


def test_boxes_tell_where_things_are_and_how_they_look(render: Render) -> None:
    shot = render(
        "<body style='margin:0'><main style='padding:10px;background:rgba(0,0,255,.5)'><h1 style='margin:0;height:50px;"
        "width:50%;color:oklch(1 0 0);font:700 20px sans-serif;text-align:right;border:2px solid red;"
        "border-radius:50%'> Big <b>bold</b>\n words </h1></main><p hidden>x</p><div style='opacity:0'><i>y</i></div>"
    )
    assert [each.tag for each in shot.boxes] == ["body", "main", "h1", "b", "p", "div", "i"]
    assert [each.parent for each in shot.boxes] == [-1, 0, 1, 2, 0, 0, 5]
    assert [each.depth for each in shot.boxes] == [0, 1, 2, 3, 1, 1, 2]
    assert [each.visible for each in shot.boxes] == [True, True, True, True, False, False, False]
    heading = box(shot, "h1")
    assert (heading.x, heading.y, heading.width, heading.height) == (10, 10, 677, 54)
    assert (heading.text, heading.color, heading.background) == ("Big words", "#ffffff", "")
    assert (heading.font_size, heading.font_weight, heading.text_align) == (20, 700, "right")
    assert (heading.border_width, heading.border_color, heading.border_radius) == (2, "#ff0000", 338.5)
    assert box(shot, "main").background == "#0000ff80"


# ---------------------------------------------------------------- what pages are given


def test_tailwind_styles_a_page(render: Render, tailwind: WebAssets) -> None:
    shot = render(
        f"<html>{TAILWIND_LINK}<body class='bg-red-500'><p class='w-1/2 text-center'>x</p></body></html>"
    )
    assert box(shot, "body").background == "#ef4444"
    assert (box(shot, "p").width, box(shot, "p").text_align) == (683, "center")
    assert (shot.blocked, shot.warnings) == ((), ())


def test_one_page_does_not_see_the_styles_of_the_one_before(render: Render, tailwind: WebAssets) -> None:
    pages = [f"{TAILWIND_LINK}<body class='{name}'>x" for name in ("bg-red-500", "bg-blue-500", "bg-red-500")]
    assert [render(page).boxes[0].background for page in pages] == ["#ef4444", "#3b82f6", "#ef4444"]


def test_a_missing_tailwind_is_an_error_and_not_a_plain_page(
    run: Any, chromium: None, tmp_path: Path
) -> None:
    async def ask() -> None:
        async with BrowserPool(assets=WebAssets(tmp_path)) as renderer:
            await renderer.render("<p>no styles needed")
            with pytest.raises(RenderError, match="Tailwind CSS is not installed"):
                await renderer.render(f"{TAILWIND_LINK}<p>x")

    run(ask())


def test_a_page_that_needs_another_stylesheet_is_refused_and_told_so(render: Render) -> None:
    with pytest.raises(PageError, match=r"bootstrap\.css, which is not offered"):
        render("<link rel=stylesheet href='https://cdn.example.com/bootstrap.css'><p>x")


def test_what_a_page_does_not_get_is_listed(render: Render) -> None:
    shot = render(
        "<link rel=stylesheet href='https://fonts.googleapis.com/css?family=Inter'><link rel=stylesheet href='own.css'>"
        "<img src='https://example.com/b.png'><img src='a.png'><img src='a.png'><p>x"
    )
    assert shot.blocked == (
        "http://page.invalid/a.png",
        "http://page.invalid/own.css",
        "https://example.com/b.png",
        "https://fonts.googleapis.com/css?family=Inter",
    )


def test_scripts_do_not_run_and_the_author_is_told(render: Render) -> None:
    shot = render("<p>x</p><script>document.body.innerHTML = '<h1>y</h1>'</script>")
    assert [each.tag for each in shot.boxes] == ["body", "p"]
    assert shot.warnings == ("scripts do not run: 1 left out",)


PLAY = {
    3: "<script src='https://cdn.tailwindcss.com'></script>",
    4: "<script src='https://cdn.jsdelivr.net/npm/@tailwindcss/browser@4'></script>",
}


@pytest.mark.parametrize("version", [3, 4])
def test_the_styles_of_tailwinds_script_tag_are_applied(
    render: Render, version: int, tailwind: WebAssets
) -> None:
    shot = render(
        f"<!doctype html>{PLAY[version]}<body class='bg-[#123456]'><p class='w-[123px] md:font-bold print:hidden'>x</p>"
    )
    assert shot.boxes[0].background == "#123456"
    assert (box(shot, "p").width, box(shot, "p").font_weight) == (123, 700)
    assert (shot.blocked, shot.warnings) == ((), ())


def test_a_configuration_that_is_data_is_followed(render: Render, tailwind: WebAssets) -> None:
    config = "<script>tailwind.config = { theme: { extend: { colors: { brand: '#abcdef', }, }, }, }</script>"
    styles = "<style type='text/tailwindcss'>.lead { @apply bg-brand }</style>"
    shot = render(f"<!doctype html>{PLAY[3]}{config}{styles}<body class=text-brand><p class=lead>x")
    assert (shot.boxes[0].color, box(shot, "p").background) == ("#abcdef", "#abcdef")
    assert shot.warnings == ()


def test_a_configuration_that_is_a_program_is_ignored_with_a_warning(
    render: Render, tailwind: WebAssets
) -> None:
    config = "<script>tailwind.config = { plugins: [require('x')] }</script>"
    shot = render(f"<!doctype html>{PLAY[3]}{config}<body class=bg-white>x")
    assert shot.boxes[0].background == "#ffffff"
    assert shot.warnings == ("tailwind.config is more than plain data and was ignored",)


@pytest.mark.parametrize(
    ("version", "settings", "name"),
    [
        (3, "<script>tailwind.config = { prefix: 'tw-' }</script>", "tw-bg-[#abcdef]"),
        (3, "<script>tailwind.config = { corePlugins: ['backgroundColor'] }</script>", "bg-[#abcdef]"),
        (3, "<script>tailwind.config = { blocklist: ['p-4'], separator: '_' }</script>", "md_bg-[#abcdef]"),
        (4, "<style type='text/tailwindcss'>@import 'tailwindcss' prefix(tw);</style>", "tw:bg-[#abcdef]"),
    ],
)
def test_classes_may_be_named_as_the_page_likes(
    render: Render, tailwind: WebAssets, version: int, settings: str, name: str
) -> None:
    shot = render(f"<!doctype html>{PLAY[version]}{settings}<body class='{name}'>x")
    assert (shot.boxes[0].background, shot.warnings) == ("#abcdef", ())


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("mistake", [".a { @apply nonesuch }", ".a { color: red", ".a { @apply p-4 } }"])
def test_a_mistake_in_the_styles_leaves_the_page_without_tailwind_and_says_so(
    render: Render, tailwind: WebAssets, version: int, mistake: str
) -> None:
    shot = render(
        f"<!doctype html>{PLAY[version]}<style type='text/tailwindcss'>{mistake}</style><body class='bg-red-500'>x"
    )
    assert shot.boxes[0].background == ""
    [warning] = shot.warnings
    assert warning.startswith("Tailwind wrote no styles: ")


def test_version_4_is_configured_in_css(render: Render, tailwind: WebAssets) -> None:
    theme = "<style type='text/tailwindcss'>@import 'tailwindcss'; @theme { --color-brand: #abcdef }</style>"
    assert render(f"<!doctype html>{PLAY[4]}{theme}<body class=bg-brand>x").boxes[0].background == "#abcdef"


# ---------------------------------------------------------------- failures


def test_a_page_that_is_too_large_is_refused(render: Render) -> None:
    with pytest.raises(PageError, match="larger than 1048576 bytes"):
        render("ü" * 600_000)


def test_a_picture_that_is_too_large_is_refused(run: Any, pool: BrowserPool) -> None:
    noise = (
        "<svg width=900 height=900><filter id=f><feTurbulence baseFrequency=.9 /></filter>"
        "<rect width=900 height=900 filter=url(#f) /></svg>"
    )

    async def ask() -> Shot:
        async with BrowserPool(limits=Limits(png_bytes=1 << 20)) as renderer:
            with pytest.raises(PageError, match="picture of the page is larger than 1048576 bytes"):
                await renderer.render(noise)
            return await renderer.render("<p>next")

    assert run(ask()) == run(pool.render("<p>next"))


@pytest.mark.parametrize("start", ["", "<base>"], ids=["used document", "new document"])
def test_a_page_that_asks_for_too_much_is_refused_at_once_and_nothing_of_it_comes_later(
    render: Render, start: str
) -> None:
    render("<p>before")
    with pytest.raises(PageError, match="asks for more than 1000 files"):
        render(start + "".join(f"<img src=a{n}.png>" for n in range(2_000)))
    shot = render("<img src=own.png>")
    assert shot.blocked == ("http://page.invalid/own.png",)


def test_a_number_that_python_does_not_read_is_text_like_any_other(
    render: Render, tailwind: WebAssets
) -> None:
    shot = render(f"{TAILWIND_LINK}<p class='&#{'0' * 5000}98;g-red-500'>&#{'9' * 5000};</p>")
    assert (box(shot, "p").background, box(shot, "p").text) == ("#ef4444", "\ufffd")


def trapped(condition: str) -> str:
    """measure.js, thrown off by some pages."""
    return f"((limits) => {{ if ({condition}) throw new Error('trap'); return ({tab._MEASURE})(limits); }})"


def test_a_page_that_cannot_be_measured_is_its_own_fault(
    run: Any, chromium: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tab, "_MEASURE", trapped("document.querySelector('b')"))

    async def ask() -> Shot:
        async with BrowserPool() as renderer:
            with pytest.raises(PageError, match="cannot be measured: Error: trap"):
                await renderer.render("<b>x")
            return await renderer.render("<p>next")

    assert run(ask()).boxes[1].text == "next"


def test_where_no_page_can_be_measured_it_is_our_failure(
    run: Any, chromium: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tab, "_MEASURE", trapped("true"))

    async def ask() -> None:
        async with BrowserPool() as renderer:
            with pytest.raises(RenderError, match="a plain page cannot be measured"):
                await renderer.render("<b>x")

    run(ask())


@pytest.mark.parametrize("answer", ['{"width": 1}', '{"boxes": '])
def test_measures_that_make_no_sense_are_the_fault_of_the_page(
    run: Any, chromium: None, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    real = tab.Tab._call

    async def call(self: tab.Tab, function: str, argument: object = None) -> bytes:
        assert self._visit is not None
        trapped = "<b>" in self._visit.html
        return answer.encode() if trapped else await real(self, function, argument)

    monkeypatch.setattr(tab.Tab, "_call", call)

    async def ask() -> Shot:
        async with BrowserPool() as renderer:
            with pytest.raises(PageError):
                await renderer.render("<b>x")
            return await renderer.render("<p>next")

    assert run(ask()).boxes[1].text == "next"


@pytest.mark.slow
def test_a_page_that_is_never_ready_is_its_own_fault(run: Any, chromium: None) -> None:
    slow = hostile_pages()["drawing that multiplies"]

    async def ask() -> Shot:
        # Within a quarter of that time a plain page must be shown, or the machine is to blame.
        async with BrowserPool(limits=Limits(seconds=12)) as renderer:
            with pytest.raises(PageError, match="not ready in time"):
                await renderer.render(slow)
            return await renderer.render("<p>next")

    assert run(ask()).boxes[1].text == "next"


def test_a_killed_browser_is_replaced(run: Any, chromium: None) -> None:
    async def ask() -> tuple[Shot, Shot]:
        async with BrowserPool() as renderer:
            before = await renderer.render("<p>x")
            [worker] = renderer._workers
            assert worker.process is not None
            os.kill(worker.process.pid, signal.SIGKILL)
            return before, await renderer.render("<p>x")

    before, after = run(ask())
    assert before == after


def child_processes() -> set[int]:
    return {
        int(pid)
        for task in Path("/proc/self/task").iterdir()
        for pid in (task / "children").read_text().split()
    }


def test_a_killed_driver_is_replaced(run: Any, chromium: None) -> None:
    others = child_processes()

    async def ask() -> tuple[Shot, Shot]:
        async with BrowserPool() as renderer:
            before = await renderer.render("<p>x")
            [driver] = child_processes() - others
            os.kill(driver, signal.SIGKILL)
            return before, await renderer.render("<p>x")

    before, after = run(ask())
    assert before == after


@pytest.mark.parametrize("broken", [False, True])
def test_a_tab_is_renewed_now_and_then(
    run: Any, chromium: None, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    monkeypatch.setattr(pool_module, "_PAGES_PER_TAB", 2)

    async def close(self: tab.Tab) -> None:
        raise ValueError("this tab cannot be closed")

    if broken:
        monkeypatch.setattr(tab.Tab, "close", close)

    async def ask() -> list[Shot]:
        async with BrowserPool() as renderer:
            return [await renderer.render("<p>x") for _ in range(4)]

    first, *others = run(ask())
    assert others == [first] * 3


def test_a_cancelled_page_does_not_spoil_the_next(run: Any, chromium: None) -> None:
    async def ask() -> Shot:
        async with BrowserPool() as renderer:
            await renderer.render("<p>x")
            task = asyncio.create_task(renderer.render("<p>cancelled" * 20_000))
            await asyncio.sleep(0.05)
            task.cancel()
            return await renderer.render("<p>x")

    assert [each.text for each in run(ask()).boxes] == ["", "x"]


def test_many_pages_at_once_wait_for_a_browser_and_keep_their_order(run: Any, pool: BrowserPool) -> None:
    async def ask() -> list[Shot]:
        return await asyncio.gather(*(pool.render(f"<p>page {n}") for n in range(8)))

    assert [shot.boxes[1].text for shot in run(ask())] == [f"page {n}" for n in range(8)]


def test_a_closed_pool_renders_no_more(run: Any, chromium: None) -> None:
    async def ask() -> None:
        renderer = BrowserPool()
        await renderer.render("<p>x")
        await renderer.close()
        await renderer.close()
        with pytest.raises(RenderError, match="closed"):
            await renderer.render("<p>x")

    run(ask())


def test_a_program_that_is_no_browser_is_our_failure(run: Any, chromium: None) -> None:
    async def ask() -> None:
        async with BrowserPool(executable="/bin/false") as renderer:
            with pytest.raises(RenderError, match="/bin/false does not start"):
                await renderer.render("<p>x")

    run(ask())


def test_a_missing_browser_is_known_before_the_first_page() -> None:
    with pytest.raises(UsageError, match="no browser at /nowhere"):
        BrowserPool(executable="/nowhere")
