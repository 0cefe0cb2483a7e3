"""The page as one HTML file: what is counted, and the templates filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evenhand.frontier.cost import NOT_COVERED, ReleaseCost
from evenhand.frontier.page.data import MOST_RUNS, page_data
from evenhand.frontier.run import Run
from evenhand.report.colours import colours
from evenhand.report.page import asset, fill, write_whole

HERE: Final = "evenhand.frontier.page"
SHAPES: Final = ("circle", "square", "diamond", "triangle", "wedge", "cross", "plus")
"""As ``marks.js`` draws them: a method has a colour and a shape, so that either is enough."""

SCRIPTS: Final = ("choice.js", "scales.js", "marks.js", "charts.js", "page.js")
LISTED_WITHOUT_SCRIPT: Final = 40
PAIRS: Final = (("epsilon", "accuracy"), ("gap", "accuracy"), ("epsilon", "gap"))
WITH_COVERAGE: Final = (
    ("coverage", "accuracy"),
    ("coverage", "gap"),
    ("epsilon", "coverage"),
)


def write_page(
    runs: Sequence[Run],
    path: str | Path,
    *,
    title: str,
    cost: ReleaseCost | None = None,
    stand_in: str | None = None,
    most: int = MOST_RUNS,
) -> Path:
    """Write the page on which one of many runs can be chosen.

    Parameters
    ----------
    runs : sequence of Run
        At least one. Runs that differ in nothing but the seed are shown as one setting.
    path : path
        The file to write. An earlier page there is replaced, whole or not at all.
    title : str
    cost : ReleaseCost, optional
        What publishing all the runs costs together; it stands at the top. Added up here if it is
        not given.
    stand_in : str, optional
        What the stand-in data are, where runs learned from some (their ``data_kind``). They are
        marked without it too.
    most : int
        Runs that are shown at most; see ``page_data``.

    Returns
    -------
    Path
        The file.

    Privacy
    -------
    A page of runs on private data publishes all of them. The page says so, and what it costs.
    """
    return write_whole(
        render(runs, title=title, cost=cost, stand_in=stand_in, most=most), Path(path)
    )


def render(
    runs: Sequence[Run],
    *,
    title: str,
    cost: ReleaseCost | None = None,
    stand_in: str | None = None,
    most: int = MOST_RUNS,
) -> str:
    """Return the page as text."""
    data = page_data(runs, most=most)
    coverage = tuple(sorted({c for c in data["settings"]["coverage"] if c is not None}))
    script = "".join(asset(HERE, name) for name in SCRIPTS)
    return fill(
        "frontier.html",
        package=HERE,
        script=f'"use strict";\n(function () {{\n{script}}})();\n',
        title=title,
        runs=Counted.of(runs, data, ReleaseCost.of(runs) if cost is None else cost, stand_in),
        not_covered=NOT_COVERED,
        front=_front(data),
        styles=_styles(data),
        # Pairs with coverage only where it tells settings apart.
        pairs=PAIRS + WITH_COVERAGE if len(coverage) > 1 else PAIRS,
        coverage=coverage,
        data=data,
    )


@dataclass(frozen=True, kw_only=True)
class Counted:
    """How many runs of each kind a page shows, and what publishing them costs."""

    n: int
    n_settings: int
    n_methods: int
    data: tuple[str, ...]
    """Names of the data sets."""
    private: int
    stand_in: int
    published: int
    """``private``, ``stand_in`` and ``published``: runs by what they learned from, or that they
    were not run here.
    """
    not_covered: int
    """Runs that were measured on private rows without noise."""
    no_better: int
    """Runs that could not be told from predicting the majority class."""
    as_printed: int
    """Runs of a paper's method as it is printed, whose claim does not hold."""
    left_out: int
    """Settings that are not drawn."""
    cost: ReleaseCost
    """Of all of them together."""
    beside: int
    """Runs that the cost counts too, and the page does not show: of other grids."""
    stand_in_words: str | None
    """What the stand-in data are."""

    @classmethod
    def of(
        cls, runs: Sequence[Run], data: Mapping[str, Any], cost: ReleaseCost, stand_in: str | None
    ) -> Counted:
        """Count the runs of a page."""
        kinds = Counter(run.data_kind for run in runs)
        stand_ins = kinds["public stand-in"] + kinds["synthetic stand-in"]
        if stand_in and not stand_ins:
            raise ValueError(
                f"stand_in={stand_in!r} names stand-in data, but no run learned from any: none has "
                f"data_kind='public stand-in' or 'synthetic stand-in'. Leave stand_in out."
            )
        return cls(
            n=len(runs),
            n_settings=len(data["settings"]["method"]) + data["left_out"],
            n_methods=len({run.setting.method for run in runs}),
            data=tuple(dict.fromkeys(run.setting.data for run in runs)),
            private=kinds["private"],
            stand_in=stand_ins,
            published=kinds["published"],
            not_covered=sum(run.measured_on == "private holdout, not covered" for run in runs),
            no_better=sum(run.no_better is True for run in runs),
            as_printed=sum(run.as_printed for run in runs),
            left_out=data["left_out"],
            cost=cost,
            beside=max(0, sum(part.n_runs for part in cost.parts) - kinds["private"]),
            stand_in_words=stand_in,
        )


@dataclass(frozen=True, kw_only=True)
class OnFront:
    """A setting on the front, for readers whose browser runs no scripts."""

    words: str
    """Its method and arguments."""
    epsilon: float | None
    """None where there is no bound."""
    numbers: list[str]
    """Gap, accuracy, that of the majority class, that without a margin, and coverage."""


def _front(data: Mapping[str, Any]) -> list[OnFront]:
    settings, texts = data["settings"], data["texts"]
    places = [i for i, front in enumerate(settings["front"]) if front][:LISTED_WITHOUT_SCRIPT]
    named = [(texts[settings["method"][i]], texts[settings["words"][i]], i) for i in places]
    return [
        OnFront(
            words=f"{method}: {words}" if words else method,
            epsilon=settings["epsilon"][i],
            numbers=[
                "not defined" if (value := settings[key][i]) is None else f"{value:.4f}"
                for key in ("gap", "accuracy", "majority", "free", "coverage")
            ],
        )
        for method, words, i in named
    ]


def _styles(data: Mapping[str, Any]) -> dict[int, dict[str, str]]:
    """Return a colour and a shape for each method, by the number of its text."""
    methods = sorted(set(data["settings"]["method"]), key=lambda i: str(data["texts"][i]))
    return {
        method: {"colour": colour, "shape": SHAPES[k % len(SHAPES)]}
        for k, (method, colour) in enumerate(zip(methods, colours(len(methods)), strict=True))
    }
