"""How many of the points in the figures of DP-FERMI (Lowy et al. 2023) ours beat, by saved rows.

    python reproductions/published_points.py [--run Adult ...] [--seeds 5] [--kept FILE] [--save]

``published/points.csv`` holds the points of that paper's figures at a finite epsilon: DP-FERMI,
Tran et al. 2021a (empirical risk under a fairness lens), PF-LD (Tran et al. 2021b) and Jagielski et
al. 2019, on Adult, Retired-Adult, Credit, Parkinsons and UTKFace. They are not read off pictures:
the authors' public repository has the means that its script draws, one file per figure and method,
and every number is one of these, to six digits. 277 of them are drawn. The other 22 are the second
notion that PF-LD's files hold beside the drawn one ("in no figure"). Epsilons stand as published,
whatever they rest on; delta there is 1 / n**2, n the training rows. Retired-Adult may not be passed
on by its authors and was not to be had: its 53 points are open whatever we do.

**Rules**, written before the first count. A measured row beats a point if both are about the same
data, the same notion and decisions on all test rows, its epsilon is no larger, and its mean error
and its mean gap are no larger, one of them smaller. *With room*: mean plus half width of the 95 %
interval over seeds, of error and gap both, is no larger. The gap is the largest difference between
two groups; between two groups one against the rest is the same number. What counts is private for
whole records under a sound account; so nothing of SF-PATE (attribute alone), nothing printed by
FairPATE, no row without privacy, none with labels of 2,000 test rows, and no decisions withheld.

*With a coin*: some row that beats the point, or a coin between it and one constant decision: the
expected error and gap of "as the row decides with probability w, else the commoner class" are w
times those of the row and 1 - w times those of the constant, whose gap is 0. Anybody can toss it
for free, and many published points lie next to a constant; it is shown by itself.

- *any row*: every saved row of the results in ``SAVED``, and those measured here. This is a best of
  hundreds, picked point by point with the test rows in view: it favours us, and says that a setting
  exists, not that somebody would have chosen it. Delta is 1e-5 in most of these results, which is
  larger than the published one.
- *teachers*: those among them that learn from votes of teachers.
- *group not read*: those among all that do not read the group of whom they decide about, as the
  published methods do not.
- *one method*: rows measured here alone, from one method with its defaults for each notion and one
  ladder of margins, fixed before any of its rows: ``FairSharesClassifier``; the same without a
  public row, asked about rows drawn from noisy counts of declared columns (*beside counts*); of
  gradients ``DPSGDClassifier`` for demographic parity, which under equalized odds is the sound
  ``DPFERMIClassifier`` with a ladder of weights; and ``DPSGDClassifier`` without a margin with a
  blind rule around it, and, for demographic parity, teachers beside counts with one (*teachers, a
  blind rule*): as those without a margin, with the rule read on the public rows. Published
  frontiers are such ladders too. None reads the group at prediction. Delta is 1 / n**2 of all rows,
  so no larger than the published one.

*Measured here* (``--run``): each seed is a split of its own (25 % test; of the rest 20 % public,
whose labels are not read; of faces a fifth each), floating-point noise from the operating system.
Faces are the first 24 components of EfficientNet-Lite0, fixed before, in the place of a network.
Under equalized odds the true classes of public rows are those that a student makes of the answers,
for a blind rule classes drawn by the model's own probabilities; DP-FERMI pays for its shares of
groups. Rows of other data sets stay. DP-SGD for parity on tables was measured again when curves
had come to it, and when it whitened its rows, with which blind rules came (rules committed before);
the other rows of these tables are still those of commit 129dfa3, handed on in ``--kept``. Teachers
*beside counts* were added last, on tables alone, on the same splits, and the rows of the others
handed on again; their ranges and categories are those of the public rows and of all
(``no_public_rows``, *drawn rows, schema*). A blind rule around these came after that, by the rules
above, written before it ran, when the points that teachers leave open were those that blind rules
beat. Nothing is left out after a look at a result; weights
100 and 300, the ages and the coin were added after the first count, whose open points lay next to
constant decisions.

Seen afterwards: of the 23 points on tables that no row beats, 19 have a gap below .013. Of groups
of 3,000 and 4,500 that are decided alike, a tenth of them favourably, test rows show a gap of .006
in the mean (Credit), whatever is done in training. Faces by EfficientNet have a larger error than
by dlib's network (``fairpate_utkface``), whose features take half an hour.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _faces import DP_FERMI_AGES, U_ALL, Faces, by_efficientnet, split
from _table import asked, beside_saved, interval, keep, kept, rule, write
from fairpate_figure2 import KINDS, LOADERS, ODDS, PARITY, Run
from fairpate_utkface import report_on
from no_public_rows import declared

from evenhand import (
    Budget,
    DemographicParity,
    DPFERMIClassifier,
    DPSGDClassifier,
    EqualizedOdds,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.datasets import Dataset
from evenhand.datasets.images import load_utkface
from evenhand.frontier.export import read_published
from evenhand.privacy import FloatNoise

HERE = Path(__file__).parent
NAME = "published_points"
AGES = "UTKFace, age by race"
COMPONENTS = 24
EPSILONS = (0.5, 1.0, 3.0, 9.0)
MARGINS = (0.15, 0.12, 0.1, 0.08, 0.06, 0.04, 0.03, 0.02, 0.01, 0.005)
WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0, 10.0, 30.0, 100.0, 300.0)
TEACHERS, GRADIENTS = "FairShares", "DP-SGD, or DP-FERMI for odds"
COUNTS = "FairShares beside counts"
RULES = "DP-SGD with a blind rule"
RULED = "a blind rule around FairShares beside counts"
PUBLISHED_AS = {
    "adult": "Adult",
    "retired-adult": "Retired-Adult",
    "credit-default": "Credit",
    "parkinsons": "Parkinsons",
    "utkface-age": AGES,
}
NOTION_AS = {
    "demographic_parity": PARITY,
    "demographic-parity": PARITY,
    "demographic_parity_rest": PARITY,
    "demographic_parity_pairwise": PARITY,
    "equalized_odds": ODDS,
    "equalized_odds_pairwise": ODDS,
    "equalized-odds": ODDS,
    "equalized_odds_rest": ODDS,
}
"""Names that points and saved results have for the two notions; all others are left out."""

Row = dict[str, Any]


class Measured(NamedTuple):
    """One measured setting: means over seeds, and where it is saved."""

    data: str
    notion: str
    epsilon: float
    error: float
    gap: float
    error_pm: float
    gap_pm: float
    result: str
    setting: str
    teachers: bool
    reads_group: bool


class Saved(NamedTuple):
    """How the rows of a saved result are read.

    Parameters
    ----------
    named : tuple of str
        Columns that name a setting; rows that differ in the seed alone are one setting.
    teachers, reads_group, counts : callable
        Of a row: whether it learns from votes, reads the group at prediction, may count at all.
    fixed : dict
        Columns that the rows lack, or have by another name.
    """

    named: tuple[str, ...]
    teachers: Callable[[Row], bool]
    reads_group: Callable[[Row], bool] = lambda row: False
    counts: Callable[[Row], bool] = lambda row: True
    fixed: Callable[[Row], Row] = lambda row: {}


def always(row: Row) -> bool:
    """Whatever the row is."""
    return True


def never(row: Row) -> bool:
    """Whatever the row is."""
    return False


SAVED = {
    "dp_fermi_adult": Saved(("weight",), never),
    "dpsgd_adult": Saved(("setting",), never, lambda row: row["setting"].startswith("thresholds")),
    "fairpate_figure2": Saved(
        ("method", "setting"),
        lambda row: row["method"].startswith("Fair"),
        counts=lambda row: "printed" not in row["method"],
    ),
    "fairpate_frontiers": Saved(
        ("part", "method", "margin"),
        lambda row: row["method"] != "DP-SGD",
        lambda row: row["method"] == "S_post",
        lambda row: row["part"] != "IPP",
    ),
    "fairpate_utkface": Saved(
        ("method", "margin"),
        lambda row: row["method"].startswith(("shares", "labels")),
        counts=lambda row: row["part"] == "age" and "epsilon" in row,
        fixed=lambda row: {
            "data": AGES,
            "gap": row["gap pairwise"],
            "gap_pm": row["gap pairwise_pm"],
        },
    ),
    "generator_frontiers": Saved(
        ("method", "way", "neighbors"),
        lambda row: row["method"] == "fair-shares",
        lambda row: row["sees group"],
        fixed=lambda row: {"notion": row["gap of"]},
    ),
    "group_thresholds": Saved(
        ("method", "reference"),
        lambda row: row["method"] == "teachers",
        always,
        fixed=lambda row: {"data": "Adult"},
    ),
    "intervention_points": Saved(
        ("point",),
        always,
        lambda row: row["needs_group"],
        lambda row: row["decided"] == 1.0 and "labelled" not in row["point"],
    ),
    "jagielski_adult": Saved(
        ("margin",), never, always, fixed=lambda row: {"data": "Adult", "notion": "equalized_odds"}
    ),
    "labels_or_shares": Saved(("answers", "margin"), always),
    "margins_on_new_rows": Saved(
        ("way", "margin", "confidence"),
        never,
        lambda row: row["way"] == "thresholds",
        lambda row: not row["way"].startswith("SF-PATE"),  # of the attribute alone
        fixed=lambda row: {"data": row["table"], "epsilon": 1.0},
    ),
    "no_public_rows": Saved(
        ("way", "margin"), lambda row: row["way"] not in ("DP-SGD, schema", "trained on drawn rows")
    ),
    "notions_on_adult": Saved(
        ("answers", "margin", "source"),
        always,
        counts=lambda row: not row["source"].startswith("truth"),
        fixed=lambda row: {"data": "Adult", "epsilon": 3.0},
    ),
    "rows_and_counts": Saved(("way", "margin"), lambda row: row["way"] != "DP-SGD"),
}
HERE_MEASURED = Saved(("method", "setting"), lambda row: row["method"] in (TEACHERS, COUNTS, RULED))


def measured(result: str, rows: Sequence[Row], how: Saved) -> list[Measured]:
    """Return one entry per setting of a saved result; seeds of one setting are averaged."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for saved in rows:
        # Columns of one row may be read only where it counts.
        if not how.counts(saved):
            continue
        row = saved | how.fixed(saved)
        notion = NOTION_AS.get(row.get("notion", "demographic_parity"))
        if notion is None or row.get("epsilon") is None:
            continue
        setting = ", ".join(f"{name} {row[name]}" for name in how.named if name in row)
        found.setdefault((row["data"], notion, float(row["epsilon"]), setting), []).append(row)
    return [
        Measured(*key[:3], *means, result, key[3], how.teachers(runs[0]), how.reads_group(runs[0]))
        for key, runs in found.items()
        if (means := means_of(runs)) is not None
    ]


