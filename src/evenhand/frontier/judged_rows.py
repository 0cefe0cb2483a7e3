"""A generator on a frontier: fitted, drawn from, and judged by a model of what it draws."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
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
from evenhand.frontier.generated import BY_JUDGE, Generated, GeneratedRows, TrainedJudge
from evenhand.frontier.run import Plain
from evenhand.generators.conditions import NO_GROUPS
from evenhand.generators.registry import GENERATORS
from evenhand.generators.synthesizer import arguments_of
from evenhand.generators.tables.even_rates import even_rates
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

SAMPLERS: Final = ("partition", "none")
"""How minibatches are drawn: labels and groups evenly by what a teacher's part holds, or as they
are."""

OF_ROWS: Final[Mapping[str, Any]] = {
    "balance": "label,sensitive",
    "amount": 1.0,
    "n_rows": 10_000,
    "neighbors": "add or remove one",
    "judge": GeneratedRows.judges[0],
    "use_sensitive": True,
    "sampler": SAMPLERS[0],
    "setting": "",
}
"""What a grid says of what is drawn, with the defaults; of pictures a judge is always named."""

OF_TABLES: Final = ("amount", "use_sensitive")
"""What of it is said of rows of a table alone."""

AS_LEARNT: Final = "the rows could not be spread as asked, and were drawn as learnt: {why}"

HELD: Final = ("demographic-parity", "equalized-odds")
"""Notions whose rates ``even_rates`` brings together."""


@dataclass(kw_only=True, eq=False)
class JudgedGenerator:
    """Fit a generator to private rows, draw from it, and train a public model on what is drawn.

    The same numbers as ``generator.fit``, ``generator.sample`` and ``evaluate`` by hand. Whether
    rows of a table or pictures are drawn is for the judge to say.

    Privacy
    -------
    Cost : ``budget``, charged by the generator's own fit. All after it is post-processing, until
        the model is measured on test rows: that is not covered.
    """

    generator: str
    """Name of a generator of tables, or of pictures."""
    budget: Budget
    balance: str = OF_ROWS["balance"]
    """One of ``BALANCES``."""
    fairness: str = HELD[0]
    """With ``"even-rates"``: the notion whose rates are brought together."""
    amount: float = OF_ROWS["amount"]
    """With ``"even-rates"``: how much of the way to go, in [0, 1]."""
    n_rows: int = OF_ROWS["n_rows"]
    """Rows, or pictures, to draw."""
    neighbors: str = OF_ROWS["neighbors"]
    """What the claim is about: "add or remove one", or "replace one" as with teachers."""
    sampler: str = OF_ROWS["sampler"]
    """Of generators that draw minibatches: one of ``SAMPLERS``."""
    n_teachers: int | None = None
    """Of generators that learn from teachers; by default the generator's own."""
    setting: str = OF_ROWS["setting"]
    """Further settings of the generator, as JSON."""
    judge: str = OF_ROWS["judge"]
    """The model that is trained on what is drawn, one of ``BY_JUDGE``."""
    use_sensitive: bool = OF_ROWS["use_sensitive"]
    """Whether it reads the sensitive columns, when trained and when asked; of rows alone."""
    declared: Schema | None = None
    """Public columns, label and groups included; what it leaves out is released from the budget."""
    unit: str = "person"
    """What a unit is called in the claim, where rows have one."""
    noise: Noise | None = None
    random_state: int = 0
    """Seeds what is drawn besides privacy noise, and the model."""

    generator_: Any = field(init=False)
    """A fitted ``Synthesizer``."""
    guarantee_: Guarantee = field(init=False)
    """The generator's; with a warning where rows could not be spread as asked, and were drawn as
    they were learnt.
    """
    rows_: Any = field(init=False)
    """What was drawn."""
    judge_: TrainedJudge = field(init=False)
    classes_: Array = field(init=False)

    def check(
        self, X: Any, y: pd.Series[Any], *, sensitive_features: Any, unit_ids: Any = None
    ) -> None:
        """Raise what can be known to be wrong before anything is spent."""
        n_classes = y.nunique()
        if BALANCES[self.balance] is None and n_classes != 2:
            raise ValueError(
                f"balance = {self.balance!r} moves the odds of two classes, and {y.name!r} has "
                f"{n_classes}. Take balance = 'label,sensitive', 'sensitive' or 'none'."
            )
        made = self._made()
        alone = self._kind.payload == "images" and made.condition == "label"
        if alone and self.balance == "sensitive":
            raise ValueError(f"balance = 'sensitive' {NO_GROUPS}")
        known, how = self._kind.fit_arguments(X, y, sensitive_features, unit_ids, self.declared)
        made.check(*known, budget=self.budget, **how)

    def fit(
        self, X: Any, y: pd.Series[Any], *, sensitive_features: Any, unit_ids: Any = None
    ) -> Self:
        """Fit the generator, draw rows, and train the model on them."""
        known, how = self._kind.fit_arguments(X, y, sensitive_features, unit_ids, self.declared)
        self.generator_ = self._made().fit(*known, **how, budget=self.budget, unit_name=self.unit)
        self.classes_ = np.unique(y.to_numpy())
        self.guarantee_ = self.generator_.guarantee_
        try:
            self.rows_ = self._sample(**self._spread())
        except ValueError as error:
            # It is paid for, and a run that is not kept would be fitted again, until noise is kind.
            self.guarantee_ = self.guarantee_.with_warning(AS_LEARNT.format(why=error))
            self.rows_ = self._sample(balance=())
        self.judge_ = self._kind.trained_judge(self.generator_, self.rows_)
        return self

    def _sample(self, **how: Any) -> Any:
        return self.generator_.sample(self.n_rows, random_state=self.random_state, **how)

    def predict_proba(self, X: Any, sensitive_features: Any = None) -> FloatArray:
        """Return the probability of each class, by the model of what was drawn."""
        asked = self._kind.judge_input(self.generator_, X, sensitive_features)
        return self.judge_.probabilities(asked, [text_of(name) for name in self.classes_])

    def group_shares(self, X: Any, y: Any, sensitive_features: Any) -> dict[str, dict[str, Plain]]:
        """Return the shares of groups that drawn pictures show to a classifier of real ones."""
        even = "sensitive" in (BALANCES[self.balance] or ())
        return self._kind.group_shares(self.rows_, X, y, sensitive_features, even=even)

    def predict(
        self, X: Any, sensitive_features: Any = None, random_state: RandomState = None
    ) -> Array:
        """Return the most probable class; nothing is drawn at random."""
        found: Array = self.classes_[self.predict_proba(X, sensitive_features).argmax(axis=1)]
        return found

    @property
    def needs_group_at_prediction_(self) -> bool:
        """Whether the model of drawn rows reads the group."""
        return self._fairness_kind.needs_group

    @property
    def _fairness_kind(self) -> FairnessKind:
        return spec_of(self.generator, self._kind.payload).kind_for(vars(self))

    @property
    def fitted_(self) -> FittedModel:
        """What it tells of itself, as classifiers do: claim and ledger are the generator's."""
        groups = self._kind.groups_of(self.generator_, self.rows_)
        columns = self._kind.columns(self.judge_)
        return FittedModel(
            method=type(self.generator_).__name__,
            arguments={"budget": self.budget},
            classes=self.classes_,
            groups=None if groups is None else encode_groups(groups).names,
            columns=columns,
            n_columns=len(columns),
            guarantee=self.guarantee_,
            ledger=self.generator_.ledger_,
            kind=self._fairness_kind,
            student=self.judge_.model,
        )

    def save(self, path: str | Path) -> Path:
        """Save the generator."""
        saved: Path = self.generator_.save(path)
        return saved

    @property
    def _kind(self) -> Generated:
        return BY_JUDGE[self.judge](
            judge=self.judge, use_sensitive=self.use_sensitive, random_state=self.random_state
        )

    def _made(self) -> Any:
        kind = GENERATORS[self._kind.payload, self.generator]
        said: dict[str, Any] = {"neighbors": self.neighbors}
        if self.sampler == "none":
            said["sampler"] = None
        if self.n_teachers is not None:
            said["n_teachers"] = self.n_teachers
        takes = arguments_of(kind)
        return kind(
            **{name: value for name, value in said.items() if name in takes},
            **json.loads(self.setting or "{}"),
            noise=self.noise,
            random_state=self.random_state,
        )

    def _spread(self) -> dict[str, Any]:
        """Return how rows are drawn, as ``sample`` takes it."""
        even = BALANCES[self.balance]
        if even is not None:
            return {"balance": even}
        told: dict[str, Any] = {"fairness": "both"}
        if self.balance == EVEN_RATES:
            told = {"fairness": self.fairness, "amount": self.amount}
        return {"shares": even_rates(self.generator_, random_state=self.random_state, **told)}


