"""One call that writes the page of whatever was fitted: a model, or a generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.datasets import Dataset
from evenhand.generators.synthesizer import Synthesizer
from evenhand.report.content import ModelReport
from evenhand.report.generated import GeneratorReport
from evenhand.report.page import Report, render, write_whole
from evenhand.report.pictures import ShownPicture


def write_report(
    fitted: Any,
    path: str | Path,
    *,
    title: str | None = None,
    dataset: Dataset | Mapping[str, object] | None = None,
    measured: Any = None,
    test: Any = None,
    membership: Any = None,
    pictures: Sequence[ShownPicture] = (),
) -> Path:
    """Write ``report.html`` of a fitted or loaded model or generator.

    Parameters
    ----------
    fitted : classifier with a guarantee, or generator
    path : path
        The file to write. An earlier report there is replaced, whole or not at all.
    title : str, optional
        Default: made of the method, and of a data set's name.
    dataset : Dataset or mapping, optional
        The data set of a model, whose name and columns are printed, and no count; or what to say
        about the data, printed as it is.
    measured : FairnessReport or Evaluation, optional
        What ``fairness_report`` measured of a model on test rows, or ``evaluate`` of what a
        generator made. It is printed as not covered by the guarantee.
    test : DataFrame, persons and visits, or ImageData, optional
        Of a generator: real records that are shown beside the synthetic ones. They are then
        published, and not covered either.
    membership : Membership, optional
        Of a generator of tables: what attacks found, as ``attack_membership(...)
        .reveal_to_curator()`` gave it. The page is then for the curator alone: it says so on top,
        and its file is readable by its owner only.
    pictures : sequence of ShownPicture
        Of a model: public pictures to show. They are then published, too.

    Returns
    -------
    Path
        The file.

    Privacy
    -------
    The page holds the claim, released values, public facts and settings: post-processing. Only
    ``measured``, ``test``, ``membership`` and ``dataset`` can add something else, and they come
    from the caller.
    """
    report: Report
    if isinstance(fitted, Synthesizer):
        if pictures:
            raise TypeError("pictures= shows public ones of a model, and here is a generator.")
        if isinstance(dataset, Dataset):
            raise TypeError("dataset= of a generator must be a mapping of names to what to print.")
        report = GeneratorReport.of(
            fitted,
            title=title,
            dataset=dataset,
            measured=measured,
            test=test,
            membership=membership,
        )
    elif test is not None or membership is not None:
        raise TypeError(
            "test= and membership= are about the records of a generator; a model has none."
        )
    else:
        report = ModelReport.of(
            fitted, title=title, dataset=dataset, measured=measured, pictures=pictures
        )
    return write_whole(render(report), path, mode=0o600 if report.private else 0o644)
