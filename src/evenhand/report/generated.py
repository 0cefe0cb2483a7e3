"""The report on a generator of tables or pictures: what it says as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from evenhand.datasets.findings import FOR_THE_CURATOR
from evenhand.generators.budget_plan import SignalToNoise
from evenhand.generators.evaluation import Evaluation
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.generators.synthesizer import Synthesizer
from evenhand.generators.tables.fidelity import Fidelity, PairFidelity, worst_pairs
from evenhand.generators.tables.membership import Membership
from evenhand.generators.tables.two_tables import TwoTableSynthesizer
from evenhand.privacy.trade_off import TradeOff
from evenhand.report.columns import ColumnView, column_views
from evenhand.report.page import Report, Section
from evenhand.report.spending import Spending
from evenhand.report.strips import Strip, strips

ROWS_SHOWN: Final = 5_000


class Words(NamedTuple):
    """What one kind of data is called on the page."""

    records: str
    """What is generated."""
    models: str
    """What is trained on them."""
    shown: str
    """What is shown of them; the anchor and the template of its section."""
    near: str
    """How near they are to real ones; the anchor and the template of its section."""


_ROWS: Final = Words("rows", "Models", "columns", "fidelity")
WORDS: Final[Mapping[str, Words]] = {
    "tables": _ROWS,
    "two tables": _ROWS,
    "images": Words("pictures", "Networks", "pictures", "distances"),
}
"""By the payload of a generator."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratorReport(Report):
    """What may be published of a fitted generator, and what was measured of what it generates.

    Privacy
    -------
    All of it but ``measured``, ``membership``, ``facts`` and the real side of ``columns`` and
    ``strips`` is released.
    """

    heading: ClassVar[str] = "Report on synthetic data"
    glance: ClassVar[str] = "generated/glance.html"
    for_the_curator: ClassVar[str] = FOR_THE_CURATOR

    words: Words
    snr: SignalToNoise
    """As predicted."""
    notes: tuple[str, ...]
    """What the user must know."""
    shares: tuple[tuple[str, float], ...]
    """Share of each combination of label and group, by the noisy counts."""
    columns: tuple[ColumnView, ...]
    """Of rows: every column, sampled without balance, beside the real one where test rows were
    given. Of two tables: those of the persons, with the number of their visits.
    """
    visits: tuple[ColumnView, ...]
    """Of two tables: those of the visits."""
    strips: tuple[Strip, ...]
    """Of pictures: some of each combination, beside real ones where test pictures were given."""
    measured: Any
    """Of rows or pictures, on real records: *not covered* by the guarantee."""
    membership: Membership | None = None
    """On private rows: for the curator alone."""

    @classmethod
    def of(
        cls,
        generator: Synthesizer,
        *,
        title: str | None = None,
        dataset: Mapping[str, object] | None = None,
        measured: Evaluation | None = None,
        test: Any = None,
        membership: Membership | None = None,
    ) -> GeneratorReport:
        """Gather the report of a fitted or loaded generator.

        Parameters
        ----------
        generator : Synthesizer
            Fitted, or read by ``evenhand.generators.load``.
        title : str, optional
        dataset : mapping, optional
            What to say about the data; printed as it is.
        measured : TableEvaluation or ImageEvaluation, optional
            What ``evaluate`` measured on real records.
        test : DataFrame, persons and visits, or ImageData, optional
            Real records that are shown beside the synthetic ones: they are then published.
        membership : Membership, optional
            What attacks found: the page is then for the curator alone.
        """
        if not isinstance(measured, Evaluation | None):
            raise TypeError(
                f"measured must be what evenhand.generators.evaluate returned, got "
                f"{type(measured).__name__}."
            )
        if not isinstance(membership, Membership | None):
            raise TypeError(
                f"membership must be what attack_membership(...).reveal_to_curator() gave, got "
                f"{type(membership).__name__}. The page is then for the curator alone."
            )
        fitted = generator.fitted_
        of_pictures = isinstance(generator, ImageSynthesizer)
        what = "pictures" if of_pictures else "data"
        columns, visits = ((), ()) if of_pictures else _columns(generator, test)
        return cls(
            title=title or f"Synthetic {what} by {fitted.name}",
            method=fitted.name,
            guarantee=fitted.guarantee,
            allowed=TradeOff.of(fitted.guarantee, fitted.ledger),
            spending=None if fitted.ledger is None else Spending.of(fitted.ledger.to_dict()),
            facts=tuple((str(k), str(v)) for k, v in (dataset or {}).items()),
            settings=tuple((k, repr(v)) for k, v in fitted.settings.items()),
            words=WORDS[fitted.payload],
            snr=fitted.snr,
            notes=fitted.notes,
            shares=tuple((str(name), float(share)) for name, share in fitted.shares.items()),
            columns=columns,
            visits=visits,
            strips=strips(generator, test) if isinstance(generator, ImageSynthesizer) else (),
            measured=measured,
            membership=membership,
        )

    @property
    def sections(self) -> tuple[Section, ...]:
        """What the page is made of; what was not measured is left out."""
        records, models, shown, near = self.words
        found: Any = self.measured
        nearness = None if found is None else getattr(found, near) or None
        utility = None if found is None else found.utility or None
        there = (
            (True, "claim", "The claim", "claim.html"),
            (self.real or None, "real", f"What reads real {records}", "generated/real.html"),
            (self.spending, "spending", "What was spent on what", "spending.html"),
            (True, shown, f"The {shown}", f"{records}/{shown}.html"),
            (True, "balance", "Labels and groups", f"{records}/balance.html"),
            (utility, "utility", f"{models} trained on these {records}", "generated/utility.html"),
            (nearness, near, f"How near the {shown} are", f"{records}/{near}.html"),
            (
                self.membership,
                "membership",
                "Membership inference, beside epsilon",
                "generated/membership.html",
            ),
            (True, "settings", "Settings", "settings.html"),
            (True, "use", f"Load and sample {records}", "generated/use.html"),
        )
        return tuple(Section(*named) for found, *named in there if found is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before using what was generated."""
        return (*super().warnings, *self.notes)

    @property
    def private(self) -> str:
        """Why nobody but the curator may read this page; empty where it may be passed on."""
        if self.membership is None:
            return ""
        return (
            "Numbers on this page were read from private rows, exactly and without noise: "
            "membership inference, and models that were trained on private rows. No claim covers "
            "them. Do not publish this page, and do not keep it beside what you publish, unless "
            "the private rows are public."
        )

    @property
    def real(self) -> tuple[tuple[str, str, str], ...]:
        """What on the page reads real records without noise: what, which records, for whom."""
        records, models, shown, near = self.words
        found = self.measured
        trained_on = {u.trained_on for u in found.utility} if found is not None else set()
        shown_real = [*(c.real for c in self.columns), *(s.real for s in self.strips)]
        beside = any(real is not None for real in shown_real)
        test, public = f"test {records}", f"not covered: to be published if these {records} may be"
        trained = f"{test}, and the {records} that these were trained on"
        private = f"private {records} and {test}"
        every = (
            (beside, f"The real side of the {shown}", test, public),
            (found, "Real shares of labels and groups, and how even they are", test, public),
            (trained_on, f"{models}: AUROC, accuracy and gaps", test, public),
            ("real" in trained_on, f"{models} trained on real {records}", trained, public),
            (found and getattr(found, near), f"How near the {shown} are", test, public),
            (self.membership, "Membership inference", private, "for the curator alone"),
        )
        return tuple((what, reads, whom) for there, what, reads, whom in every if there)

    @property
    def cells(self) -> tuple[tuple[str, float | None, float | None, float | None], ...]:
        """Each combination of label and group: its share as learnt; of rows, synthetic and real."""
        learnt = dict(self.shares)
        found = None if self.strips else self.measured
        made = {} if found is None else dict(found.balance.cells)
        real = {} if found is None else dict(found.real_balance.cells)
        names = dict.fromkeys([*learnt, *made, *real])
        return tuple((name, learnt.get(name), made.get(name), real.get(name)) for name in names)

    @property
    def tables(self) -> tuple[tuple[str, tuple[ColumnView, ...]], ...]:
        """The columns of each table that is drawn, by what its rows are."""
        if not self.visits:
            return (("rows", self.columns),)
        return (("persons", self.columns), ("visits", self.visits))

    @property
    def near(self) -> tuple[tuple[str, Fidelity, Sequence[PairFidelity]], ...]:
        """How near the columns of each table are, and the pairs that differ most."""
        found = [self.measured.fidelity, *([self.measured.visits] if self.visits else [])]
        return tuple(
            (records, of, worst_pairs(of))
            for (records, _), of in zip(self.tables, found, strict=True)
        )


def _columns(generator: Any, test: Any) -> tuple[tuple[ColumnView, ...], tuple[ColumnView, ...]]:
    """Return views of the columns of all rows; and, of two tables, of those of the visits."""
    codec = generator.codec_
    if not isinstance(generator, TwoTableSynthesizer):
        n = ROWS_SHOWN if test is None else min(len(test), ROWS_SHOWN)
        rows = generator.sample_learnt(n, random_state=0)
        return column_views(rows, test, codec.schema), ()
    n = ROWS_SHOWN if test is None else min(len(test[0]), ROWS_SHOWN)
    persons, visits = generator.joined(*generator.sample(n, balance=(), random_state=0))
    beside = (None, None) if test is None else generator.joined(*test)
    return (
        column_views(persons, beside[0], codec.persons.schema),
        column_views(visits.drop(columns=list(codec.visits.given)), beside[1], codec.visits.schema),
    )
