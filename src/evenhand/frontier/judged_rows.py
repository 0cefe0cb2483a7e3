"""A generator of tables on a frontier: fitted, drawn from, and judged by a model of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pandas as pd

from evenhand._numerals import text_of
from evenhand.datasets import Schema
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.spec import BUDGET, MethodSpec
from evenhand.fairness import FairnessKind
from evenhand.fairness.groups import encode_groups
from evenhand.generators.registry import GENERATORS
from evenhand.generators.tables.even_rates import even_rates
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.generators.tables.utility import Judge
from evenhand.privacy import Budget, Guarantee
from evenhand.privacy.noise import Noise
from evenhand.typing import Array, FloatArray, RandomState

EVEN_RATES: Final = "even-rates"
BALANCES: Final[Mapping[str, tuple[str, ...] | None]] = {
    "label,sensitive": ("label", "sensitive"),
    "label": ("label",),
    "sensitive": ("sensitive",),
    "none": (),
    EVEN_RATES: None,
    "both-rates": None,
}
"""How rows are drawn: what is spread evenly, or shares by ``even_rates``."""

OF_ROWS: Final[Mapping[str, Any]] = {
    "balance": "label,sensitive",
    "amount": 1.0,
    "n_rows": 10_000,
    "neighbors": "add or remove one",
    "judge": "logistic regression",
    "use_sensitive": True,
}
"""What a grid says of drawn rows, with the defaults."""

AS_LEARNT: Final = "the rows could not be spread as asked, and were drawn as learnt: {why}"

HELD: Final = ("demographic-parity", "equalized-odds")
"""Notions whose rates ``even_rates`` brings together."""


@dataclass(kw_only=True, eq=False)
class JudgedGenerator:
    """Fit a generator to private rows, draw from it, and train a public model on what is drawn.

    The same numbers as ``generator.fit``, ``generator.sample`` and ``evaluate`` by hand.

    Privacy
    -------
    Cost : ``budget``, charged by the generator's own fit. All after it is post-processing, until
        the model is measured on test rows: that is not covered.
    """

    generator: str
    """Name of a generator of tables."""
    budget: Budget
    balance: str = OF_ROWS["balance"]
    """One of ``BALANCES``."""
    fairness: str = HELD[0]
    """With ``"even-rates"``: the notion whose rates are brought together."""
    amount: float = OF_ROWS["amount"]
    """With ``"even-rates"``: how much of the way to go, in [0, 1]."""
    n_rows: int = OF_ROWS["n_rows"]
    """Rows to draw."""
    neighbors: str = OF_ROWS["neighbors"]
    """What the claim is about: "add or remove one", or "replace one" as with teachers."""
    judge: str = OF_ROWS["judge"]
    """The model that is trained on them, of ``generators.tables.utility.MODELS``."""
    use_sensitive: bool = OF_ROWS["use_sensitive"]
    """Whether it reads the sensitive columns, when trained and when asked."""
    declared: Schema | None = None
    """Public columns, label and groups included; what it leaves out is released from the budget."""
    unit: str = "person"
    """What a unit is called in the claim, where rows have one."""
    noise: Noise | None = None
    random_state: int = 0
    """Seeds what is drawn besides privacy noise, and the model."""

    generator_: TableSynthesizer = field(init=False)
    guarantee_: Guarantee = field(init=False)
    """The generator's; with a warning where rows could not be spread as asked, and were drawn as
    they were learnt.
    """
    rows_: pd.DataFrame = field(init=False)
    """What was drawn."""
    judge_: Judge = field(init=False)
    classes_: Array = field(init=False)

    def check(self, X: pd.DataFrame, y: pd.Series[Any], **tables: Any) -> None:
        """Raise what can be known to be wrong before anything is spent."""
        n_classes = y.nunique()
        if BALANCES[self.balance] is None and n_classes != 2:
            raise ValueError(
                f"balance = {self.balance!r} moves the odds of two classes, and {y.name!r} has "
                f"{n_classes}. Take balance = 'label,sensitive', 'sensitive' or 'none'."
            )
        frame, columns = self._private(X, y, **tables)
        self._made().check(frame, budget=self.budget, **columns)

    def fit(
        self, X: pd.DataFrame, y: pd.Series[Any], *, sensitive_features: Any, unit_ids: Any = None
    ) -> Self:
        """Fit the generator, draw rows, and train the model on them."""
        frame, columns = self._private(X, y, sensitive_features, unit_ids)
        self.generator_ = self._made().fit(
            frame, **columns, budget=self.budget, unit_name=self.unit
        )
        self.classes_ = np.unique(y.to_numpy())
        self.guarantee_ = self.generator_.guarantee_
        try:
            self.rows_ = self._sample(**self._spread())
        except ValueError as error:
            # It is paid for, and a run that is not kept would be fitted again, until noise is kind.
            self.guarantee_ = self.guarantee_.with_warning(AS_LEARNT.format(why=error))
            self.rows_ = self._sample(balance=())
        label, *sensitive = self.generator_.conditions_.names
        schema = self.generator_.codec_.schema
        self.judge_ = Judge.of(
            schema.as_measured(self.rows_),
            label=label,
            sensitive=sensitive,
            model=self.judge,
            use_sensitive=self.use_sensitive,
            schema=schema,
            random_state=self.random_state,
        )
        return self

    def _sample(self, **how: Any) -> pd.DataFrame:
        drawn: pd.DataFrame = self.generator_.sample(
            self.n_rows, random_state=self.random_state, **how
        )
        return drawn

    def predict_proba(self, X: pd.DataFrame, sensitive_features: Any = None) -> FloatArray:
        """Return the probability of each class, by the model of drawn rows."""
        rows = X if sensitive_features is None else _with_groups(X, sensitive_features)
        schema = self.generator_.codec_.schema
        known = schema.as_measured(rows)
        return self.judge_.probabilities(known, [text_of(name) for name in self.classes_])

    def predict(
        self, X: pd.DataFrame, sensitive_features: Any = None, random_state: RandomState = None
    ) -> Array:
        """Return the most probable class; nothing is drawn at random."""
        found: Array = self.classes_[self.predict_proba(X, sensitive_features).argmax(axis=1)]
        return found

    @property
    def needs_group_at_prediction_(self) -> bool:
        """Whether the model of drawn rows reads the group."""
        return self.use_sensitive

    @property
    def fitted_(self) -> FittedModel:
        """What it tells of itself, as classifiers do: claim and ledger are the generator's."""
        groups = list(self.generator_.conditions_.names[1:])
        return FittedModel(
            method=type(self.generator_).__name__,
            arguments={"budget": self.budget},
            classes=self.classes_,
            groups=encode_groups(self.rows_[groups]).names,
            columns=self.judge_.features.names,
            n_columns=len(self.judge_.features.names),
            guarantee=self.guarantee_,
            ledger=self.generator_.ledger_,
            kind=kind_of({"balance": self.balance, "use_sensitive": self.use_sensitive}),
            student=self.judge_.model,
        )

    def save(self, path: str | Path) -> Path:
        """Save the generator."""
        return self.generator_.save(path)

    def _made(self) -> TableSynthesizer:
        kind: Any = GENERATORS["tables", self.generator]
        made: TableSynthesizer = kind(
            neighbors=self.neighbors, noise=self.noise, random_state=self.random_state
        )
        return made

    def _spread(self) -> dict[str, Any]:
        """Return how rows are drawn, as ``sample`` takes it."""
        even = BALANCES[self.balance]
        if even is not None:
            return {"balance": even}
        told: dict[str, Any] = {"fairness": "both"}
        if self.balance == EVEN_RATES:
            told = {"fairness": self.fairness, "amount": self.amount}
        return {"shares": even_rates(self.generator_, random_state=self.random_state, **told)}

    def _private(
        self, X: pd.DataFrame, y: pd.Series[Any], sensitive_features: Any, unit_ids: Any = None
    ) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return one table of the private rows, and the roles of its columns."""
        frame = _with_groups(X, sensitive_features).assign(**{str(y.name): y})
        sensitive = [str(name) for name in pd.DataFrame(sensitive_features).columns]
        columns: dict[str, Any] = {"label": str(y.name), "sensitive": sensitive}
        if self.declared is not None:
            known = tuple(c for c in self.declared.columns if c.name in frame)
            columns["schema"] = Schema(columns=known)
        if unit_ids is not None:
            columns["unit"] = str(unit_ids.name)
            frame = frame.assign(**{columns["unit"]: unit_ids})
        return frame, columns


def kind_of(settings: Mapping[str, Any]) -> FairnessKind:
    """Return what brings groups together in a model of drawn rows."""
    given = {**OF_ROWS, **settings}
    if given["use_sensitive"]:
        return FairnessKind.DRAWN_ROWS_BY_GROUP
    return FairnessKind.NONE if given["balance"] == "none" else FairnessKind.DRAWN_ROWS


def spec_of(name: str) -> MethodSpec:
    """Return the record of a generator of tables, as methods have one."""
    kind = GENERATORS["tables", name]
    return MethodSpec(
        name=name,
        words=f"draws rows by {kind.words}, and trains a model on them",
        reads=(*BUDGET, "noise", "unit", "reference", *OF_ROWS),
        needs=("epsilon",),
        notions=HELD,
        kind=kind_of,
        private_groups=True,
        claim_holds=not kind.not_private,
        fixed={"generator": name},
        more=lambda settings, any_public: {
            part: settings[part] for part in (*OF_ROWS, "fairness") if part in settings
        },
        estimator=JudgedGenerator,
    )


def _with_groups(X: pd.DataFrame, groups: Any) -> pd.DataFrame:
    return X.assign(**{str(name): column for name, column in pd.DataFrame(groups).items()})