def means_of(runs: Sequence[Row]) -> tuple[float, float, float, float] | None:
    """Return error, gap and their half widths; None where a fit was refused."""
    if any(run["error"] is None or run["gap"] is None for run in runs):
        return None
    if "error_pm" in runs[0]:
        if len(runs) > 1:
            raise ValueError(
                f"{len(runs)} rows have one name, such as {runs[0]}. Name more columns."
            )
        return tuple(runs[0][name] for name in ("error", "gap", "error_pm", "gap_pm"))
    (error, error_pm), (gap, gap_pm) = (
        interval([run[name] for run in runs]) for name in ("error", "gap")
    )
    return error, gap, error_pm, gap_pm


def published() -> list[Row]:
    """Return the published points, in the order of their file, with our names of the data."""
    return [
        {
            "data": PUBLISHED_AS[run.setting.data],
            "method": run.setting.method.removeprefix("published: "),
            "notion": NOTION_AS[run.gap_name],
            "epsilon": run.epsilon,
            "error": run.error,
            "gap": run.gap,
        }
        for run in read_published(HERE / "published" / "points.csv")
    ]


def beats(row: Measured, point: Row, *, room: bool = False) -> bool:
    """Whether a row beats a published point, with room for its interval if asked for."""
    if (row.data, row.notion) != (point["data"], point["notion"]):
        return False
    error, gap = row.error + room * row.error_pm, row.gap + room * row.gap_pm
    no_larger = row.epsilon <= point["epsilon"] and error <= point["error"] and gap <= point["gap"]
    return no_larger and (error < point["error"] or gap < point["gap"])


