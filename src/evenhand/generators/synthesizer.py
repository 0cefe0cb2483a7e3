"""What every generator shares: fit under one claim, sample with exact conditions, save."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._random import as_generator
from evenhand._torch import require_torch
from evenhand.generators import saving
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise
from evenhand.generators.conditions import Conditions, Request
from evenhand.generators.evaluation import Evaluation
from evenhand.generators.fitted import FittedGenerator
from evenhand.generators.memory import require_memory
from evenhand.generators.payload import Payload, Progress
from evenhand.generators.rounding import Rounding
from evenhand.generators.sampler import BALANCED, GroupBalancedSampler
from evenhand.generators.settings import types_of
from evenhand.learners.nets.tensors import computing
from evenhand.privacy import Budget, Guarantee, Ledger
from evenhand.privacy.guarantee import delta_warning, no_guarantee
from evenhand.privacy.ledger_store import Store
from evenhand.privacy.noise import Noise
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray, RandomState

NOT_COVERED: Final = (
    "a choice of settings or of a generator made by looking at private data",
    "measurements on private or test rows",
)


LEAST_SEEN: Final = 2.0
"""Deviations from which on a noisy count of a label and group is told from none."""

_LEAST: Final = 1e-12  # of a chance: a part that is to be even stays one

OWN: Final = ("noise", "random_state", "device")
"""Arguments that are no part of what was learnt."""


class NotedWarning(UserWarning):
    """What a user must know about a fit; it stands in ``notes_`` as well."""


@dataclass(eq=False, repr=False, kw_only=True)
class Synthesizer(ABC):
    """A generator that is conditioned on label and group, under one claim.

    A payload (tables, images) says how records are read and given back. A method says how it spends
    the budget (``_shares``), learns (``_learn``), draws (``_draw``) and what of it is kept in a
    file (``_arrays``, ``_restore``). All else is here.

    Parameters
    ----------
    neighbors : str
        "add or remove one" (the number of records is then private) or "replace one".
    noise : Noise, optional
        Source of privacy noise; exact discrete noise if not given.
    random_state : int, Generator or None
        Seeds what is drawn besides privacy noise.
    """

    payload: ClassVar[str]
    method: ClassVar[str]
    words: ClassVar[str]
    """What it learns from, in a line of a help page."""
    fewer_numbers: ClassVar[str] = "learn fewer numbers"
    """What makes the noise on each number less, for a warning."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Extras that must be installed."""
    codec_type: ClassVar[Any]
    default_noise: ClassVar[type[Noise] | None] = None
    not_private: ClassVar[str] = ""
    """Why there is no guarantee, of a reference that has none."""

    guarantee_: Guarantee = field(init=False)
    """The claim."""
    ledger_: Any = field(init=False)
    """What was spent on what."""
    codec_: Any = field(init=False)
    """What the records look like."""
    conditions_: Conditions = field(init=False)
    """Label and groups."""
    counts_: FloatArray = field(init=False)
    """Noisy number of records of each combination of label and group. Shape (n_conditions,)."""
    counts_sigma_: float = field(init=False)
    """Standard deviation of the noise on each of them."""
    snr_: SignalToNoise = field(init=False)
    """As predicted."""
    notes_: tuple[str, ...] = field(init=False)
    """What was released beside the ledger's entries, and what the user must know."""
    warnings_: tuple[str, ...] = field(init=False)

    neighbors: str = "add or remove one"
    noise: Noise | None = None
    random_state: RandomState = None

    def sample(
        self,
        n: int | None = None,
        *,
        conditions: Mapping[str, object] | pd.DataFrame | None = None,
        balance: Sequence[str] = ("label", "sensitive"),
        shares: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> Any:
        """Draw records with exact counts.

        Parameters
        ----------
        n : int, optional
            Number of records. Not needed with a table of conditions.
        conditions : mapping or DataFrame, optional
            Values of the label and of sensitive columns that all records have; or a table of these
            columns with one line per record that is asked for.
        balance : sequence of str
            What is spread evenly, with counts that differ by at most 1: "label", "sensitive", both
            or none. The rest is drawn as often as it is, by the noisy counts. Of a generator that
            draws no groups both is the label alone, and "sensitive" alone is refused.
        shares : array of shape (n_conditions,), optional
            Share of each combination of label and group, instead of a balance; see
            ``even_rates``.
        random_state : int, Generator or None
            Seeds the records. Drawing costs no privacy.

        Returns
        -------
        DataFrame or ImageSample
            In random order; those of a table of conditions in its order. A table has the columns
            and dtypes that were learnt.
        """
        rng = as_generator(random_state)
        lines = len(conditions) if isinstance(conditions, pd.DataFrame) else 1
        return self._drawn(
            rng,
            n=n,
            conditions=conditions,
            balance=balance,
            shares=shares,
            rounding=Rounding(rng=rng, n_lines=max(lines, 1)),
        )

    def _drawn(self, rng: np.random.Generator, **asked: Any) -> Any:
        """Draw records of label and groups; ``asked`` as of ``_request``."""
        request = self._request(**asked)
        rows = request.rows(rng)
        made = self._draw(rows, rng)
        return self.codec_.decode(made, rows, rng, index=request.index)

    def save(
        self, path: str | Path, *, sign: str | Path | None = None, overwrite: bool = False
    ) -> Path:
        """Write a new folder of JSON and arrays; no code is in it.

        Parameters
        ----------
        path : path
        sign : path, optional
            PEM file of a private Ed25519 key, to sign the folder with.
        overwrite : bool
            Replace a generator that was saved there before. Anything else stays, and is an error.
        """
        return saving.save(self, Path(path), sign, overwrite=overwrite)

    @property
    def fitted_(self) -> FittedGenerator:
        """All that may be published of it, as one value."""
        self._require_fitted()
        return FittedGenerator(
            name=type(self).__name__,
            payload=self.payload,
            method=self.method,
            settings=self.settings(),
            codec=self.codec_,
            guarantee=self.guarantee_,
            ledger=self.ledger_,
            counts=self.counts_,
            counts_sigma=self.counts_sigma_,
            shares=self.shares_,
            snr=self.snr_,
            notes=self.notes_,
            warnings=self.warnings_,
        )

    @property
    def shares_(self) -> pd.Series[float]:
        """Share of each combination of label and group, by the noisy counts."""
        known = self._known_counts()
        names = [self.conditions_.words(c) for c in range(self.conditions_.n)]
        return pd.Series(known / known.sum(), index=names, name="share")

    @property
    def unseen_(self) -> tuple[int, ...]:
        """Positions of the combinations that may well be empty: none of theirs is drawn."""
        return tuple(self._unseen())

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor as plain values, less noise, seed and device."""
        names = [name for name in arguments_of(self) if name not in OWN]
        return {name: _plain(getattr(self, name)) for name in names}

    # What a payload and a method add

    @abstractmethod
    def _shares(self) -> Mapping[str, float]:
        """Purposes of the method with their parts; the parts sum to 1."""

    @abstractmethod
    def _learn(
        self, data: Any, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        """Learn, and set ``counts_``, ``counts_sigma_`` and ``snr_``."""

    @abstractmethod
    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> Any:
        """Draw what the codec decodes, one record per condition."""

    @abstractmethod
    def _arrays(self) -> dict[str, Array]:
        """Return what is learnt, as arrays by name."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what ``_arrays`` gave; ``codec_``, ``conditions_`` and counts are there."""

    @abstractmethod
    def _evaluate(self, synthetic: Any, test: Any, **options: Any) -> Evaluation:
        """Measure synthetic records on real ones; see ``evaluate``."""

    def _foresee(self, known: Any) -> None:  # noqa: B027  # not every method needs it
        """Stop before anything is spent if the run cannot end; see ``Payload.known``."""

    def _finish(self, progress: Progress) -> None:  # noqa: B027  # most have learnt all by then
        """Fit to what was released, which is free: the claim is made, and nothing private read."""

    def _remarks(self) -> tuple[str, ...]:
        """Return what a user should know about this fit, beside its warnings."""
        return ()

    # What is the same for all

    def _fit(
        self,
        payload: Payload,
        *,
        budget: Budget,
        neighbors: str,
        unit: str,
        store: Store | None,
        account: str,
        progress: Progress | None,
    ) -> Self:
        """Learn from private records that were read, under a ledger of its own."""
        ledger = self._ledger(
            payload, budget, neighbors=neighbors, unit=unit, store=store, account=account
        )
        self._learn_under(payload, ledger, budget, progress)
        for words in self.warnings_:
            warnings.warn(words, NotedWarning, stacklevel=3)
        return self

    def _ledger(self, payload: Payload, budget: Budget, **account: Any) -> Ledger:
        """Return the ledger of a fit."""
        _checks.of_type("budget", budget, Budget, "For example Budget(epsilon=1.0, delta=1e-6).")
        # What the payload needs of delta beside the ledger: the rest speaks at less.
        delta = budget.delta * payload.delta_aside[0]
        return Ledger(
            Budget(epsilon=budget.epsilon, delta=budget.delta - delta),
            noise=self._noise_source(),
            **account,
        )

    def _learn_under(
        self, payload: Payload, ledger: Ledger, budget: Budget, progress: Progress | None
    ) -> None:
        """Check, learn, and make the claim; what ``budget`` has of delta beside is the payload's.

        All that can be known to be wrong is refused before the first draw. What was fitted before
        stays until then, whole, and is gone afterwards.
        """
        progress = progress or (lambda stage, done, total: None)
        rng = as_generator(self.random_state)
        before, inner = dict(vars(self)), None
        vars(self).pop("guarantee_", None)
        self._look_at(payload)
        share, purpose = payload.delta_aside
        delta = budget.delta * share
        try:
            with self._plan(payload, ledger, delta).set_aside() as plan:
                inner = plan.ledger
                progress("records", 0, 1)
                # The first draw: from here on all stays charged.
                found = payload.encode(plan, delta)
                self.codec_, self.conditions_ = found.codec, found.codec.conditions
                progress("records", 1, 1)
                self._learn(found.data, plan, rng, progress)
        except BaseException:
            if inner is None or not inner.entries:
                vars(self).clear()
                vars(self).update(before)
            raise
        ledger = plan.account
        claim = self._claim(budget, ledger, payload.public)
        if share:
            accounting = f"{claim.accounting}, with {share:.0%} of delta for {purpose}"
            claim = replace(claim, delta=budget.delta, mu_squared=None, accounting=accounting)
        self.ledger_, self.guarantee_ = ledger, self._restate(claim)
        self.warnings_ = (
            *found.warnings,
            *filter(None, [self.snr_.warning(self.fewer_numbers)]),
            *self._thin(),
        )
        self.notes_ = (*found.notes, *self._remarks(), *self.warnings_)
        self._finish(progress)

    def _could_learn(self, payload: Payload, budget: Budget, neighbors: str) -> None:
        """Refuse what ``_fit`` would refuse before its first draw; what was fitted stays."""
        before = dict(vars(self))
        try:
            self._look_at(payload)
            ledger = self._ledger(payload, budget, neighbors=neighbors)
            self._plan(payload, ledger, budget.delta * payload.delta_aside[0])
        finally:
            vars(self).clear()
            vars(self).update(before)

    def _look_at(self, payload: Payload) -> None:
        """Take over what the records look like, where that is public."""
        if payload.public_codec is not None:
            self.codec_ = payload.public_codec
            self.conditions_ = self.codec_.conditions

    def _plan(self, payload: Payload, ledger: Ledger, delta: float) -> BudgetPlan:
        """Refuse all that can be known to be wrong; nothing is drawn, and nothing charged."""
        self._check_types()
        shares = payload.shares(self._shares(), ledger.budget.mu_squared)
        plan = BudgetPlan(ledger=ledger, shares=shares)
        payload.check(plan, delta)
        self._foresee(payload.known)
        return plan

    def _check_types(self) -> None:
        """Refuse settings of another type than the class says."""
        for name, known in types_of(type(self)).items():
            known.check(name, getattr(self, name))

    def _open(self, named: str | None) -> str:
        """Return the relation between neighbors; ``named`` is what a unit is, if there are any."""
        allowed = ("add or remove one", "replace one")
        neighbors = _checks.one_of("neighbors", self.neighbors, allowed)
        if named is not None and neighbors == "replace one":
            raise ValueError(
                f"With {named} the claim is for adding or removing one unit; replacing one "
                "is two such steps. Leave neighbors at 'add or remove one'."
            )
        return neighbors

    def _noise_source(self) -> Noise | None:
        """Return the noise of this method's ledger; None is the ledger's own default."""
        if self.noise is None and self.default_noise is not None:
            return self.default_noise()
        return self.noise

    def _claim(self, budget: Budget, ledger: Ledger, public: Sequence[str]) -> Guarantee:
        named = ("the number of records",) if ledger.neighbors == "replace one" else ()
        # The number of records is private under add or remove: the warning reads the noisy one.
        n = max(1, round(float(self.counts_.sum())))
        return ledger.guarantee(
            public=(*public, *named),
            not_covered=NOT_COVERED,
            warnings=tuple(filter(None, (delta_warning(budget.delta, n),))),
        )

    def _restate(self, claim: Guarantee) -> Guarantee:
        """Return the claim of this method: the ledger's, unless something takes it back."""
        if self.not_private:
            return no_guarantee(self.not_private, unit=claim.unit)
        return claim

    def _known_counts(self) -> FloatArray:
        """Noisy counts without what noise alone put below zero."""
        return np.maximum(self.counts_, 1e-9)

    def _unseen(self) -> list[int]:
        return np.flatnonzero(self.counts_ < LEAST_SEEN * self.counts_sigma_).tolist()

    def _thin(self) -> list[str]:
        unseen = self._unseen()
        if not unseen:
            return []
        named = "; ".join(self.conditions_.words(c) for c in unseen[:5])
        return [
            f"{len(unseen)} of {self.conditions_.n} combinations of label and group cannot be told "
            f"from empty ones ({named}): rows of theirs cannot be asked for"
        ]

    def _request(
        self,
        *,
        n: int | None,
        conditions: Mapping[str, object] | pd.DataFrame | None,
        balance: Sequence[str],
        shares: ArrayLike | None,
        rounding: Rounding,
        chances: ArrayLike = 1.0,
    ) -> Request:
        """Read what is asked for; a combination that was not seen is refused.

        ``chances`` says how often a record of each combination is one that is wanted.
        """
        self._require_fitted()
        if n is not None:
            n = _checks.at_least("n", n, 1)
            words, each = self.codec_.memory
            require_memory(f"{n:,} {words}", n * each, "n, and sample several times")
        request = Request.of(
            self.conditions_,
            self._known_counts() * np.maximum(chances, _LEAST),
            n=n,
            conditions=conditions,
            balance=balance,
            shares=shares,
            rounding=rounding,
        )
        for c in self._unseen():
            if request.probabilities[c] > 0 and not request.as_it_is:
                raise ValueError(
                    f"No record of {self.conditions_.words(c)} can be told from the noise (noisy "
                    f"count {self.counts_[c]:.0f}, noise {self.counts_sigma_:.0f}), so there is "
                    f"nothing to draw its rows from. Raise epsilon, join this group with another, "
                    f"ask for other rows with conditions= (--where), or for shares as they were "
                    f"learnt with balance=() (--balance none)."
                )
        return request

    @property
    def is_fitted_(self) -> bool:
        """Whether it has a claim, and may be saved."""
        return hasattr(self, "guarantee_")

    @property
    def unfinished_(self) -> bool:
        """Whether its fit was interrupted and can go on, see ``EmbeddedImages.resume``."""
        return False

    def _require_fitted(self) -> None:
        if not self.is_fitted_:
            raise ValueError(f"This {type(self).__name__} is not fitted. Call fit first.")

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({said})"


@dataclass(eq=False, repr=False, kw_only=True)
class SamplingSynthesizer(Synthesizer):
    """A generator that draws minibatches of private records.

    Parameters
    ----------
    sampler : GroupBalancedSampler or None
        How they are drawn: labels and groups evenly (default), or as they are (None). A mapping of
        its settings will do.
    """

    sampler: GroupBalancedSampler | None = BALANCED

    def __post_init__(self) -> None:
        self.sampler = GroupBalancedSampler.of(self.sampler)

    def _restate(self, claim: Guarantee) -> Guarantee:
        claim = super()._restate(claim)
        return claim if self.sampler is None or self.not_private else self.sampler.claim(claim)


@dataclass(eq=False, repr=False, kw_only=True)
class TorchSynthesizer(Synthesizer):
    """A generator whose networks are trained by PyTorch.

    Parameters
    ----------
    device : str
        Where they are trained. What is learnt, and what is saved, is on the processor.
    """

    needs: ClassVar[tuple[str, ...]] = ("torch",)
    numbers: ClassVar[tuple[str, ...]] = ()
    """Settings that are whole numbers of at least 1."""

    device: str = "cpu"

    def _foresee(self, known: Any) -> None:
        # Whatever can be wrong is found before anything is spent.
        require_torch(type(self).__name__)
        with computing(self.device):
            pass  # there is such a device
        self._check_settings()
        super()._foresee(known)

    def _check_settings(self) -> None:
        """Refuse settings that are out of range, whatever the records are."""
        for name in self.numbers:
            _checks.at_least(name, getattr(self, name), 1)


def arguments_of(kind: type[Synthesizer] | Synthesizer) -> tuple[str, ...]:
    """Return what the constructor takes, by name."""
    return tuple(argument.name for argument in fields(kind) if argument.init)


def _plain(value: Any) -> Any:
    """Return a setting as JSON knows it."""
    if isinstance(value, GroupBalancedSampler):
        return value.to_dict()
    if isinstance(value, Synthesizer):
        return {"method": value.method, **value.settings()}
    return list(value) if isinstance(value, tuple | list) else value
