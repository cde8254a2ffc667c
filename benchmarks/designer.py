"""Whether the scripted designer names the one thing that was changed: 60 real pages, ten kinds of change.

The first difference that it names must be of the right kind and about the changed element. Changes that leave
every pixel as it was are not asked about. Needs the ColBench pages (SWEETRL_COLBENCH_DIR) and a browser. Prints
a table and writes benchmarks/results/designer.json.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from pages.complaints import tally_complaints  # noqa: E402
from sweetrl.browser import BrowserPool  # noqa: E402
from sweetrl.domains.frontend.designer import SATISFIED, remark  # noqa: E402
from sweetrl.domains.frontend.secret import FrontendSecret  # noqa: E402
from sweetrl.domains.sources import read_tasks  # noqa: E402

RESULTS = HERE / "results" / "designer.json"


def main() -> None:
    """Measure, print, store."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--first", type=int, default=100, help="the first page, counted from 0")
    options.add_argument("--pages", type=int, default=60)
    options.add_argument("--misses", action="store_true", help="show what it got wrong")
    chosen = options.parse_args()
    folder = Path(os.environ.get("SWEETRL_COLBENCH_DIR", HERE.parent.parent / "shared/data/colbench"))
    if not folder.is_dir():
        print(f"skipped: no ColBench pages in {folder}; set SWEETRL_COLBENCH_DIR")
        return
    tasks = list(read_tasks(folder / "frontend_dev.jsonl"))[chosen.first : chosen.first + chosen.pages]
    pages = [task.secret.page for task in tasks if isinstance(task.secret, FrontendSecret)]
    asyncio.run(measure(pages, chosen.first, show_misses=chosen.misses))


async def measure(pages: list[str], first: int, *, show_misses: bool) -> None:
    """The whole measurement."""
    async with BrowserPool(workers=2) as renderer:
        twice = [(await renderer.render(page), await renderer.render(page)) for page in pages]
        tally = await tally_complaints(renderer, pages)
    content = sum(remark(one, other) == SATISFIED for one, other in twice)
    started = time.process_time()
    for (one, _), (other, _) in itertools.pairwise(twice):
        remark(one, other)
    milliseconds = 1000 * (time.process_time() - started) / max(len(twice) - 1, 1)
    print(f"satisfied with {content} of {len(pages)} pages that are as wanted")
    for kind, count in tally.asked.items():
        print(f"{kind:12}{tally.right[kind]:5} of {count:3}  {tally.right[kind] / count:6.1%}")
    print(f"{'all':12}{tally.right.total():5} of {tally.asked.total():3}  {tally.share:6.1%}")
    print(f"{tally.skipped} pages skipped: malformed, the browser repairs them")
    print(f"{milliseconds:.1f} ms CPU to compare two different pages")
    for miss in tally.misses if show_misses else ():
        print(miss)
    result = {
        "pages": [first, first + len(pages)],
        "satisfied_with_the_same_page": content,
        "right": dict(tally.right),
        "asked": dict(tally.asked),
        "share": tally.share,
        "pages_skipped": tally.skipped,
        "bar": 0.95,
        "cpu_ms_per_comparison": round(milliseconds, 2),
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