def beats_by_coin(row: Measured, point: Row, constant: float) -> bool:
    """Whether it does, or a coin between the row and a constant decision with that error.

    Tried is the least share of the row that has the point's error: it has the least gap.
    """
    least = (constant - point["error"]) / (constant - row.error) if row.error < constant else 0.0
    share = min(1.0, max(0.0, least * (1.0 + 1e-9)))  # an error that is level may round up
    mixed = share * row.error + (1.0 - share) * constant
    return beats(row, point) or beats(row._replace(error=mixed, gap=share * row.gap), point)


def measured_here(method: str, row: Measured) -> bool:
    """Whether a row was measured here, by this method."""
    return row.result == NAME and row.setting.startswith(f"method {method}, ")


KINDS_OF_COUNT: dict[str, Callable[[Measured], bool]] = {
    "any row": lambda row: True,
    "group not read": lambda row: not row.reads_group,
    "teachers": lambda row: row.teachers,
    **{
        f"one method: {said}": partial(measured_here, method)
        for said, method in {
            "teachers": TEACHERS,
            "teachers beside counts": COUNTS,
            "gradients": GRADIENTS,
            "blind rule": RULES,
            "teachers, a blind rule": RULED,
        }.items()
    },
}


def count(
    points: Sequence[Row], rows: Sequence[Measured], constants: Mapping[str, float]
) -> list[Row]:
    """Return every point with whether it is beaten, by each kind of rows, and by whose.

    ``constants`` has the error of the best constant decision, by data set; without one no coin is
    tossed.
    """
    told = []
    about: dict[tuple[str, str], list[Measured]] = {}
    for row in rows:
        about.setdefault((row.data, row.notion), []).append(row)
    for point in points:
        line = dict(point)
        constant = constants.get(point["data"], math.nan)
        # Only these can beat it: looked at once for every kind.
        alike = about.get((point["data"], point["notion"]), ())
        near = [row for row in alike if row.epsilon <= point["epsilon"]]
        able = [row for row in near if beats(row, point)]
        coin = [row for row in near if beats_by_coin(row, point, constant)]
        for kind, within in KINDS_OF_COUNT.items():
            own = [row for row in able if within(row)]
            line[kind] = bool(own)
            line[f"{kind}, room"] = any(beats(row, point, room=True) for row in own)
            line[f"{kind}, coin"] = any(map(within, coin))
        line["results"] = sorted({row.result for row in able})
        if able:
            best = min(able, key=lambda row: (row.error + row.gap, row.result, row.setting))
            line["by"] = f"{best.result}: {best.setting}, epsilon {best.epsilon:g}"
        told.append(line)
    return told


