"""Whether `layout/2` puts mutated pages in the right order: 80 real pages, each changed 1 to 16 times.

Half of the mutants have all of their words replaced as well, because mutants that keep the reference's words
flatter any measure that reads them. Needs the ColBench pages (SWEETRL_COLBENCH_DIR) and a browser. Prints a
table and writes benchmarks/results/similarity.json.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from pages.ordering import GRADES, make_series, order  # noqa: E402
from sweetrl.browser import BrowserPool  # noqa: E402
from sweetrl.domains.frontend.layout import LayoutSimilarity, features_of, page_similarity  # noqa: E402
from sweetrl.domains.frontend.secret import FrontendSecret  # noqa: E402
from sweetrl.domains.frontend.similarity import SimilarityScore  # noqa: E402
from sweetrl.domains.sources import read_tasks  # noqa: E402
from sweetrl.types import Shot  # noqa: E402

RESULTS = HERE / "results" / "similarity.json"
PARTS = ("position", "size", "colour", "completeness", "palette", "shade", "text")
BARS = {"spearman": 0.80, "auc": 0.88}


class OnePart:
    """One part of `layout/2` alone, to see what it adds."""

    def __init__(self, part: str) -> None:
        self.name = f"only {part}"
        self._part = part

    async def compare(self, reference: Shot, answer: Shot) -> SimilarityScore:
        """The part as the score."""
        return SimilarityScore(page_similarity(features_of(reference), features_of(answer)).parts[self._part])

    async def close(self) -> None:
        """Nothing to release."""


def main() -> None:
    """Measure, print, store."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pages", type=int, default=80)
    options.add_argument("--parts", action="store_true", help="each part alone as well")
    chosen = options.parse_args()
    folder = Path(os.environ.get("SWEETRL_COLBENCH_DIR", HERE.parent.parent / "shared/data/colbench"))
    if not folder.is_dir():
        print(f"skipped: no ColBench pages in {folder}; set SWEETRL_COLBENCH_DIR")
        return
    asyncio.run(measure(folder / "frontend_dev.jsonl", chosen.pages, parts=chosen.parts))


async def measure(source: Path, count: int, *, parts: bool) -> None:
    """The whole measurement on the first pages of a file."""
    secrets = [task.secret for task in read_tasks(source)][:count]
    pages = [secret.page for secret in secrets if isinstance(secret, FrontendSecret)]
    started = time.monotonic()
    async with BrowserPool(workers=2) as renderer:
        series = await make_series(renderer, pages)
    rendered = time.monotonic() - started
    similarities = [LayoutSimilarity(), *(OnePart(part) for part in PARTS if parts)]
    found = {each.name: await order(each, series) for each in similarities}
    itself = [(await similarities[0].compare(each.reference, each.reference)).score for each in series]
    print(f"{len(pages)} pages, {len(series[0].mutants) * len(pages)} mutants, rendered in {rendered:.0f} s")
    print(
        f"{'':18}{'Spearman':>10}{'pooled':>8}{'centred':>9}{'AUC':>8}"
        + "".join(f"{grade:>7}" for grade in GRADES)
        + "  other"
    )
    for name, each in found.items():
        grades = "".join(f"{each.mean_by_grade[grade]:7.3f}" for grade in GRADES)
        print(
            f"{name:18}{each.spearman:10.3f}{each.pooled_spearman:8.3f}{each.centred_spearman:9.3f}{each.auc:8.3f}{grades}{each.mean_other:7.3f}"
        )
    result = {
        "pages": len(pages),
        "grades": GRADES,
        "bars": BARS,
        "reference_against_itself": min(itself),
        "similarities": {name: dataclasses.asdict(each) for name, each in found.items()},
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
