"""Votes that nobody sees: each owner adds its share of the noise, and only the sums travel on.

The aggregator plans a round from public numbers and pays for it (``plan_round``). Each owner checks
the plan against its own file of votes, charges an account of its own, draws its share of discrete
Gaussian noise, and hands counts plus share to a protocol that masks them (``noisy_share``;
``evenhand.owners.flower`` takes Flower's SecAgg+). What comes out is the sum, which is the noisy
histogram that is released (``NoisySums``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand.owners.digests import PublicRows
from evenhand.owners.vote_file import LABELS, OWNER, VoteFile, of_owners, parts_of_a_vote
from evenhand.privacy import Budget, Ledger, NoisyHistogram
from evenhand.privacy.noise import UnitNoise
from evenhand.privacy.shared_noise import OneShare, SharedNoise
from evenhand.teachers.partition import Neighbors
from evenhand.typing import IntArray
from evenhand.voting.shares import Shares, histogram_for

MASKED: Final = (
    "the masks of the sums hold, for an aggregator that follows their protocol and invents no owner"
)
"""What an owner cannot see behind masks, and the claim says."""

IN_ONE_PLACE: Final = "the one party that read all votes and drew all shares keeps both to itself"
"""The same where there are no masks."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """What every owner is told before it answers. Public."""

    n_owners: int
    """Owners that are asked."""
    n_colluding: int
    n_dropouts: int
    """``n_colluding`` and ``n_dropouts``: how many of them may side with the aggregator, and how
    many may not answer. An owner knows its own share of the noise: where owners get the model, let
    one or more collude.
    """
    n_teachers: int
    """Teachers of each owner, the same number for all."""
    sigma: float
    """Parameter of the noise that is charged for, in parts of a vote."""
    epsilon: float
    delta: float
    """``epsilon`` and ``delta``: what the round costs a unit."""
    classes: tuple[str, ...]
    public: PublicRows = field(repr=False)
    unit: str = OWNER
    neighbors: Neighbors = "replace one"
    answers: str = LABELS
    may_abstain: bool = False
    """``classes``, ``public``, ``unit``, ``neighbors``, ``answers`` and ``may_abstain``: as for
    ``VoteFile``.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str):
            raise TypeError(f"unit must be a text, got {self.unit!r}.")
        _checks.at_least("n_teachers", self.n_teachers, 1)
        _ = self.ledger(), self.histogram  # refuse what they cannot be made of

    @property
    def scale(self) -> int:
        """Parts of one vote."""
        return parts_of_a_vote(self.answers, self.may_abstain, len(self.classes))

    @property
    def moved(self) -> int:
        """Votes that one unit moves on a row."""
        return self.n_teachers if self.unit == OWNER else 1

    @property
    def moves(self) -> int:
        """By how many parts one unit moves one count."""
        return self.moved * self.scale

    @property
    def least_answers(self) -> int:
        """Owners that must answer: with fewer the noise is less than what is charged for."""
        return self.n_owners - self.n_dropouts

    @property
    def most_noise(self) -> float:
        """What the share of the noise of one owner does not pass, but once in 10^30."""
        noise = self.noise().noise
        assert isinstance(noise, SharedNoise)
        return 12 * noise.share(self.sigma)

    @property
    def histogram(self) -> NoisyHistogram:
        """What is released of each row."""
        return NoisyHistogram(sigma=self.sigma, n_classes=len(self.classes))

    def noise(self, kind: type[SharedNoise] = SharedNoise) -> UnitNoise:
        """Return the noise of the sum, or with ``OneShare`` that of one owner."""
        made = kind(self.n_owners, n_colluding=self.n_colluding, n_dropouts=self.n_dropouts)
        return UnitNoise(made, self.moves)

    def ledger(self, budget: Budget | None = None) -> Ledger:
        """Open an account of an owner; by default one that this round fills."""
        own = Budget(epsilon=self.epsilon, delta=self.delta) if budget is None else budget
        return Ledger(own, noise=self.noise(OneShare), unit=self.unit, neighbors=self.neighbors)

    def charge(self, ledger: Ledger) -> None:
        """Charge the round in full, and never refund it: the noise is drawn elsewhere."""
        uses = {self.histogram: self.public.n_rows}
        with ledger.reserve(uses, purpose="sums of votes, with noise of the owners") as grant:
            grant.drawn_elsewhere(self.histogram, len(self.classes))

    def paid(self) -> Ledger:
        """Return a ledger of its own that this round fills: for its claim, once it was paid for."""
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        made = Ledger(budget, noise=self.noise(), unit=self.unit, neighbors=self.neighbors)
        self.charge(made)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self) | {"classes": list(self.classes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Round:
        """Read what ``to_dict`` wrote."""
        rest = dict(values)
        public = PublicRows(**rest.pop("public"))
        return cls(**(rest | {"classes": tuple(rest["classes"]), "public": public}))


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisySums:
    """What the aggregator holds of a round: noisy counts, and nothing of any owner. Public."""

    round: Round
    sums: IntArray = field(repr=False)
    """Counts of all owners with the shares of all; of two classes, those of the last. Shape
    (n_rows, n_noised).
    """
    n_answered: int
    """Owners whose votes and shares are in the sums."""
    ledger: Ledger
    """Paid for them before anybody was asked."""
    kept_by: str = MASKED
    """What keeps the shares of single owners from the aggregator, in words for a claim."""

    def __post_init__(self) -> None:
        plan = self.round
        if not plan.least_answers <= self.n_answered <= plan.n_owners:
            raise ValueError(
                f"{self.n_answered} of {plan.n_owners} owners answered, and the noise protects "
                f"from {plan.least_answers} on: at most {plan.n_dropouts} may drop out. Nothing of "
                f"this round may be used. Plan another with more n_dropouts."
            )
        wanted = (plan.public.n_rows, plan.histogram.n_noised)
        if np.shape(self.sums) != wanted:
            raise ValueError(f"sums must have shape {wanted}, got {np.shape(self.sums)}.")

    @property
    def shares(self) -> Shares:
        """The sums as noisy shares of the votes, with the noise that they have."""
        plan = self.round
        n = self.n_answered * plan.n_teachers * plan.scale
        counts = self.sums.astype(np.float64)
        if len(plan.classes) == 2:
            counts = np.hstack([n - counts, counts])
        share = SharedNoise(
            plan.n_owners, n_colluding=plan.n_colluding, n_dropouts=plan.n_dropouts
        ).share(plan.sigma)
        variance = np.full(len(counts), self.n_answered * share**2 / n**2)
        return Shares(shares=counts / n, variance=variance, n_asked=len(counts), groups=None)

    # What a fit asks of votes, whoever holds them.

    @property
    def public(self) -> PublicRows:
        """Rows that were voted on."""
        return self.round.public

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes, in their natural order."""
        return self.round.classes

    @property
    def unit(self) -> str:
        """Whom the claim is about."""
        return self.round.unit

    @property
    def neighbors(self) -> Neighbors:
        """Which change of the data."""
        return self.round.neighbors

    @property
    def moved(self) -> int:
        """Votes that one unit moves on a row."""
        return self.round.moved

    @property
    def n_teachers(self) -> int:
        """Teachers whose votes are in the sums."""
        return self.n_answered * self.round.n_teachers

    @property
    def said(self) -> str:
        """Who voted, in words for a claim."""
        plan = self.round
        return (
            f"that {self.n_answered} of {plan.n_owners} owners answered, with {plan.n_teachers} "
            f"{'teachers' if plan.n_teachers > 1 else 'teacher'} each"
        )

    @property
    def vouched_for(self) -> tuple[str, ...]:
        """Who is trusted with what, in words for a claim."""
        plan = self.round
        noise = self.round.noise().noise
        assert isinstance(noise, SharedNoise)
        return (
            *of_owners(plan.unit, plan.moved),
            f"nobody holds votes without noise, if {self.kept_by} and at least "
            f"{noise.n_honest} owners drew their share honestly: at most {plan.n_colluding} of "
            f"{plan.n_owners} may side with the aggregator, and at most {plan.n_dropouts} not "
            f"answer; that makes the noise {noise.extra:.2f} times what is charged for; an owner "
            f"that kept its share and reads what is released counts as siding with it",
        )


def plan_round(
    budget: Budget,
    *,
    n_owners: int,
    public: PublicRows,
    classes: Iterable[str],
    n_teachers: int = 1,
    n_colluding: int = 0,
    n_dropouts: int = 0,
    unit: str = OWNER,
    neighbors: Neighbors = "replace one",
    answers: str = LABELS,
    may_abstain: bool = False,
    account: Ledger | None = None,
) -> tuple[Round, Ledger]:
    """Plan a round from public numbers, and pay for it: before anybody is asked.

    Returns
    -------
    Round, Ledger
        What owners are told, and the ledger that is charged with all of it.

    Raises
    ------
    BudgetExceeded
        If the account does not cover the round.
    ValueError
        For shares of the noise that are too coarse, with the way out.
    """
    names = tuple(classes)
    draft = Round(
        n_owners=_checks.at_least("n_owners", n_owners, 1),
        n_colluding=n_colluding,
        n_dropouts=n_dropouts,
        n_teachers=n_teachers,
        sigma=1.0,
        epsilon=budget.epsilon,
        delta=budget.delta,
        classes=names,
        public=public,
        unit=unit,
        neighbors=neighbors,
        answers=answers,
        may_abstain=may_abstain,
    )
    if account is None:
        ledger = Ledger(budget, noise=draft.noise(), unit=unit, neighbors=neighbors)
    else:
        account.require(unit, neighbors, "Open another account.")
        ledger = account.run(budget, purpose="a round of noisy sums", noise=draft.noise())
    left = ledger.remaining * (1 - 1e-9)
    histogram = histogram_for(ledger, public.n_rows, len(names), left)
    planned = Round(**(vars(draft) | {"sigma": histogram.sigma}))
    planned.charge(ledger)
    return planned, ledger


def noisy_share(file: VoteFile, plan: Round, account: Ledger) -> IntArray:
    """Return what one owner hands to the masks: its counts, plus its share of the noise.

    Parameters
    ----------
    file : VoteFile
        The owner's votes.
    plan : Round
        As the aggregator told it.
    account : Ledger
        The owner's own (``plan.ledger``): charged before the share is drawn.

    Raises
    ------
    ValueError
        If the plan is not about these votes: rows, classes, unit, number of teachers.
    BudgetExceeded
        If the account does not cover the round: somebody asked before.

    Privacy
    -------
    What is returned is protected by one share alone, and is for a protocol that sums it with others
    before anybody reads it.
    """
    wrong = [
        file.public.differences(plan.public) and "it is about other public rows",
        file.classes != plan.classes and "it is about other classes",
        (file.unit, file.neighbors) != (plan.unit, plan.neighbors) and "it protects another unit",
        file.n_teachers != plan.n_teachers and f"it expects {plan.n_teachers} teachers",
        file.scale != plan.scale and "it expects votes of another kind",
    ]
    if said := "; ".join(words for words in wrong if words):
        raise ValueError(f"The round does not fit the votes of {file.owner!r}: {said}.")
    noise = account.noise
    if repr(noise) != repr(plan.noise(OneShare)):
        raise ValueError(
            f"The account draws {noise!r}, and this round needs {plan.noise(OneShare)!r}. Open it "
            f"with plan.ledger()."
        )
    counts = file.parts.sum(axis=0)[:, -plan.histogram.n_noised :]
    with account.reserve({plan.histogram: len(counts)}, purpose="a share of the noise") as grant:
        drawn: IntArray = counts + grant.draw(plan.histogram, len(plan.classes))
    return drawn


def in_one_place(files: Iterable[VoteFile], plan: Round, ledger: Ledger) -> NoisySums:
    """Sum the noisy shares of owners without masks: for tests, and where one party is trusted."""
    shares = [noisy_share(file, plan, plan.ledger()) for file in files]
    total: Any = np.sum(shares, axis=0)
    return NoisySums(
        round=plan, sums=total, n_answered=len(shares), ledger=ledger, kept_by=IN_ONE_PLACE
    )
