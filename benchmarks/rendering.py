"""How fast pages become pictures: ours, against a new browser per page and a new session per page.

All three show the same published pages (by default those in SWEETRL_COLBENCH_DIR) in one run, in alternating
rounds, with the same Chromium, the same local assets and a picture of the whole page as the result:

(a) a new browser for each page;
(b) one long-lived browser driven the usual way: for each page a new context and page, the HTML set as content, the
    whole stylesheet loaded, a full-page screenshot;
(c) ours, with one browser and with as many as there are workers.

CPU time is that of all processes involved: the browser's, the driver's and ours; of (a) a little is lost, what a
browser uses while it ends. Writes benchmarks/results/rendering.json.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from playwright.async_api import Browser, Playwright, Route, async_playwright

from sweetrl.browser import BrowserPool, WebAssets, find_browser
from sweetrl.browser.chromium import launch, write_font_configuration
from sweetrl.browser.pictures import picture
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.sources import load_tasks

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SWEETRL_COLBENCH_DIR", ROOT.parent / "shared/data/colbench"))
VIEWPORT = {"width": 1366, "height": 682}
Contender = Callable[[list[str]], Awaitable[int]]


class UsualWay:
    """A browser as most programs drive it."""

    def __init__(self, playwright: Playwright, folder: Path) -> None:
        assets = WebAssets()
        self._playwright = playwright
        self.cpu_of_ended = 0.0
        """Seconds that browsers had used when they were closed."""
        self._stylesheet = (assets.folder / "tailwindcss/dist/tailwind.min.css").read_bytes()
        self._fonts = write_font_configuration(folder, assets.fonts)

    async def launch(self) -> Browser:
        """With the arguments and fonts that ours has."""
        return await launch(self._playwright, find_browser(), self._fonts)

    async def shoot(self, browser: Browser, html: str) -> bytes:
        """One page in a session of its own."""
        context = await browser.new_context(viewport=VIEWPORT)  # type: ignore[arg-type]
        page = await context.new_page()
        await page.route("**/*", self._answer)
        await page.set_content(html)
        shot = await page.screenshot(full_page=True)
        await context.close()
        return shot

    async def _answer(self, route: Route) -> None:
        drawn = picture(route.request.url)
        if "tailwindcss" in route.request.url:
            await route.fulfill(body=self._stylesheet, content_type="text/css")
        elif drawn is not None:
            await route.fulfill(body=drawn, content_type="image/svg+xml")
        else:
            await route.abort()

    async def browser_per_page(self, pages: list[str]) -> int:
        """(a)."""
        total = 0
        for page in pages:
            browser = await self.launch()
            total += len(await self.shoot(browser, page))
            with_browser = cpu_seconds()
            await browser.close()
            self.cpu_of_ended += with_browser - cpu_seconds()
        return total

    def session_per_page(self, browser: Browser) -> Contender:
        """(b)."""

        async def run(pages: list[str]) -> int:
            return sum([len(await self.shoot(browser, page)) for page in pages])

        return run


def ours(pool: BrowserPool) -> Contender:
    """(c)."""

    async def run(pages: list[str]) -> int:
        return sum(len(shot.png) for shot in await asyncio.gather(*map(pool.render, pages)))

    return run


def cpu_seconds() -> float:
    """What this process and all that it started have used and are still there to tell."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        parents[int(folder.name)] = int(fields[1])
        used[int(folder.name)] = int(fields[11]) + int(fields[12])
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(used[pid] for pid in family) / ticks


async def measure(contender: Contender, pages: list[str], usual: UsualWay) -> dict[str, float]:
    """One round."""
    began, cpu = time.perf_counter(), cpu_seconds() + usual.cpu_of_ended
    assert await contender(pages) > 0
    seconds = time.perf_counter() - began
    used = cpu_seconds() + usual.cpu_of_ended - cpu
    return {"per_second": len(pages) / seconds, "cpu_ms": used / len(pages) * 1000}


async def race(pages: list[str], *, rounds: int, workers: int) -> dict[str, list[dict[str, float]]]:
    """All rounds of all contenders."""
    async with (
        async_playwright() as playwright,
        BrowserPool() as one,
        BrowserPool(workers=workers) as several,
    ):
        usual = UsualWay(playwright, Path(tempfile.mkdtemp()))
        browser = await usual.launch()
        contenders: dict[str, tuple[Contender, int]] = {
            "a new browser per page": (usual.browser_per_page, max(2, len(pages) // 10)),
            "a new session per page": (usual.session_per_page(browser), max(4, len(pages) // 4)),
            "sweetrl, 1 browser": (ours(one), len(pages)),
            f"sweetrl, {workers} browsers": (ours(several), len(pages)),
        }
        results: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
        for number in range(rounds + 1):
            for name, (contender, count) in contenders.items():
                row = await measure(contender, pages[:count], usual)
                if number > 0:  # the first round warms up
                    results[name].append(row)
        await browser.close()
    return results


def report(results: dict[str, list[dict[str, float]]], output: Path, count: int) -> None:
    """Medians, and our ratios to the other ways, browser for browser."""
    medians = {
        name: {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for name, rows in results.items()
    }
    base = medians["sweetrl, 1 browser"]
    contenders = {
        name: {
            "pages_per_second": round(row["per_second"], 2),
            "cpu_ms_per_page": round(row["cpu_ms"]),
            "ours_is_faster_by": round(base["per_second"] / row["per_second"], 2),
            "ours_takes_less_cpu_by": round(row["cpu_ms"] / base["cpu_ms"], 2),
        }
        for name, row in medians.items()
    }
    for name, row in contenders.items():
        print(
            f"{name:<26}{row['pages_per_second']:>8} pages/s {row['cpu_ms_per_page']:>6} CPU ms/page   "
            f"1 browser of ours: x{row['ours_is_faster_by']} faster, x{row['ours_takes_less_cpu_by']} less CPU"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"pages": count, "contenders": contenders}, indent=2) + "\n")


def main() -> None:
    """Run the rounds, print a table, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, default=DATA / "frontend_dev.jsonl")
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks/results/rendering.json")
    options = parser.parse_args()
    if not options.tasks.exists():
        print(f"skipped: no published pages at {options.tasks}; set SWEETRL_COLBENCH_DIR to their folder")
        return
    secrets = [task.secret for task in load_tasks(options.tasks).values()]
    pages = [secret.page for secret in secrets if isinstance(secret, FrontendSecret)][: options.pages]
    results = asyncio.run(race(pages, rounds=options.rounds, workers=options.workers))
    report(results, options.output, len(pages))


if __name__ == "__main__":
    main()