def constants_of(rows: Sequence[Row]) -> dict[str, float]:
    """Return the error of the best constant decision for each data set that was measured here."""
    return {row["data"]: row["constant"] for row in rows}


def ages() -> Faces:
    """Return nine classes of age by race, as DP-FERMI has them, with features of EfficientNet."""
    data = load_utkface(label="age", sensitive="race", ages=DP_FERMI_AGES)
    return Faces(X=by_efficientnet(), y=data.y, race=data.sensitive_features)


class Fits(Run):
    """One split at one epsilon: every setting of a method, and what it comes to on test rows."""

    def __init__(self, data: Dataset, epsilon: float, seed: int) -> None:
        super().__init__(data, epsilon, seed, delta=1.0 / len(data.y) ** 2)

    def teachers(self, notion: str) -> Iterator[tuple[float | None, float, float]]:
        """Without a margin, then every margin from one training of the teachers."""
        private = self.split.private
        plain = PATEClassifier(answers="shares", **self.common)
        plain.fit(private.X, private.y, X_public=self.split.public.X)
        kind = KINDS[notion]
        models = [
            FairSharesClassifier(fairness=kind(margin=m, reference="pairwise"), **self.common)
            for m in MARGINS
        ]
        for margin, model in zip((None, *MARGINS), (plain, *self.fitted(models)), strict=True):
            yield margin, *self.measure(model, notion)

    def counts(self, notion: str) -> Iterator[tuple[float | None, float, float]]:
        """Every margin on drawn rows of its own, and the last fit without its margin."""
        for margin in MARGINS:
            model = self.on_drawn_rows(notion, margin)
            yield margin, *self.measure(model, notion)
        yield None, *self.measure(model.without_margin(), notion)

    def on_drawn_rows(self, notion: str, margin: float) -> FairSharesClassifier:
        """Return teachers' student that knows drawn rows and their counts."""
        private = self.split.private
        return FairSharesClassifier(
            fairness=KINDS[notion](margin=margin, reference="pairwise"),
            public="synthetic",
            schema=declared(self.split.public.X, private.X),
            **self.common,
        ).fit(private.X, private.y, sensitive_features=private.groups)

    def gradients(self, notion: str) -> Iterator[tuple[float | None, float, float]]:
        """DP-SGD without a margin, then at every margin; DP-FERMI at every weight of odds."""
        models: dict[float | None, Any] = {
            margin: DPSGDClassifier(
                fairness=margin and DemographicParity(margin=margin, reference="pairwise"),
                **self.common,
            )
            for margin in (None, *MARGINS)
        }
        if notion == ODDS:
            fermi = {"fairness": EqualizedOdds(margin=0.0), "group_shares": "released"}
            models = {
                weight: DPFERMIClassifier(fairness_weight=weight, **fermi, **self.common)
                for weight in WEIGHTS
            }
        private, public = self.split.private, self.split.public
        for setting, model in models.items():
            model.fit(private.X, private.y, sensitive_features=private.groups, X_public=public.X)
            yield setting, *self.measure(model, notion)

    def rules(self, notion: str) -> Iterator[tuple[float | None, float, float]]:
        """DP-SGD without a margin, then blind rules around it at every margin."""
        private, public = self.split.private, self.split.public
        plain = DPSGDClassifier(**self.common)
        plain.fit(private.X, private.y, sensitive_features=private.groups, X_public=public.X)
        yield from self.around(plain, notion)

    def ruled_counts(self, notion: str) -> Iterator[tuple[float | None, float, float]]:
        """Teachers beside counts without a margin, then blind rules around them."""
        yield from self.around(self.on_drawn_rows(notion, MARGINS[-1]).without_margin(), notion)

    def around(self, plain: Any, notion: str) -> Iterator[tuple[float | None, float, float]]:
        """Measure a model as it is, then blind rules around it at every margin."""
        public = self.split.public
        yield None, *self.measure(plain, notion)
        drawn = None
        if notion == ODDS:
            up_to = np.cumsum(plain.predict_proba(public.X), axis=1)
            u = np.random.default_rng(self.seed).random((len(up_to), 1))
            drawn = plain.classes_[(u > up_to[:, :-1]).sum(axis=1)]
        for margin in MARGINS:
            fairness = KINDS[notion](margin=margin, reference="pairwise")
            ruled = plain.with_blind_rule(
                public.X, public.groups, fairness=fairness, y_public=drawn
            )
            yield margin, *self.measure(ruled, notion)


