"""From settings to runs: trained together where they share their teachers, and measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from shlex import quote
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from evenhand import _checks
from evenhand.datasets.features.extraction import Features
from evenhand.estimators import fit_many
from evenhand.estimators.fitted import FittedModel, decide
from evenhand.estimators.shared_teachers import train_teachers
from evenhand.estimators.spec import CALIBRATION
from evenhand.fairness import FairnessKind, gap_of
from evenhand.fairness.gate.calibrated import GateCalibration
from evenhand.fairness.gate.gate import open_gate
from evenhand.fairness.gate.runner import admitted
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.metrics import error_rate, group_error_rates, selection_rates
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.score_parity import generalized_demographic_parity
from evenhand.fairness.tally import JointTally
from evenhand.fairness.yardstick import Yardstick
from evenhand.frontier.arguments import (
    DEFAULTS,
    estimator_of,
    gap_notion_of,
    of_score,
    reject_of,
    rule_of,
)
from evenhand.frontier.judged_rows import JudgedGenerator
from evenhand.frontier.loaded_rows import Material
from evenhand.frontier.material import DataSource
from evenhand.frontier.run import Plain, Run, Setting
from evenhand.frontier.subjects import SUBJECTS, draws_rows
from evenhand.frontier.votes_cache import KeptTeachers, VotesCache
from evenhand.privacy import BudgetExceeded
from evenhand.teachers import LogisticTeachers
from evenhand.teachers.ensemble import Teachers
from evenhand.teachers.stacked import NetworkTeachers
from evenhand.typing import REJECTED, FloatArray, IntArray

_CHECKED: Final = ("balance", "neighbors", "judge", "sampler", "n_teachers", "setting")
"""By what settings of a generator differ in what can be known to be wrong, beside the budget."""

VOTES_ONLY: Final = ("aggregator", "S_pre", "S_in", "S_post")
"""Points of intervention that need of their teachers no more than votes."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Settings that one process trains: all of one data set and seed, and of the same teachers."""

    source: DataSource
    settings: tuple[Setting, ...]
    cache: VotesCache | None
    """Where the votes are kept."""
    spec: str
    """Name of the file with the grid, for the command of a run."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What became of a task."""

    runs: tuple[Run, ...]
    skipped: tuple[tuple[Setting, str], ...]
    """Settings that cannot be trained, and why."""


def shared_with(setting: Setting) -> tuple[object, ...]:
    """Return what settings that are trained together have in common."""
    shares = SUBJECTS[setting.method].shares_votes
    counted = tuple(map(setting.arguments.get, ("synthetic_share", "neighbors")))
    if shares and "n_teachers" in setting.arguments:
        return (setting.method, setting.seed, counted, setting.arguments["n_teachers"])
    if shares:  # the number of teachers follows from the budget
        budget = tuple(setting.arguments.get(name) for name in ("epsilon", "delta"))
        return (setting.method, setting.seed, counted, budget)
    return (setting.key,)


def train(task: Task) -> Trained:
    """Train and measure the settings of a task."""
    started = time.perf_counter()
    material = task.source.load(task.settings[0].seed)
    models = [_model(setting, task, material) for setting in task.settings]
    with warnings.catch_warnings():
        # What they warn of is in the run: the gap, the coverage, and the warnings of its claim.
        warnings.simplefilter("ignore")
        refused = _fit(task, models, material)
        models, refused = _ruled(task, models, refused, material)
        trial = _Trial(task.source, material)
        fitted = [
            (setting, model)
            for setting, model, why in zip(task.settings, models, refused, strict=True)
            if why is None
        ]
        measured = [trial.run(setting, model, task.spec) for setting, model in fitted]
    seconds = (time.perf_counter() - started) / max(1, len(measured))
    return Trained(
        runs=tuple(Run(**run, seconds=seconds) for run in measured),
        skipped=tuple(
            (setting, str(why))
            for setting, why in zip(task.settings, refused, strict=True)
            if why is not None
        ),
    )


