"""The report of one model as a single HTML file that opens from disk and loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from evenhand.datasets import Dataset
from evenhand.report import sections
from evenhand.report.content import ModelReport
from evenhand.report.layout import assemble
from evenhand.report.margin_section import margin
from evenhand.report.measured_section import measured as measured_section
from evenhand.report.onefile import write_whole
from evenhand.report.true_groups_section import true_groups

SECTIONS: Final[tuple[tuple[str, str, Callable[[ModelReport], str]], ...]] = (
    ("claim", "The claim", sections.the_claim),
    ("spending", "What was spent on what", sections.what_was_spent),
    ("measurements", "Accuracy and fairness, measured", measured_section),
    ("answers", "Answers and refusals", sections.outcomes),
    ("margin", "The margin, and who needs the group", margin),
    ("true-groups", "True groups and noisy ones", lambda report: true_groups(report.true_groups)),
    ("settings", "Settings", sections.settings),
    ("use", "Load and predict", sections.how_to_use),
)


def write_model_report(
    model: Any,
    path: str | Path,
    *,
    title: str | None = None,
    dataset: Dataset | Mapping[str, object] | None = None,
    measured: Any = None,
) -> Path:
    """Write ``report.html`` for a fitted or loaded model.

    Parameters
    ----------
    model : any classifier of ``evenhand.estimators`` with a guarantee
        Fitted, or read by ``evenhand.load``.
    path : path
        The file to write. An earlier report there is replaced, whole or not at all.
    title : str, optional
        Default: made of the data set's name and the method.
    dataset : Dataset or mapping, optional
        What to say about the data; of a ``Dataset`` no count is printed.
    measured : FairnessReport, optional
        Measurements on test rows. They are printed as not covered by the guarantee.

    Returns
    -------
    Path
        The file.

    Privacy
    -------
    The page holds the claim, released answers, public facts and settings: post-processing. Only
    ``measured`` and ``dataset`` can add something else, and they come from the caller.
    """
    report = ModelReport.of(model, title=title, dataset=dataset, measured=measured)
    return write(report, Path(path))


def write(report: ModelReport, path: Path) -> Path:
    """Write the page of a report: all of it, or nothing."""
    return write_whole(render(report), path)


def render(report: ModelReport) -> str:
    """Return the page as text."""
    return assemble(report, SECTIONS, kind="Model report", glance=sections.glance(report))