class FaceFits(Fits):
    """The same on nine classes of age by race: components of public features of faces."""

    def __init__(self, data: Faces, epsilon: float, seed: int) -> None:
        self.split = split(data, seed, U_ALL, COMPONENTS)
        self.common = {
            "budget": Budget(epsilon=epsilon, delta=1.0 / len(data.y) ** 2),
            "noise": FloatNoise(),
            "random_state": seed,
        }

    def measure(self, model: Any, notion: str) -> tuple[float, float]:
        """Error, and pairwise gap of any class, on the test part."""
        test = report_on(model, self.split.test, model.predict(self.split.test.X))
        return test["error_rate"].value, test[f"{notion}_pairwise"].value


METHODS = {
    TEACHERS: "teachers",
    COUNTS: "counts",
    GRADIENTS: "gradients",
    RULES: "rules",
    RULED: "ruled_counts",
}

WHERE: dict[str, tuple[type[Fits], Callable[[], Any], tuple[str, ...]]] = {
    **{name: (Fits, load, (PARITY, ODDS)) for name, load in LOADERS.items()},
    AGES: (FaceFits, ages, (PARITY,)),
}
"""How each data set is measured, loaded, and under which notions."""


def asked_of(method: str, data: str, notion: str) -> bool:
    """Whether a method is measured there: numbers of a network have no counts.

    A rule of odds takes minutes a margin, and is measured around one model alone.
    """
    faces_by_counts = data == AGES and method in (COUNTS, RULED)
    return not faces_by_counts and (method, notion) != (RULED, ODDS)


