"""The report on a generator of pictures as a single HTML file that opens from disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from evenhand.datasets.columns import text_of
from evenhand.datasets.images import ImageData
from evenhand.fairness import encode_groups
from evenhand.generators.images import ImageEvaluation, ImageSynthesizer
from evenhand.report import image_sections, sections, synthetic_sections
from evenhand.report.generated import KIND, GeneratorReport, told_of
from evenhand.report.layout import assemble
from evenhand.report.onefile import write_whole
from evenhand.typing import Array

SHOWN: Final = 16  # pictures of each combination of label and group
MOST: Final = 40  # combinations; of more the first ones


@dataclass(frozen=True, kw_only=True, eq=False)
class Strip:
    """Pictures of one combination of label and group.

    Parameters
    ----------
    words : str
        The combination.
    synthetic, real : ndarray of uint8 or None
        Some of each; None where there are none.
    """

    words: str
    synthetic: Array | None
    real: Array | None


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageReport(GeneratorReport):
    """What may be told of a generator of pictures, and what was measured.

    Parameters
    ----------
    strips : tuple of Strip
    evaluation : ImageEvaluation or None
        Measured on real pictures, *not covered* by the guarantee.
    **others
        See ``GeneratorReport``.

    Privacy
    -------
    All of it but ``evaluation``, ``facts`` and the real pictures is released.
    """

    strips: tuple[Strip, ...]
    evaluation: ImageEvaluation | None

    @classmethod
    def of(
        cls,
        generator: ImageSynthesizer,
        *,
        evaluation: ImageEvaluation | None = None,
        test: ImageData | None = None,
        title: str | None = None,
        dataset: Mapping[str, object] | None = None,
    ) -> ImageReport:
        """Gather the report of a fitted or loaded generator."""
        title = title or f"Synthetic pictures by {type(generator).__name__}"
        return cls(
            **told_of(generator, title, dataset),
            strips=_strips(generator, test),
            evaluation=evaluation,
        )


SECTIONS: Final[tuple[tuple[str, str, Callable[[ImageReport], str]], ...]] = (
    ("claim", "The claim", sections.the_claim),
    ("spending", "What was spent on what", sections.what_was_spent),
    ("pictures", "The pictures", image_sections.pictures),
    ("balance", "Labels and groups", image_sections.balance),
    ("utility", "Networks trained on these pictures", image_sections.utility),
    ("distances", "How near the pictures are", image_sections.distances),
    ("settings", "Settings", synthetic_sections.settings),
    ("use", "Load and draw pictures", image_sections.how_to_use),
)


def write_image_report(
    generator: ImageSynthesizer,
    path: str | Path,
    *,
    evaluation: ImageEvaluation | None = None,
    test: ImageData | None = None,
    title: str | None = None,
    dataset: Mapping[str, object] | None = None,
) -> Path:
    """Write the page of a fitted or loaded generator of pictures.

    Parameters
    ----------
    generator : ImageSynthesizer
    path : path
        The file to write. An earlier report there is replaced, whole or not at all.
    evaluation : ImageEvaluation, optional
        What ``evaluate_images`` measured on real pictures; printed as not covered.
    test : ImageData, optional
        Real pictures, some of which are shown beside the synthetic ones: they are then published.
    title : str, optional
    dataset : mapping, optional
        What to say about the data; printed as it is.

    Returns
    -------
    Path
        The file.
    """
    report = ImageReport.of(
        generator, evaluation=evaluation, test=test, title=title, dataset=dataset
    )
    return write_whole(render(report), Path(path))


def render(report: ImageReport) -> str:
    """Return the page as text."""
    return assemble(report, SECTIONS, kind=KIND, glance=image_sections.glance(report))


def _strips(generator: ImageSynthesizer, test: ImageData | None) -> tuple[Strip, ...]:
    known = generator.conditions_
    unseen = set(generator.unseen_)
    real = {} if test is None else _real(generator, test)
    out = []
    for c in range(min(known.n, MOST)):
        made = None
        if c not in unseen:
            shares = np.zeros(known.n)
            shares[c] = 1.0
            made = generator.sample(SHOWN, shares=shares, random_state=0).uint8
        out.append(Strip(words=known.words(c), synthetic=made, real=real.get(c)))
    return tuple(out)


def _real(generator: ImageSynthesizer, test: ImageData) -> dict[int, Array]:
    """Return the first test pictures of every combination."""
    known = generator.conditions_
    labels = [text_of(value) for value in test.y]
    columns = [np.array([_place(known.categories[0], label) for label in labels])]
    if len(known.names) > 1 and test.sensitive_features is not None:
        for name, categories in zip(known.names[1:], known.categories[1:], strict=True):
            given = test.sensitive_features
            column = given if isinstance(given, np.ndarray) else given[name]
            coded = encode_groups(column)
            places = np.array([_place(categories, group) for group in coded.names])
            columns.append(places[coded.codes])
    if len(columns) != len(known.names):
        return {}
    there = np.all([column >= 0 for column in columns], axis=0)
    codes = known.code([column[there] for column in columns])
    pictures = test.images[there]
    return {
        c: pictures[rows[:SHOWN]] for c in range(known.n) if len(rows := np.flatnonzero(codes == c))
    }


def _place(categories: tuple[str, ...], value: str) -> int:
    return categories.index(value) if value in categories else -1