def teach(task: Task) -> None:
    """Train the teachers of a task and keep their votes, so that no process does it twice."""
    if task.cache is None:
        return
    first = task.settings[0]
    material = task.source.load(first.seed)
    model = _model(first, task, material)
    if material.units is None and model.neighbors_for(units=False) == "add or remove one":
        return  # coins deal the records, in each task others
    train_teachers(
        model,
        material.X,
        material.y,
        X_public=material.X_public,
        sensitive_features_public=material.groups_public,
        unit_ids=material.units,
    )


def check(source: DataSource, settings: Sequence[Setting]) -> None:
    """Raise what a generator can know to be wrong with the rows, of all settings at once.

    Before any fit, on the rows of the first seed; nothing is spent. The smallest budget asks the
    most, so that the others need not be tried.
    """
    first: dict[tuple[object, ...], Setting] = {}
    for setting in sorted(settings, key=lambda s: float(str(s.arguments.get("epsilon", 0)))):
        if draws_rows(setting.method):
            said = (setting.method, *map(setting.arguments.get, _CHECKED))
            first.setdefault(said, setting)
    if not first:
        return
    material = source.load(min(setting.seed for setting in first.values()))
    rows = {"sensitive_features": material.groups, "unit_ids": material.units}
    _checks.together(
        partial(
            _model(
                setting, Task(source=source, settings=(setting,), cache=None, spec=""), material
            ).check,
            material.X,
            material.y,
            **rows,
        )
        for setting in first.values()
    )


def train_one(source: DataSource, setting: Setting) -> Any:
    """Train one setting anew, with noise of its own, and return the fitted model.

    Raises
    ------
    BudgetExceeded
        If the budget does not cover one answer.
    """
    task = Task(source=source, settings=(setting,), cache=None, spec="")
    material = source.load(setting.seed)
    model = _model(setting, task, material)
    refused = _fit(task, [model], material)
    (model,), (why,) = _ruled(task, [model], refused, material)
    if why is not None:
        raise why
    return model


def _model(setting: Setting, task: Task, material: Material) -> Any:
    """Return the unfitted estimator of a setting, with teachers that are remembered."""
    shared: dict[str, Any] = {
        "schema": material.schema,
        "declared": material.declared,
        "unit": task.source.unit_name,
    }
    teachers: Teachers = LogisticTeachers()
    if (network := task.source.architecture) is not None:
        teachers = NetworkTeachers(network)
        shared |= {"teachers": teachers, "student": network, "architecture": network}
    known = SUBJECTS[setting.method]
    votes_only = known.shares_votes or setting.arguments.get("at") in VOTES_ONLY
    if task.cache is None or not votes_only:
        return estimator_of(setting, **shared)
    shared["teachers"] = KeptTeachers(
        teachers=teachers,
        cache=task.cache,
        name=f"{setting.data} {setting.fingerprint} seed {setting.seed}",
    )
    return estimator_of(setting, **shared)


def _fit(task: Task, models: Sequence[Any], material: Material) -> list[Exception | None]:
    known = SUBJECTS[task.settings[0].method]
    tables: dict[str, Any] = {
        "X_public": material.X_public,
        "unit_ids": material.units,
        "sensitive_features_public": material.groups_public,
        "sensitive_features": material.groups,
    }
    if known.shares_votes:
        # Their margins read the public groups alone.
        del tables["sensitive_features"]
        return fit_many(models, material.X, material.y, **tables, **material.calibration)
    tables = {name: table for name, table in tables.items() if name in known.takes}
    refused: list[Exception | None] = []
    for model in models:
        try:
            model.fit(material.X, material.y, **tables)
        except (BudgetExceeded, ValueError) as error:
            refused.append(error)
        else:
            refused.append(None)
    return refused