def rows_of(name: str, seeds: int, file: Path | None = None) -> list[Row]:
    """Measure every setting on one data set; runs that a file keeps are not run again."""
    fits, load, notions = WHERE[name]
    data, done = load(), kept(file)
    shares = np.unique(data.y, return_counts=True)[1] / len(data.y)
    rows = []
    for notion in notions:
        for epsilon in EPSILONS:
            for method, fit in METHODS.items():
                # Numbers of a network have no counts; a rule of odds takes minutes a margin.
                if (method in (COUNTS, RULED) and name == AGES) or (method, notion) == (
                    RULED,
                    ODDS,
                ):
                    continue
                found: dict[float | None, list[tuple[float, float]]] = {}
                for seed in range(seeds):
                    key = [name, notion, epsilon, method, seed]
                    run = next((run for run in done if run[:5] == key), None)
                    if run is None:
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")  # margins that a student cannot reach
                            run = [*key, list(getattr(fits(data, epsilon, seed), fit)(notion))]
                        keep(file, run)
                    for setting, error, gap in run[5]:
                        found.setdefault(setting, []).append((error, gap))
                for setting, repeats in found.items():
                    row: Row = {"data": name, "notion": notion}
                    row |= {"epsilon": epsilon, "method": method, "setting": setting}
                    (row["error"], row["error_pm"]), (row["gap"], row["gap_pm"]) = (
                        interval([run[i] for run in repeats]) for i in (0, 1)
                    )
                    row |= {"seeds": seeds, "constant": 1.0 - float(shares.max())}
                    rows.append(row | {"repeats": [list(one) for one in repeats]})
                    print(line(rows[-1]), flush=True)
    return rows


def all_measured(rows: Sequence[Row]) -> list[Measured]:
    """Return the settings of all saved results, and of the rows measured here."""
    found = measured(NAME, rows, HERE_MEASURED)
    for name, how in SAVED.items():
        saved = json.loads((HERE / "results" / f"{name}.json").read_text())["rows"]
        found += measured(name, saved, how)
    return found


def line(row: Row) -> str:
    """One row that was measured here."""
    setting = "none" if row["setting"] is None else f"{row['setting']:g}"
    return (
        f"| {row['data']} | {row['notion']} | {row['epsilon']:g} | {row['method']} | {setting} "
        f"| {row['error']:.4f} ± {row['error_pm']:.4f} / {row['gap']:.4f} ± {row['gap_pm']:.4f} |"
    )


