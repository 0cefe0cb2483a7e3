"""Plots as scikit-learn has them: a display holds what it shows, and draws it on Matplotlib axes.

Each class has ``from_...`` constructors that compute and draw at once, and ``plot(ax=...)`` to draw
again elsewhere; ``ax_`` and ``figure_`` are what it was last drawn on. All need the extra ``plot``.

What a display shows is as private as what it was made from: only :class:`VotesDisplay` takes
private counts, and says so in its title.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._extras import MissingExtra
from evenhand.datasets.schema import Schema
from evenhand.estimators.fitted import FittedModel
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.labels import refuse_rejected, report_of_labels, selection_among
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.trace import Coverage
from evenhand.frontier.page.estimates import of_runs, of_settings, setting_numbers
from evenhand.frontier.pareto import front
from evenhand.frontier.run import OBJECTIVES, Run
from evenhand.privacy.ledger import Ledger
from evenhand.report.colours import GRID, INK, NOT_USED, PALETTE, SOFT, colours
from evenhand.report.columns import ColumnView, column_views
from evenhand.report.spending import Spending
from evenhand.report.svg import short_names, shortened
from evenhand.typing import ArrayLike, BoolArray, FloatArray
from evenhand.voting.votes import Votes

MARKERS: Final = "osD^vX*"
MOST_COLUMNS: Final = 9
ROOM_BELOW: Final = 50  # letters of names that stand side by side below an axis
MOST_MARKED: Final = 12  # bars beside which the real share is a mark of its own


@dataclass(kw_only=True, eq=False)
class Display(ABC):
    """What is shown, and the axes on which it was drawn last."""

    SIZE: ClassVar[tuple[float, float]] = (6.4, 4.0)

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on these axes."""

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on axes of their own.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Display
            Itself, with ``ax_`` and ``figure_``.
        """
        if ax is None:
            _, ax = _pyplot().subplots(figsize=self.SIZE, layout="constrained")
        ax.set_axisbelow(True)
        ax.tick_params(colors=SOFT, labelsize=9)
        for side, spine in ax.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(SOFT)
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(kw_only=True, eq=False)
class GapDisplay(Display):
    """A rate of every group with its interval, and the gap between them.

    Parameters
    ----------
    names : sequence of str
        Of the groups.
    rates : dict of str to sequence of Estimate
        What the rates are, and one per group; equalized odds have two.
    gap : Estimate
    margin : float, optional
        Drawn as a band, where there is one kind of rates: groups that are within it keep the
        margin. Around the rate of everybody and twice as wide where each group is compared with
        that, else around the middle of the rates.

    Examples
    --------
    >>> from evenhand.displays import GapDisplay
    >>> shown = GapDisplay.from_predictions(
    ...     ["no", "yes", "yes", "no"], ["no", "yes", "no", "no"], ["a", "a", "b", "b"]
    ... )
    >>> shown.gap.value
    0.5
    """

    names: Sequence[str]
    rates: Mapping[str, Sequence[Estimate]]
    gap: Estimate
    margin: float | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_pred: ArrayLike,
        sensitive_features: object,
        *,
        metric: str = "demographic_parity_rest",
        pos_label: object = None,
        margin: float | None = None,
        units: ArrayLike | None = None,
        ax: Any = None,
    ) -> GapDisplay:
        """Draw the groups' rates among predictions; refused ones are left out.

        Parameters
        ----------
        y_true : array-like of shape (n,), or None
            Needed by metrics of true classes.
        y_pred : array-like of shape (n,)
            Labels, or ``REJECTED``.
        sensitive_features : array, Series or DataFrame of n rows
        metric : str
            The gap in the title: a name in ``fairness_report``. What is drawn is what it compares:
            rates of decisions, among all or among those of one true class, or of errors.
        pos_label : object, optional
            Class whose rate is drawn; by default the last in sorted order.
        margin : float, optional
        units : array-like of ids, shape (n,), optional
            Whose record a row is: intervals then take units as independent, not rows; see
            ``fairness_report``.
        ax : matplotlib Axes, optional

        Raises
        ------
        ValueError
            If ``pos_label`` is none of the classes, or ``metric`` needs true classes.
        """
        report, classes, positive = report_of_labels(
            y_true, y_pred, sensitive_features, pos_label, units
        )
        if metric not in (known := [estimate.name for estimate in report.estimates]):
            raise ValueError(
                f"metric must be one of {', '.join(known)}; got {metric!r}."
                f"{_checks.did_you_mean(metric, known)} Metrics of true classes need y_true."
            )
        decided = f"share with the decision {classes[positive]!r}"
        rates: dict[str, Sequence[Estimate]] = {decided: report.selection}
        if metric.startswith("error"):
            rates = {"error rate": report.errors}
        elif y_true is not None and (among := _among(metric)):
            truth = np.asarray(y_true, dtype=object) == classes[positive]
            rates = {}
            for of_positive in among:
                rows = np.flatnonzero(truth == of_positive)
                whose = repr(classes[positive]) if of_positive else f"not {classes[positive]!r}"
                rates[f"{decided} among those who are {whose}"] = selection_among(
                    rows, y_pred, sensitive_features, classes, positive, report.groups, units
                )
        return cls(names=report.groups, rates=rates, gap=report[metric], margin=margin).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike | None, sensitive_features: object, **options: Any
    ) -> GapDisplay:
        """Draw the rates of what a fitted model predicts, by default those that its margin is on.

        The margin is drawn where ``metric`` is the gap that it bounds.
        """
        fitted = FittedModel.of(estimator)
        refuse_rejected("classes_ of the model", fitted.classes)
        kept = _kept_by(fitted)
        if kept is not None and (y is not None or not kept.needs_labels):
            bounded = f"{kept.key}_{kept.reference}"
            if options.setdefault("metric", bounded) == bounded:
                options.setdefault("margin", float(kept.margin))
        groups = {"sensitive_features": sensitive_features} if fitted.needs_group else {}
        said = estimator.predict(X, **groups)
        return cls.from_predictions(y, said, sensitive_features, **options)

    def _draw(self, ax: Any) -> None:
        at = np.arange(len(self.names))
        known = [rate for rates in self.rates.values() for rate in rates if rate.n]
        if self.margin is not None and len(self.rates) == 1 and known:
            values = [rate.value for rate in known]
            middle, reach = (min(values) + max(values)) / 2, self.margin / 2
            if self.gap.name.endswith("_overall"):
                middle = float(np.average(values, weights=[rate.n for rate in known]))
                reach = self.margin
            band = (middle - reach, middle + reach)
            ax.axhspan(*band, color=PALETTE[2], alpha=0.18, lw=0, label=f"margin {self.margin:g}")
        for i, (said, rates) in enumerate(self.rates.items()):
            x = at + 0.16 * (i - (len(self.rates) - 1) / 2)
            ax.vlines(x, [r.low for r in rates], [r.high for r in rates], color=PALETTE[i], lw=2)
            label = said.partition(" among ")[2] if len(self.rates) > 1 else None
            marks = [rate.value for rate in rates]
            ax.plot(x, marks, MARKERS[i], color=PALETTE[i], ms=8, label=label)
        if len(self.rates) > 1 or self.margin is not None:
            ax.legend(frameon=False, fontsize=9, loc="best")
        _name_groups(ax, self.names)
        ax.set_xlim(-0.6, len(at) - 0.4)
        ax.set_ylim(bottom=0)
        ax.grid(axis="y", color=GRID)
        kinds = [said.partition(" among ")[0] for said in self.rates]
        ax.set_ylabel(kinds[0] if len(kinds) > 1 else next(iter(self.rates)), color=INK)
        ax.set_title(
            f"{self.gap.name}: {self.gap.value:.3f} [{self.gap.low:.3f}, {self.gap.high:.3f}]",
            color=INK,
            fontsize=11,
        )


@dataclass(kw_only=True, eq=False)
class CoverageDisplay(Display):
    """Who gets an answer: the answered share of each group, by class where it is known.

    Parameters
    ----------
    coverage : Coverage
    classes : sequence of str
        Names of its columns.
    """

    coverage: Coverage
    classes: Sequence[str]

    @classmethod
    def from_predictions(
        cls,
        y_pred: ArrayLike,
        sensitive_features: object,
        *,
        y_true: ArrayLike | None = None,
        ax: Any = None,
    ) -> CoverageDisplay:
        """Draw the share of ``y_pred`` that is not ``REJECTED``, by group and true class."""
        report, classes, _ = report_of_labels(y_true, y_pred, sensitive_features, None)
        columns = [str(name) for name in classes] if y_true is not None else ["all"]
        return cls(coverage=report.coverage, classes=columns).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, sensitive_features: object, **options: Any
    ) -> CoverageDisplay:
        """Draw it for a model that refuses, such as ``RejectOptionClassifier``."""
        y_pred = estimator.predict(X, sensitive_features=sensitive_features)
        return cls.from_predictions(y_pred, sensitive_features, **options)

    def _draw(self, ax: Any) -> None:
        n_groups, n_classes = self.coverage.rates.shape
        at, width = np.arange(n_groups), 0.8 / n_classes
        for k, (name, colour) in enumerate(zip(self.classes, colours(n_classes), strict=True)):
            left = at - 0.4 + k * width
            bars = ax.bar(
                left,
                self.coverage.rates[:, k],
                width * 0.92,
                align="edge",
                color=colour,
                label=name,
            )
            given = [f"{100 * rate:.0f}%" for rate in self.coverage.rates[:, k]]
            ax.bar_label(bars, given, fontsize=8, color=SOFT, padding=2)
        if n_classes > 1:
            ax.legend(
                frameon=False, fontsize=9, ncols=n_classes, loc="lower left", bbox_to_anchor=(0, 1)
            )
        _name_groups(ax, self.coverage.names)
        ax.set_ylim(0, 1.12)
        ax.set_yticks(np.linspace(0, 1, 6))
        ax.grid(axis="y", color=GRID)
        ax.set_ylabel("share that gets an answer", color=INK)


@dataclass(kw_only=True, eq=False)
class BudgetDisplay(Display):
    """What each purpose took of the privacy budget, and what was left.

    Parameters
    ----------
    spending : Spending
    """

    spending: Spending

    @classmethod
    def from_ledger(cls, ledger: Ledger, *, ax: Any = None) -> BudgetDisplay:
        """Draw the lines of a ledger, added up by purpose."""
        return cls(spending=Spending.of(ledger.to_dict())).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> BudgetDisplay:
        """Draw the ledger of a fitted model or generator."""
        return cls.from_ledger(estimator.ledger_, ax=ax)

    def _draw(self, ax: Any) -> None:
        purposes = [charge.purpose for charge in self.spending.charges]
        named = [
            (
                shortened(charge.purpose, 40)
                + (f"\n{charge.rounded}" if purposes.count(charge.purpose) > 1 else ""),
                charge.share,
                f"{charge.n_uses:,} uses",
            )
            for charge in self.spending.charges
        ]
        named.append(("not spent", self.spending.share_left, ""))
        shown = [*colours(len(named) - 1), NOT_USED]
        at = np.arange(len(named))[::-1]
        ax.barh(at, [share for _, share, _ in named], color=shown, height=0.66)
        for y, (_, share, uses) in zip(at, named, strict=True):
            said = f"{100 * share:.1f}%" + (f", {uses}" if uses else "")
            ax.text(share + 0.01, y, said, va="center", fontsize=9, color=INK)
        ax.set_yticks(at, [name for name, _, _ in named])
        ax.set_xlim(0, 1.3)
        ax.set_xticks(np.linspace(0, 1, 6))
        ax.grid(axis="x", color=GRID)
        ax.set_xlabel("share of the privacy budget (mu²)", color=INK)


@dataclass(kw_only=True, eq=False)
class VotesDisplay(Display):
    """How clear the teachers' votes are beside the noise. **Private**: made of exact counts.

    Parameters
    ----------
    leads : ndarray of float64, shape (n_queries,)
        Votes by which the winner is ahead of the second.
    sigma : float or None
        Standard deviation of the noise on every count.
    """

    leads: FloatArray
    n_teachers: int
    sigma: float | None = None

    @classmethod
    def from_votes(
        cls, votes: Votes, *, sigma: float | None = None, ax: Any = None
    ) -> VotesDisplay:
        """Draw by how many votes the winner is ahead, and where noise decides.

        Parameters
        ----------
        votes : Votes
        sigma : float, optional
            Of the noise on every count; a lead has the standard deviation ``sqrt(2) * sigma``.
        ax : matplotlib Axes, optional
        """
        if sigma is not None:
            _checks.positive("sigma", sigma)
        top = np.sort(votes.counts, axis=1)[:, -2:]
        leads = (top[:, 1] - top[:, 0]).astype(float)
        return cls(leads=leads, n_teachers=votes.n_teachers, sigma=sigma).plot(ax)

    def _draw(self, ax: Any) -> None:
        step = 2 * -(-self.n_teachers // 80)  # leads of two classes are all even, or all odd
        edges = np.arange(-step / 2, self.n_teachers + step, step)
        ax.hist(self.leads, bins=edges, color=PALETTE[0])
        if self.sigma is not None:
            reach = np.sqrt(2) * self.sigma
            share = float((self.leads < reach).mean())
            said = f"within one standard deviation of the noise: {share:.0%}"
            ax.axvspan(edges[0], reach, color=PALETTE[1], alpha=0.25, lw=0, label=said)
            ax.legend(frameon=False, fontsize=9)
        ax.set_xlim(edges[0], edges[-1])
        ax.grid(axis="y", color=GRID)
        ax.set_xlabel(f"votes by which the winner leads, of {self.n_teachers}", color=INK)
        ax.set_ylabel("queries", color=INK)
        ax.set_title("Exact votes: private, not to be published", color=PALETTE[4], fontsize=11)


@dataclass(kw_only=True, eq=False)
class FrontierDisplay(Display):
    """Settings by two objectives, with intervals, and what nothing else beats.

    Parameters
    ----------
    runs : sequence of Run
        Seeds of one setting are one point, with the 95 % interval of their mean.
    x, y : str
        Of epsilon, gap, error, coverage.
    """

    runs: Sequence[Run]
    x: str = "gap"
    y: str = "error"

    def __post_init__(self) -> None:
        _checks.one_of("x", self.x, OBJECTIVES)
        _checks.one_of("y", self.y, OBJECTIVES)
        if self.x == self.y:
            raise ValueError(f"x and y must be two objectives, got {self.x!r} twice.")

    @classmethod
    def from_runs(
        cls, runs: Sequence[Run], *, x: str = "gap", y: str = "error", ax: Any = None
    ) -> FrontierDisplay:
        """Draw runs, such as ``sweep`` returns or ``read_runs`` reads."""
        return cls(runs=runs, x=x, y=y).plot(ax)

    def _draw(self, ax: Any) -> None:
        methods = sorted({run.setting.method for run in self.runs})
        for at, (method, colour) in enumerate(zip(methods, colours(len(methods)), strict=True)):
            own = [run for run in self.runs if run.setting.method == method]
            found = of_settings(of_runs(own), setting_numbers(own))
            points = {name: found.of(name) for name in (self.x, self.y)}
            x, y = points[self.x], points[self.y]
            known: BoolArray = np.isfinite(x) & np.isfinite(y)
            for axis, name in (("xerr", self.x), ("yerr", self.y)):
                if name != "epsilon":
                    ends = np.abs([found.low[name] - points[name], found.high[name] - points[name]])
                    bars = {axis: ends[:, known]}
                    ax.errorbar(x[known], y[known], **bars, fmt="none", ecolor=colour, lw=0.8)
            marker = MARKERS[at % len(MARKERS)]
            ax.plot(x[known], y[known], marker, color=colour, ms=6, label=shortened(method))
            best = np.flatnonzero(known)[front(np.column_stack([x, y])[known], (self.x, self.y))]
            best = best[np.argsort(x[best])]
            ax.step(x[best], y[best], where="post", color=colour, lw=1, alpha=0.7)
        if self.x == "epsilon":
            ax.set_xscale("log")
        if self.y == "epsilon":
            ax.set_yscale("log")
        ax.grid(color=GRID)
        ax.legend(frameon=False, fontsize=9)
        ax.set_xlabel(_WORDS[self.x], color=INK)
        ax.set_ylabel(_WORDS[self.y], color=INK)


@dataclass(kw_only=True, eq=False)
class SyntheticDisplay(Display):
    """Columns of synthetic rows beside the real ones, as shares. The real ones are exact: private.

    Parameters
    ----------
    views : sequence of ColumnView
    """

    SIZE: ClassVar[tuple[float, float]] = (9.0, 7.0)

    views: Sequence[ColumnView]

    @classmethod
    def from_tables(
        cls,
        synthetic: pd.DataFrame,
        real: pd.DataFrame | None = None,
        *,
        columns: Sequence[str] | None = None,
        ax: Any = None,
    ) -> SyntheticDisplay:
        """Draw the first columns, or those that are named.

        Parameters
        ----------
        synthetic : DataFrame
        real : DataFrame, optional
            With the same columns.
        columns : sequence of str, optional
            By default the first nine.
        ax : matplotlib Axes, optional
            Divided into one panel per column.
        """
        chosen = list(columns if columns is not None else synthetic.columns[:MOST_COLUMNS])
        for name, table in (("synthetic", synthetic), ("real", real)):
            if table is not None and table.empty:
                raise ValueError(f"{name} has no rows, so there is nothing to draw.")
            if table is not None and (missing := [c for c in chosen if c not in table.columns]):
                has = ", ".join(map(str, table.columns))
                raise ValueError(
                    f"columns must be in both tables; {name} has no "
                    f"{', '.join(map(repr, missing))}. It has: {has}."
                )
        shown = synthetic[chosen]
        other = None if real is None else real[chosen]
        schema = Schema.of_public(shown if other is None else pd.concat([shown, other]))
        return cls(views=column_views(shown, other, schema)).plot(ax)

    def _draw(self, ax: Any) -> None:
        n_wide = min(3, len(self.views))
        n_tall = -(-len(self.views) // n_wide)
        ax.set_axis_off()
        for i, view in enumerate(self.views):
            row, column = divmod(i, n_wide)
            gap_x, gap_y = 0.35 / n_wide, 0.42 / n_tall
            panel = ax.inset_axes(
                (
                    column / n_wide,
                    1 - (row + 1) / n_tall + gap_y / 2,
                    1 / n_wide - gap_x,
                    1 / n_tall - gap_y,
                )
            )
            _side_by_side(panel, view, legend=i == 0)


def _side_by_side(panel: Any, view: ColumnView, *, legend: bool) -> None:
    """Draw one column: bars of the synthetic shares, and the real ones as a line or marks."""
    at: Any = np.arange(len(view.at)) if not view.numeric else np.array(view.at, dtype=float)
    width = 0.8 if not view.numeric or len(at) < 2 else 0.9 * float(np.min(np.diff(at)))
    panel.bar(at, view.synthetic, width, color=PALETTE[0], alpha=0.75, label="synthetic")
    if view.real is not None:
        line = "-" if view.numeric and len(at) > MOST_MARKED else "D"
        panel.plot(at, view.real, line, color=PALETTE[1], lw=1.8, ms=4, label="real")
    if not view.numeric:
        panel.set_xticks(at, [shortened(word, 10) for word in view.words], rotation=45, ha="right")
    panel.tick_params(colors=SOFT, labelsize=7)
    panel.set_title(shortened(view.name, 22), fontsize=9, color=INK)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    if legend:
        panel.legend(frameon=False, fontsize=7)


_WORDS: Final = {
    "epsilon": "epsilon",
    "gap": "gap between groups",
    "error": "error",
    "coverage": "coverage",
}


def _name_groups(ax: Any, names: Sequence[str]) -> None:
    """Write the names of groups below the axis, aslant where they have no room side by side."""
    aslant = len(names) * max(map(len, names)) > ROOM_BELOW
    words = short_names(names, 40)
    turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if aslant else {}
    ax.set_xticks(np.arange(len(names)), words, **turned)


def _kept_by(fitted: FittedModel) -> RateNotion | None:
    """Return the margin on decisions that a model keeps: that of the step which decides."""
    step = fitted.cuts or fitted.student_margin
    notion = fitted.fairness if step is None else step.notion
    return notion if isinstance(notion, RateNotion) else None


def _among(metric: str) -> tuple[bool, ...]:
    """Return among whom a metric of true classes compares decisions."""
    if metric.startswith("equalized_odds"):
        return True, False
    if metric.startswith("true_positive"):
        return (True,)
    return (False,) if metric.startswith("false_positive") else ()


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtra.of("A display", "Matplotlib", "plot") from error
    return pyplot
