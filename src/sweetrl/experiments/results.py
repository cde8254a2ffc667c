"""Writes the results of a study: `results.json`, a page with tables and plots, and `report.html`."""

from pathlib import Path

import msgspec

from sweetrl.errors import UsageError
from sweetrl.evaluation.studies import StudyResults
from sweetrl.experiments.journal import Journal
from sweetrl.experiments.measurements import Measurements
from sweetrl.experiments.plan import Plan
from sweetrl.experiments.study_report import REPORT, write_report
from sweetrl.experiments.study_results import TABLES, StudyReader
from sweetrl.records import write_atomically, write_json
from sweetrl.report.study_page import study_page
from sweetrl.settings import Study

RESULTS = "results.json"
PAGE = "results.md"


def write_results(study: Study, planned: Plan) -> dict[str, str]:
    """Write the results of what is measured; the files by what they are."""
    folder = Path(study.output)
    begun = folder.is_dir()  # a journal would make it
    finished = planned.finished(Journal(folder).has) if begun else Plan()
    measurements = Measurements(study, planned, finished)
    results = StudyReader(study, planned, measurements).results()
    if not results.seeds:
        raise UsageError(f"{folder}: nothing has been evaluated yet, so there is nothing to report")
    written = {}
    if begun:
        write_json(folder / RESULTS, results)
        written["results"] = str(folder / RESULTS)
    page = folder / PAGE if study.page is None else Path(study.page)
    if study.page is not None:
        measurements.keep()
        write_json(page.with_suffix(".json"), results)
    _write_page(results, page)
    written["page"] = str(page)
    if any(each.part in TABLES for each in finished.evaluated):
        written["report"] = str(write_report(study, finished, results))
    return written


def written_results(study: Study) -> StudyResults | None:
    """The results that are there, if they and their report are those of this study."""
    folder = Path(study.output)
    if not all((folder / name).is_file() for name in (RESULTS, REPORT)):
        return None
    try:
        results = msgspec.json.decode((folder / RESULTS).read_bytes(), type=StudyResults)
    except msgspec.DecodeError:
        return None
    own = msgspec.json.decode(msgspec.json.encode(study))
    return results if results.settings == own else None


def _write_page(results: StudyResults, page: Path) -> None:
    """The page, and its plots in a folder of the same name."""
    plots = page.with_suffix("")
    text, pictures = study_page(results, plots.name)
    for name, picture in pictures.items():
        plots.mkdir(parents=True, exist_ok=True)
        write_atomically(plots / name, picture.encode())
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, text.encode())