def kind_of(settings: Mapping[str, Any], *, sampled: bool) -> FairnessKind:
    """Return what brings groups together in a model of what was drawn.

    ``sampled`` says that the generator draws minibatches, by a sampler.
    """
    given = {**OF_ROWS, **settings}
    if given["use_sensitive"] and payload_of(given) == GeneratedRows.payload:
        return FairnessKind.DRAWN_ROWS_BY_GROUP
    natural = given["balance"] == "none" and not (sampled and given["sampler"] != "none")
    return FairnessKind.NONE if natural else FairnessKind.DRAWN_ROWS


def payload_of(settings: Mapping[str, Any]) -> str:
    """Return what is drawn, rows of a table or pictures: the judge says so."""
    return BY_JUDGE[settings.get("judge", OF_ROWS["judge"])].payload


def spec_of(name: str, payload: str) -> MethodSpec:
    """Return the record of a generator, as methods have one."""
    kind = GENERATORS[payload, name]
    takes = arguments_of(kind)
    left_out = [part for part in ("neighbors", "sampler") if part not in takes]
    of_rows = [part for part in OF_ROWS if part not in left_out]
    if payload != GeneratedRows.payload:
        of_rows = [part for part in of_rows if part not in OF_TABLES]
    teachers = [part for part in ("n_teachers",) if part in takes]
    what = "rows" if payload == GeneratedRows.payload else "pictures"
    return MethodSpec(
        name=name,
        words=f"draws {what} by {kind.words}, and trains a model on them",
        reads=(*BUDGET, "noise", "unit", "reference", *of_rows, *teachers),
        needs=("epsilon",),
        notions=HELD,
        kind=partial(kind_of, sampled="sampler" in takes),
        private_groups=True,
        neighbors="replace one" if "neighbors" in left_out else "",
        claim_holds=not kind.not_private,
        fixed={"generator": name},
        more=lambda settings, any_public: {
            part: settings[part] for part in (*OF_ROWS, "fairness") if part in settings
        },
        estimator=JudgedGenerator,
    )
