"""What PFGuard compares fair sampling with, and what it adds to it: strata, its own rule, GOLD."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand.generators.aggregators import Aggregator
from evenhand.generators.budget_plan import SignalToNoise
from evenhand.generators.images.codec import EncodedImages
from evenhand.generators.images.teacher_gan import TeacherGAN, TeacherGANImages
from evenhand.generators.registry import register
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.generators.synthesizer import SamplingSynthesizer
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.pate_gan import PATEGANSynthesizer
from evenhand.generators.tables.private_table import KnownOfTable
from evenhand.generators.tables.teacher_critics import VotingCritics
from evenhand.generators.teacher_sums import SeveralTeachers
from evenhand.privacy import Guarantee
from evenhand.privacy.renyi import NEIGHBORS
from evenhand.teachers import by_position, by_unit
from evenhand.teachers.partition import Partition
from evenhand.typing import Array, BoolArray, IntArray

_REASON: Final = (
    "every teacher's minibatches are weighted by the group shares of all private records, so one "
    "record changes all teachers (the published sampling rule)"
)


class Stratified(TeacherGAN):
    """Every teacher holds one group, and each group has as many teachers; a base to mix in.

    The rival of fair sampling in PFGuard's Table 7, for every generator that teachers train: name
    it before that generator among the bases of a class.

    Privacy
    -------
    Sensitivity : a picture that is replaced by one of another group leaves one teacher and comes to
        another: twice that of the generator. A unit of several groups moves as many teachers; see
        ``most_moved``. Signal to noise is a quarter.
    """

    _n_strata: int = 1  # groups that have teachers of their own
    _n_moved: int = 1  # teachers that a neighbor can move

    @property
    def _n_answering(self) -> float:
        """Teachers asked about one generated picture: those of its group, if that is known."""
        return self.n_teachers / (self._n_strata if self.condition == "label+group" else 1)

    def _foresee(self, data: EncodedImages) -> None:
        neighbors = self._open(None if data.units is None else "unit_ids")
        self._n_strata = data.n_groups
        self._n_moved = most_moved(neighbors, data.n_groups, data.per_unit)
        super()._foresee(data)

    def _partition(self, data: EncodedImages, rng: np.random.Generator) -> Partition:
        return by_group(data.group, data.n_groups, self.n_teachers, units=data.units, rng=rng)

    def _charged(self, width: int) -> Aggregator:
        return SeveralTeachers(of_one=super()._charged(width), n_moved=self._n_moved)

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        # As if a neighbor moved one teacher, at a part of the budget: signal and noise are its own.
        return super()._snr(mu / self._n_moved, width)  # type: ignore[safe-super]  # to mix in


@register
class StratifiedTeacherGANImages(Stratified, TeacherGANImages):
    """``TeacherGANImages`` whose teachers hold one group each; see ``Stratified``."""

    method: ClassVar[str] = "teacher-gan-strata"
    words: ClassVar[str] = "noisy sums of the gradients of teachers of one group each"


@register
class GoldTeacherGANImages(TeacherGANImages):
    """``TeacherGANImages`` whose critics weigh generated pictures by how real they look.

    GOLD (Mo et al. 2019), inside each teacher: it costs nothing. See ``CriticTraining``.
    """

    method: ClassVar[str] = "teacher-gan-gold"
    words: ClassVar[str] = "noisy sums of the gradients of teachers, with GOLD"
    gold: ClassVar[bool] = True


@dataclass(eq=False, repr=False, kw_only=True)
class GlobalShares(SamplingSynthesizer):
    """Weigh by one over the shares of all private records: PFGuard's Equation 5; to mix in.

    Privacy
    -------
    None: one record moves the weights in every partition, so there is no guarantee, and the claim
    says so.
    """

    sampler: GroupBalancedSampler | None = field(default=None, init=False)

    def _ready_sampler(self, data: Any, *_: Any) -> GroupBalancedSampler:
        codes, n = data.balanced
        counts = np.bincount(_checks.codes("groups", codes, n), minlength=n).astype(np.float64)
        return GroupBalancedSampler(scope="noisy").with_shares_of(counts)

    def _restate(self, claim: Guarantee) -> Guarantee:
        return replace(super()._restate(claim), holds=False, reason=_REASON)


@register
@dataclass(eq=False, repr=False, kw_only=True)
class GlobalSharesTeacherGANImages(GlobalShares, TeacherGANImages):
    """``TeacherGANImages`` under the published sampling rule; see ``GlobalShares``."""

    method: ClassVar[str] = "teacher-gan-global-shares"
    words: ClassVar[str] = "gradients of teachers, sampled by the shares of all pictures"

    neighbors: str = field(default="replace one", init=False)


@register
@dataclass(eq=False, repr=False, kw_only=True)
class GlobalSharesPATEGANSynthesizer(GlobalShares, PATEGANSynthesizer):
    """``PATEGANSynthesizer`` under the published sampling rule; see ``GlobalShares``."""

    method: ClassVar[str] = "pate-gan-global-shares"
    words: ClassVar[str] = "votes of teachers, sampled by the shares of all records"


@register
class GoldPATEGANSynthesizer(PATEGANSynthesizer):
    """``PATEGANSynthesizer`` whose teachers weigh generated rows as GOLD does (Mo et al. 2019).

    Inside each teacher, so it costs nothing; see ``StackedCritics``.
    """

    method: ClassVar[str] = "pate-gan-gold"
    words: ClassVar[str] = "noisy votes of teachers on generated rows, with GOLD"
    gold: ClassVar[bool] = True


class StratifiedCritics(VotingCritics):
    """Teacher t judges rows of group ``t % n_groups`` only."""

    @property
    def half(self) -> float:
        """Half the number of teachers that judge a row."""
        return super().half / self.rows.conditions.n_groups

    def _judged(self, generated: IntArray) -> BoolArray:
        n_groups = self.rows.conditions.n_groups
        group = self.rows.groups_of(generated)
        stratum = np.arange(self.partition.n_teachers) % n_groups
        judged: BoolArray = stratum.reshape(-1, *(1,) * group.ndim) == group
        return judged


@register
class StratifiedPATEGANSynthesizer(PATEGANSynthesizer):
    """``PATEGANSynthesizer`` whose teachers serve one group each, to compare with.

    Privacy
    -------
    Neighbors : add or remove one record, or one unit of which one record is read: the record's own
        group says among which teachers a keyed hash chooses. For "replace one" two teachers would
        change: refused.
    """

    method: ClassVar[str] = "pate-gan-strata"
    words: ClassVar[str] = "noisy votes of teachers of one group each"
    critics: ClassVar[type[VotingCritics]] = StratifiedCritics

    def _foresee(self, known: KnownOfTable) -> None:
        super()._foresee(known)
        if self.neighbors == "replace one":
            raise ValueError(
                "strata goes with neighbors='add or remove one': a record that is replaced by one "
                "of another group leaves one teacher and comes to another."
            )
        if known.per_unit > 1:
            raise ValueError(
                "strata would send the records of one unit to teachers of several groups. Read one "
                "record per unit: per_unit=1."
            )
        if self.n_teachers is not None and known.n_groups is not None:
            _checks.at_least("n_teachers", self.n_teachers, known.n_groups)

    def _number(self) -> int:
        found, n_groups = super()._number(), self.conditions_.n_groups
        if self.n_teachers is not None:
            _checks.at_least("n_teachers", found, n_groups)
        return max(n_groups, found - found % n_groups)

    def _deal(
        self, data: EncodedTable, n_teachers: int, key: bytes | None, rng: np.random.Generator
    ) -> Partition:
        known = self.conditions_
        dealt = super()._deal(data, n_teachers // known.n_groups, key, rng)
        teacher = dealt.teacher * known.n_groups + known.groups()[data.condition]
        return replace(dealt, teacher=teacher, n_teachers=n_teachers)


def by_group(
    group: IntArray,
    n_groups: int,
    n_teachers: int,
    *,
    units: Array | None = None,
    rng: np.random.Generator,
) -> Partition:
    """Send every picture to a teacher of its own group; teacher t serves group ``t % n_groups``.

    Parameters
    ----------
    group : ndarray of int64, shape (n,)
        Private.
    n_groups, n_teachers : int
        Every group has as many teachers, whatever its size: so much is public. ``n_teachers`` is a
        multiple of ``n_groups``.
    units : ndarray, optional
        Whose picture it is.
    rng : Generator
        Deals the positions where there are no units.

    Privacy
    -------
    The teacher of a picture follows from its position, or a keyed hash of its unit, and from its
    own group, never from another picture. With units adding or removing one picture changes one
    teacher. By position the number of pictures is public, and one is replaced: by one of another
    group, so that *two* teachers change; see ``most_moved``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> deal = by_group(np.array([0, 1, 1, 0]), 2, 4, rng=rng)
    >>> (deal.teacher % 2).tolist()
    [0, 1, 1, 0]
    """
    _checks.codes("group", group, n_groups)
    if _checks.at_least("n_teachers", n_teachers, n_groups) % n_groups:
        fewer = n_teachers - n_teachers % n_groups
        raise ValueError(
            f"Each of {n_groups} groups has as many teachers: n_teachers must be a "
            f"multiple of {n_groups}, got n_teachers={n_teachers}. Use {fewer} or "
            f"{fewer + n_groups}."
        )
    each = n_teachers // n_groups
    dealt = by_position(len(group), each, rng) if units is None else by_unit(units, each)
    return Partition(
        teacher=dealt.teacher * n_groups + group,
        n_teachers=n_teachers,
        unit="picture at its position" if units is None else dealt.unit,
        neighbors="add or remove one",
        key=dealt.key,
    )


def most_moved(neighbors: str, n_groups: int, per_unit: int = 1) -> int:
    """Return how many teachers of strata a step between neighbors can change.

    A replaced picture leaves one group and comes to another: two. A unit that is added or removed
    has up to ``per_unit`` pictures, and those of one group sit with one teacher.

    Examples
    --------
    >>> most_moved("replace one", 2), most_moved("add or remove one", 2)
    (2, 1)
    """
    _checks.one_of("neighbors", neighbors, NEIGHBORS)
    return min(n_groups, 2 if neighbors == "replace one" else per_unit)