def counted(told: Sequence[Row], *names: str) -> list[Row]:
    """Count the points for each distinct value of some of their columns, and all of them."""
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for point in told:
        cells.setdefault(tuple(point[name] for name in names), []).append(point)
    cells[("all",) * len(names)] = list(told)
    return [
        dict(zip(names, key, strict=True))
        | {"points": len(points)}
        | {
            kind: sum(point[kind] for point in points)
            for each in KINDS_OF_COUNT
            for kind in (each, f"{each}, room", f"{each}, coin")
        }
        for key, points in cells.items()
    ]


def line_of_count(row: Row, *, coin: bool = False) -> str:
    """One row of counts: those with room in brackets, or those with a coin."""
    cells = []
    for name, value in row.items():
        if name in KINDS_OF_COUNT:
            cells.append(str(row[f"{name}, coin"]) if coin else f"{value} ({row[f'{name}, room']})")
        elif ", " not in name:
            cells.append(f"{value:g}" if isinstance(value, float) else str(value))
    return f"| {' | '.join(cells)} |"


def save(rows: list[Row], data: str | None = None) -> None:
    """Count anew, and write points, rows and tables; rows of other data sets stay."""
    commits, rows = beside_saved(NAME, data or "", rows, list(WHERE))
    if data is None:
        commits.pop("")
    told = count(published(), all_measured(rows), constants_of(rows))
    counts = counted(told, "data", "notion")
    head = " | ".join(KINDS_OF_COUNT)
    of_results = {name: sum(name in point["results"] for point in told) for name in (*SAVED, NAME)}
    alone = {name: sum(point["results"] == [name] for point in told) for name in (*SAVED, NAME)}
    write(
        NAME,
        {"commits": commits, "counts": counts, "points": told, "rows": rows},
        f"# Published points that ours beat: {len(told)} points of DP-FERMI's figures\n",
        "A cell is how many of the points some measured row beats in its means; in brackets, with "
        "room for the intervals. *Any row* is a best of all saved rows, picked point by point on "
        "test rows, and favours us; *one method* is one ladder of margins that was fixed before. "
        "Which row beats which point, point by point, is in the JSON. Rules: in the script.\n",
        f"| data | notion | points | {head} |",
        rule(3 + len(KINDS_OF_COUNT)),
        *map(line_of_count, counts),
        f"\n## With a coin\n\n| data | notion | points | {head} |",
        rule(3 + len(KINDS_OF_COUNT)),
        *(line_of_count(row, coin=True) for row in counts),
        f"\n## By method and epsilon\n\n| data | notion | method | epsilon | points | {head} |",
        rule(5 + len(KINDS_OF_COUNT)),
        *map(line_of_count, counted(told, "data", "notion", "method", "epsilon")),
        "\n## By saved result\n\n| result | points it beats | points that it alone beats |",
        rule(3),
        *(f"| [{n}]({n}.md) | {of_results[n]} | {alone[n]} |" for n in of_results),
        "\n## Measured here\n",
        "Commits: " + ", ".join(f"{name} {at}" for name, at in commits.items()) + ".\n",
        "| data | notion | epsilon | method | margin or weight | error / gap |",
        rule(6),
        *map(line, rows),
    )


def main() -> None:
    """Measure what is asked for, count, print, and save if asked to."""
    parser = asked(__doc__, seeds=5)
    parser.add_argument("--run", nargs="+", choices=tuple(WHERE), default=())
    given = parser.parse_args()
    fresh = {name: rows_of(name, given.seeds, given.kept) for name in given.run}
    if given.save:
        for name, rows in (fresh or {None: []}).items():
            save(rows, name)
    else:
        saved = json.loads((HERE / "results" / f"{NAME}.json").read_text())["rows"]
        rows = [row for row in saved if row["data"] not in fresh]
        rows += [row for each in fresh.values() for row in each]
        told = count(published(), all_measured(rows), constants_of(rows))
        print(*map(line_of_count, counted(told, "data", "notion")), sep="\n")


if __name__ == "__main__":
    main()