def _ruled(
    task: Task, models: Sequence[Any], refused: list[Exception | None], material: Material
) -> tuple[list[Any], list[Exception | None]]:
    """Put a blind rule around the fitted models that were asked to have one: on public rows."""
    out, why = list(models), list(refused)
    for i, setting in enumerate(task.settings):
        notion = rule_of(setting)
        if notion is None or why[i] is not None:
            continue
        rows, groups, y = material.X_public, material.groups_public, None
        if notion.needs_labels and material.calibration:
            rows, y, groups = (material.calibration[name] for name in CALIBRATION)
        try:
            if rows is None:
                raise ValueError("blind_margin needs public rows with groups, and there are none.")
            out[i] = models[i].with_blind_rule(rows, groups, fairness=notion, y_public=y)
        except ValueError as error:
            why[i] = error
    return out, why


class _Trial:
    """Test rows, encoded once for all models whose encoder saw the same public rows."""

    def __init__(self, source: DataSource, material: Material) -> None:
        self._source = source
        self._material = material
        self._groups = encode_groups(material.groups_test)
        self._encoded: FloatArray | None = None
        self._truth: IntArray = np.empty(0, dtype=np.int64)
        self._classes: list[Any] = []

    def run(self, setting: Setting, model: Any, spec: str) -> dict[str, Any]:
        """Measure a fitted model; returns the fields of its run."""
        fitted: FittedModel = model.fitted_
        predicted = self._predict(model, fitted)
        classes, groups = self._classes, self._groups
        reject = reject_of(setting)
        if reject is not None:
            predicted = self._within(reject, model, predicted)
        size, units = (groups.n_groups, len(classes)), self._material.units_test
        joint = JointTally.of(groups.codes, self._truth, predicted, *size, units=units)
        error, gap = error_rate(joint), self._gap(setting, model, joint)
        guarantee = fitted.guarantee
        private = SUBJECTS[setting.method].private
        return {
            "setting": setting,
            "epsilon": guarantee.epsilon if private else np.inf,
            "delta": guarantee.delta if private else np.nan,
            "error": error.value,
            "gap": gap.value,
            "coverage": float((predicted != REJECTED).mean()),
            "error_interval": (error.low, error.high),
            "gap_interval": (gap.low, gap.high),
            "mu_squared": guarantee.mu_squared if private else None,
            "fairness_kind": str(fitted.kind if reject is None else FairnessKind.REJECT_OPTION),
            "groups": self._rows(joint, predicted, self._shares(model)),
            "guarantee": guarantee.to_dict(),
            "command": f"evenhand frontier {quote(spec)} --train {setting.key} --out model",
            "measured_on": (
                "private holdout, not covered" if self._source.kind == "private" else "public rows"
            ),
            "gap_name": gap.name,
            "data_kind": self._source.kind,
            **self._beside(fitted, predicted, len(classes)),
        }

    def _beside(self, fitted: FittedModel, predicted: IntArray, n_classes: int) -> dict[str, Any]:
        """Return the errors to read the run's error beside, on the rows that it answered."""
        given = predicted != REJECTED
        if not given.any():
            return {}
        free = fitted.without_margin
        found = Yardstick.of_truth(
            self._truth[given],
            predicted[given],
            n_classes,
            without_margin=None if free is None else self._decided(free)[given],
            units=None if (units := self._material.units_test) is None else units[given],
        )
        unbound = found.without_margin
        return {
            "majority_error": found.majority_error.value,
            "error_without_margin": float("nan") if unbound is None else unbound.value,
            "no_better": found.no_better,
        }

    def _predict(self, model: Any, fitted: FittedModel) -> IntArray:
        if not self._classes:
            self._classes = fitted.classes.tolist()
            place = {value: code for code, value in enumerate(self._classes)}
            self._truth = np.array(
                [place[value] for value in self._material.y_test.tolist()], dtype=np.int64
            )
        if fitted.encoder is not None and not fitted.needs_group:
            # Every model of a task encodes with the same public rows.
            if self._encoded is None:
                X = self._material.X_test
                rows = np.asarray(X, dtype=np.float64) if isinstance(X, Features) else X
                self._encoded = fitted.encoder.transform(rows)
            return self._decided(fitted.student)
        labels = decide(model, self._material.X_test, self._material.groups_test)
        found: IntArray = np.searchsorted(fitted.classes, labels).astype(np.int64)
        return found

    def _decided(self, student: Any) -> IntArray:
        """Return what a student decides about the encoded rows."""
        linear = isinstance(student, LogisticRegression)
        codes: IntArray = student.predict(self._sparse if linear else self._encoded)
        return codes.astype(np.int64)

    @cached_property
    def _sparse(self) -> Any:
        """The encoded rows, most of whose entries are 0: a linear model reads them faster so.

        Pictures have few zeros, and stay as they are.
        """
        pictures = self._source.pictures is not None
        return self._encoded if pictures else csr_array(self._encoded)

    def _gap(self, setting: Setting, model: Any, joint: JointTally) -> Estimate:
        """Return the gap that is asked for: of decisions, or of the distributions of the score."""
        if not of_score(setting.arguments):
            return gap_of(gap_notion_of(setting), joint)
        if model.fitted_.encoder is None:
            probabilities = model.predict_proba(self._material.X_test)
        else:
            probabilities = model.fitted_.student.predict_proba(self._encoded)
        reference = str({**DEFAULTS, **setting.arguments}["reference"])
        return generalized_demographic_parity(
            probabilities,
            self._groups.codes,
            n_groups=self._groups.n_groups,
            reference=reference,
            units=self._material.units_test,
        )

    def _within(self, notion: RateNotion, model: Any, predicted: IntArray) -> IntArray:
        """Refuse labels as a reject option with this margin does, in the order of the rows."""
        groups, size = self._groups, (self._groups.n_groups, len(self._classes))
        known = None
        if notion.needs_labels:
            X, y, sensitive = (self._material.calibration[name] for name in CALIBRATION)
            labels, truth = (
                np.searchsorted(self._classes, told)
                for told in (decide(model, X, sensitive), np.asarray(y))
            )
            codes = encode_groups(sensitive, names=groups.names).codes
            known = GateCalibration(labelled=JointTally.of(codes, truth, labels, *size))
        gate = open_gate(notion, *size, calibration=known)
        given = admitted(gate, groups.codes, predicted)
        kept = np.full(len(predicted), REJECTED, dtype=np.int64)
        kept[given] = predicted[given]
        return kept

    def _shares(self, model: Any) -> Mapping[str, Mapping[str, Plain]]:
        """Return what is known of each group in what a generator drew."""
        if not isinstance(model, JudgedGenerator):
            return {}
        of = self._material
        return model.group_shares(of.X_test, of.y_test, of.groups_test)

    def _rows(
        self, joint: JointTally, predicted: IntArray, shares: Mapping[str, Mapping[str, Plain]]
    ) -> tuple[dict[str, Plain], ...]:
        groups = self._groups
        sizes = np.bincount(groups.codes, minlength=groups.n_groups)
        given = np.bincount(groups.codes[predicted != REJECTED], minlength=groups.n_groups)
        positive = self._material.positive
        selected = (
            selection_rates(joint.predicted, self._classes.index(positive))
            if positive in self._classes
            else None
        )
        return tuple(
            {
                "name": name,
                "rows": int(sizes[z]),
                "error": _plain(error.value),
                "selection_rate": None if selected is None else _plain(selected[z].value),
                "coverage": _plain(given[z] / sizes[z] if sizes[z] else np.nan),
                **shares.get(name, {}),
            }
            for z, (name, error) in enumerate(
                zip(groups.names, group_error_rates(joint), strict=True)
            )
        )


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
