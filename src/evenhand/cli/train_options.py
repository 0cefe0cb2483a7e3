"""What the options of ``evenhand train`` come to together: whose groups are read, what is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand import _words
from evenhand._checks import one_of
from evenhand._notions import NOTIONS
from evenhand._roles import Roles
from evenhand.cli.train_flags import DEMOGRAPHIC_PARITY, TrainFlags
from evenhand.methods import method_named

if TYPE_CHECKING:
    from evenhand.estimators.spec import MethodSpec
    from evenhand.fairness.notion import Notion


@dataclass(frozen=True, kw_only=True)
class TrainOptions(TrainFlags):
    """What a run of ``evenhand train`` was asked to do."""

    @property
    def spec(self) -> MethodSpec:
        """The record of the method."""
        return method_named("--method", self.method, others=(_words.AUTO,))

    def beyond(self, known: MethodSpec) -> frozenset[str]:
        """Return what was given, but for a change that the method's claim is about anyway."""
        promised = known.promises("neighbors", self.neighbors)
        return self.given - ({"neighbors"} if promised else set())

    @property
    def notion(self) -> type[Notion]:
        """The class of the notion."""
        from evenhand.fairness.notions import notion_named

        if ":" not in self.fairness:
            one_of("--fairness", self.fairness, NOTIONS)
        return notion_named(self.fairness)

    @property
    def streams(self) -> bool:
        """Whether the private rows stream from files."""
        from evenhand.cli.tables import stream_of

        return not self.images and (
            stream_of(self.private, self.rows_per_teacher, self.scratch) is not None
        )

    @property
    def reads_pixels(self) -> bool:
        """Whether teachers read the pixels of pictures."""
        return self.images and self.extractor == "none"

    @property
    def teacher_kind(self) -> str:
        """What a teacher is."""
        chosen = self.reads_pixels and "teacher" not in self.given
        return _words.PIXEL_NETWORKS[0] if chosen else self.teacher

    @property
    def roles(self) -> Roles:
        """What the columns are for."""
        return Roles(
            label=self.label,
            sensitive=tuple(self.sensitive or ()),
            unit=self.unit,
            drop=tuple(self.drop or ()),
            keep=tuple(self.keep or ()),
        )

    @property
    def compared_with(self) -> str:
        """What a group is compared with."""
        return self.spec.reference or self.reference

    @property
    def draws_rows(self) -> bool:
        """Whether the rows that teachers are asked about are drawn from noisy counts."""
        given = self.public is not None or self.public_fraction is not None
        return self.spec.draws_rows and not given and not self.images

    @property
    def keeps_margin_after(self) -> bool:
        """Whether the margin is kept around the fitted model, by thresholds or a blind rule."""
        return self.group_thresholds or self.blind_rule

    @property
    def trains_within_margin(self) -> bool:
        """Whether the training itself keeps the margin; if it need not, what comes after does."""
        asked = self.margin is not None and not self.keeps_margin_after
        return self.spec.margin == "needed" or (self.spec.margin == "optional" and asked)

    @property
    def trains_by_groups(self) -> bool:
        """Whether the training itself tells groups apart."""
        return self.trains_within_margin or self.spec.margin == "weight"

    @property
    def trains_by_public_groups(self) -> bool:
        """Whether training reads the groups of the public rows, where there are some."""
        weighs = self.spec.margin == "weight"  # by shares that public rows hold for one notion
        own = self.spec.reads_public_groups(vars(self)) and not (
            weighs and self.fairness != DEMOGRAPHIC_PARITY
        )
        return own and self.trains_by_groups

    @property
    def reads_groups_of(self) -> tuple[str, ...]:
        """Whose groups are read: of the public rows, of the private rows.

        Where noisy counts can stand for the groups of public rows, these are read if known.
        """
        public = self.keeps_margin_after or self.spec.teachers or self.trains_by_public_groups
        public &= self.spec.protects == "record"
        private = (self.trains_by_groups or bool(self.score_counts)) and (
            self.check_drift or self.spec.reads_private_groups(vars(self))
        )
        spared = self.score_counts and self.confidence is None
        return ("public if known" if spared else "public",) * public + ("private",) * private
