"""TwoTableSynthesizer: persons and their visits, two tables with one key, under one claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._random import as_generator
from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable, some
from evenhand.datasets.patterns import MADE
from evenhand.datasets.schema import ColumnSchema
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise, under
from evenhand.generators.memory import require_memory
from evenhand.generators.payload import Progress
from evenhand.generators.registry import GENERATORS, names_of, register
from evenhand.generators.synthesizer import Synthesizer
from evenhand.generators.tables.evaluation import evaluate_rows
from evenhand.generators.tables.linked_tables import (
    NUMBER,
    PERSONS,
    VISITS,
    LinkedCodec,
    LinkedTables,
    about,
    link,
)
from evenhand.generators.tables.marginal import MarginalSynthesizer
from evenhand.generators.tables.person_levels import ALIKE, ALIKE_SHARE, PersonLevels
from evenhand.generators.tables.records import as_roles
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.generators.tables.visits_evaluation import TwoTableEvaluation
from evenhand.privacy import Budget, Guarantee
from evenhand.privacy.ledger_store import Store
from evenhand.privacy.noise import Noise
from evenhand.teachers.partition import chosen_records
from evenhand.typing import Array, BoolArray, FloatArray, IntArray, RandomState


@register
@dataclass(eq=False, repr=False, kw_only=True)
class TwoTableSynthesizer(Synthesizer):
    """Draw persons and their visits: a parent and a child table (one to many), for each person.

    The number of visits is a column of the persons. A person is drawn with it, and then as many
    visits, given the person's label and groups, and levels of the person in columns in which visits
    of one person are alike; see ``PersonLevels``.

    Parameters
    ----------
    persons, visits : TableSynthesizer or mapping
        How each table is learnt; a mapping names ``method`` and its settings.
    visits_share : float
        Part of ``mu**2`` that the visits cost, in (0, 1), with how alike those of one person are;
        the rest is for the persons, with the numbers of their visits.
    **others
        ``neighbors``, ``noise`` and ``random_state``, see ``Synthesizer``; those of both tables.

    Attributes
    ----------
    persons_, visits_ : TableSynthesizer
        As they were learnt, for reports and measurements. The claim of each is that of the whole.
    levels_ : PersonLevels
        How alike visits of one person are, where a ``MarginalSynthesizer`` learns the visits.

    Privacy
    -------
    Neighbors : add or remove one person, with all its visits.
    Sensitivity : that of each table's method; a person is one row of the persons, and at most
        ``most`` of the visits (noise on these grows in proportion). Which ones is decided by a
        keyed hash of its own id (``chosen_records``); label and groups of a visit are those of its
        own person. How alike its visits are is one bounded row, however many they are.
    Cost : one Gaussian plan for both tables, charged before the first draw; its parts sum to the
        budget. Where categories are named, each table sets a part of delta aside, and the releases
        speak at what both leave: at most all of delta together.

    Notes
    -----
    Kept are the persons, the distribution of the number of visits given the other columns of the
    persons, as far as their method keeps pairs, the visits given label, group and what is
    carried, and how alike two visits of one person are in each column, numbers as far as bins tell.
    Not kept is an order of visits, and what links visits to other columns of their persons. More
    visits than ``most`` count as ``most``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"id": range(5000), "sex": rng.choice(["F", "M"], 5000)})
    >>> people["ill"] = rng.choice(["no", "yes"], 5000)
    >>> n = np.where(people["ill"] == "yes", 3, 1)
    >>> seen = pd.DataFrame({"id": np.repeat(people["id"], n), "ward": "A"})
    >>> made = TwoTableSynthesizer(random_state=0).fit(
    ...     people, seen, key="id", label="ill", sensitive="sex", most=4,
    ...     schema=Schema.declared({"sex": ["F", "M"], "ill": ["no", "yes"]}),
    ...     budget=Budget(epsilon=4.0, delta=1e-6),
    ... )
    >>> persons, visits = made.sample(1000, random_state=0)
    >>> int((~visits["id"].isin(persons["id"])).sum())
    0
    >>> (visits.merge(persons)["ill"].value_counts() / 500).round().astype(int).to_dict()
    {'yes': 3, 'no': 1}
    """

    payload: ClassVar[str] = "two tables"
    fewer_numbers: ClassVar[str] = TableSynthesizer.fewer_numbers
    method: ClassVar[str] = "two-table"
    words: ClassVar[str] = "a table of persons and one of their visits, each by a method of tables"
    codec_type: ClassVar[type[LinkedCodec]] = LinkedCodec

    persons_: TableSynthesizer = field(init=False)
    visits_: TableSynthesizer = field(init=False)
    levels_: PersonLevels = field(init=False)

    persons: TableSynthesizer = field(default_factory=MarginalSynthesizer)
    visits: TableSynthesizer = field(default_factory=MarginalSynthesizer)
    visits_share: float = 0.5

    def __post_init__(self) -> None:
        self.persons, self.visits = _learner(self.persons), _learner(self.visits)

    def fit(
        self,
        persons: pd.DataFrame,
        visits: pd.DataFrame,
        *,
        key: str,
        label: str,
        sensitive: str | Sequence[str],
        budget: Budget,
        most: int = 10,
        carry: Sequence[str] = (),
        schema: Schema | None = None,
        visits_schema: Schema | None = None,
        keep: Sequence[str] = (),
        visits_keep: Sequence[str] = (),
        unit_name: str = "person",
        store: Store | None = None,
        account: str = "default",
        progress: Progress | None = None,
    ) -> Self:
        """Learn from private persons and their visits.

        All that can be known to be wrong with either table is refused before anything is charged.

        Parameters
        ----------
        persons : DataFrame
            One row for each person, with label and sensitive columns; a person may have no visit.
        visits : DataFrame
            Each of a person that is there. It has neither label nor sensitive columns.
        key : str
            Column of both that says whose row it is. It is not learnt but made anew, by the pattern
            that the schema declares, or numbered from 1.
        label, sensitive, budget, store, account, progress
            As for ``TableSynthesizer``.
        most : int
            Visits of one person that are read at most, chosen at random. Noise on what is learnt of
            the visits grows in proportion.
        carry : sequence of str
            Columns of persons on which their visits depend, beside label and groups. Declared as
            categories, without gaps. Each makes more combinations, with fewer visits in each.
        schema, visits_schema : Schema, optional
            Of each table, as for ``TableSynthesizer``.
        keep, visits_keep : sequence of str
            Of each table, as for ``TableSynthesizer``.
        unit_name : str
            What a person is, in the claim.
        """
        self._open("a key")
        groups = as_roles(label, sensitive, key).sensitive
        roles = as_roles(label, (*groups, *carry), key)
        counted, linked = link(persons, visits, roles, most)
        _refuse_undeclared(schema, carry)
        linked = linked[chosen_records(linked[key], most)]
        number = ColumnSchema(name=NUMBER, kind="numeric", bounds=(0.0, float(most)), decimals=0)
        with about(PERSONS):
            known = _declared(schema, key, number)
            first = self.persons.read(
                counted,
                label=label,
                sensitive=groups,
                schema=known,
                unit=key,
                keep=(*keep, NUMBER),
            )
        with about(VISITS):
            known = _declared(visits_schema, key)
            second = self.visits.read(
                linked,
                label=label,
                sensitive=roles.sensitive,
                schema=known,
                unit=key,
                per_unit=most,
                keep=visits_keep,
            )
        second = replace(second, elsewhere=roles.conditions)
        return self._fit(
            LinkedTables(
                key=key,
                persons=first,
                visits=second,
                declared=schema is not None or visits_schema is not None,
            ),
            budget=budget,
            neighbors=self.neighbors,
            unit=unit_name,
            store=store,
            account=account,
            progress=progress,
        )

    def sample(
        self, n: int | None = None, *, random_state: RandomState = None, **how: Any
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Draw persons, and their visits; drawing costs no privacy.

        Parameters
        ----------
        n : int, optional
            Number of persons.
        random_state : int, Generator or None
            Seeds the rows.
        **how
            ``conditions``, ``balance``, ``shares`` and ``constraints`` on the persons, as for
            ``TableSynthesizer``; conditions may be of the column ``"number of visits"`` too.

        Returns
        -------
        persons, visits : DataFrame
            With the columns and dtypes that were learnt, and a fresh key: each visit is of a person
            that is drawn. The visits of a person follow each other.

        Raises
        ------
        ValueError
            As for ``TableSynthesizer``, and where a condition asks for visits of persons whose
            visits cannot be told from none.
        """
        self._require_fitted()
        rng = as_generator(random_state)
        persons = self.persons_.sample(n, random_state=rng, **how)
        number = persons.pop(NUMBER).to_numpy()
        table, codec = TypedTable.of(persons, "drawn persons"), self.codec_.persons
        condition = self.visits_.conditions_.code(
            [codec[name].cells(table[name]) for name in self.codec_.visits.given]
        )
        # Where no visit can be told from the noise there is nothing to draw any from.
        bare = np.isin(condition, self.visits_.unseen_)
        self._refuse_bare(condition[bare & _asks_for_visits(how.get("conditions"), len(persons))])
        number = np.where(bare, 0, number)
        lines = np.repeat(np.arange(len(persons)), number)
        words, each = self.codec_.visits.memory
        require_memory(f"{len(lines):,} {words}", len(lines) * each, "n, and sample several times")
        whose = lines if len(lines) else np.zeros(1, dtype=np.int64)  # of none one keeps the dtypes
        states = self._visits_of(condition, whose, rng)
        drawn = self.codec_.decode(states, condition[whose], rng)[: len(lines)]
        drawn[self.codec_.key] = persons[self.codec_.key].array.take(lines)
        return persons, drawn

    def _refuse_bare(self, condition: IntArray) -> None:
        """Raise for combinations of which visits are asked for, and none were learnt."""
        if not len(condition):
            return
        known, bare = self.visits_.conditions_, np.unique(condition)
        named = _values.first((known.words(int(c)) for c in bare), separator="; ")
        raise ValueError(
            f"The conditions ask for visits of every person by their {NUMBER!r}, and visits of "
            f"{named} cannot be told from none: there is nothing to draw them from. Ask for "
            f"0, or a range from 0, or in the conditions for other values of "
            f"{', '.join(known.names)}; a larger epsilon tells more visits from the noise."
        )

    def joined(
        self, persons: pd.DataFrame, visits: pd.DataFrame
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return two tables, drawn or real, as ``persons_`` and ``visits_`` have learnt such ones.

        Persons have the number of their visits, and visits label and groups of their persons.
        """
        self._require_fitted()
        label, *sensitive = self.codec_.visits.given
        roles = as_roles(label, sensitive, self.codec_.key)
        most = self.codec_.persons[NUMBER].schema.bounds[1]
        counted, linked = link(persons, visits, roles, int(most))
        return counted.drop(columns=roles.unit), linked.drop(columns=roles.unit)

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the states of visits, one for each of these combinations, those of the visits."""
        return self.visits_.states(conditions, rng)

    def _visits_of(self, condition: IntArray, whose: IntArray, rng: np.random.Generator) -> Any:
        """Draw the states of visits of persons, ``whose`` ascending, given the persons' levels."""
        if not self.levels_.looks:
            return self._draw(condition[whose], rng)
        learnt: Any = self.visits_
        levels = self.levels_.drawn(self._draw(condition, rng), rng)
        both = np.column_stack([condition, levels])
        events, at = np.unique(both, axis=0, return_inverse=True)
        # No two visits of one person share a stratum: spread evenly, they would differ.
        rank = np.arange(len(whose)) - np.searchsorted(whose, whose)

        def likelihoods(here: slice) -> Mapping[int, FloatArray]:
            return self.levels_.likelihoods(events[here, 1:])

        return learnt.states_given(events[:, 0], likelihoods, at.reshape(-1)[whose], rank, rng)

    def _tables(self) -> dict[str, TableSynthesizer]:
        return {PERSONS: self.persons_, VISITS: self.visits_}

    def _begin(self) -> dict[str, TableSynthesizer]:
        """Return new learners of both tables, which know their columns."""
        self.persons_, self.visits_ = copy(self.persons), copy(self.visits)
        self.persons_.codec_, self.visits_.codec_ = self.codec_.persons, self.codec_.visits
        self.persons_.conditions_ = self.conditions_
        self.visits_.conditions_ = self.codec_.visits.conditions
        return self._tables()

    def _shares(self) -> Mapping[str, float]:
        visits = _checks.open_unit("visits_share", self.visits_share)
        alike = visits * ALIKE_SHARE if isinstance(self.visits, MarginalSynthesizer) else 0.0
        parts = {PERSONS: (1.0 - visits, self.persons), VISITS: (visits - alike, self.visits)}
        of_tables = {
            name + purpose: part * share
            for name, (part, table) in parts.items()
            for purpose, share in table._shares().items()
        }
        return of_tables | ({VISITS + ALIKE: alike} if alike else {})

    def _check_types(self) -> None:
        super()._check_types()
        for name, table in ((PERSONS, self.persons), (VISITS, self.visits)):
            with about(name):
                table._check_types()

    def _foresee(self, known: Any) -> None:
        for name, table in ((PERSONS, self.persons), (VISITS, self.visits)):
            with about(name):
                table._foresee(known[name])

    def _learn(
        self, data: Any, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        for name, table in self._begin().items():
            table._learn(data[name], plan.part(name), rng.spawn(1)[0], progress)
        self.levels_ = PersonLevels.released(data[VISITS], self.visits_, plan.part(VISITS))
        self.counts_, self.counts_sigma_ = self.persons_.counts_, self.persons_.counts_sigma_
        name, worse = min(self._tables().items(), key=lambda item: item[1].snr_.value)
        self.snr_ = SignalToNoise(value=worse.snr_.value, formula=name + worse.snr_.formula)

    def _learn_under(self, *given: Any) -> None:
        super()._learn_under(*given)
        self._share_claim()

    def _share_claim(self) -> None:
        """Give both tables the claim of the whole: apart from each other they cost no less."""
        for table in self._tables().values():
            table.guarantee_, table.ledger_, table.snr_ = self.guarantee_, self.ledger_, self.snr_
            table.notes_, table.warnings_ = self.notes_, self.warnings_

    def _noise_source(self) -> Noise | None:
        usual = [table._noise_source() for table in (self.persons, self.visits)]
        return self.noise or usual[0] or usual[1]

    def _restate(self, claim: Guarantee) -> Guarantee:
        both: Guarantee = self.visits._restate(self.persons._restate(claim))
        return both

    def _remarks(self) -> tuple[str, ...]:
        said = [name + one for name, of in self._tables().items() for one in of._remarks()]
        if not len(self.levels_.sharpness):  # of another method's visits nothing is asked
            return tuple(said)
        each = zip(self.codec_.visits.features, self.levels_.sharpness, strict=False)
        named = ", ".join(f"{name!r} ({r * r:.2f})" for name, r in each if r)
        alike = f"alike in one person are {named}" if named else "no column is alike in one person"
        return (*said, VISITS + alike)

    def _thin(self) -> list[str]:
        known, unseen = self.visits_.conditions_, np.array(self.visits_.unseen_, dtype=np.int64)
        of_persons = self.conditions_.code(known.parts(unseen)[: len(self.conditions_.names)])
        bare = unseen[~np.isin(of_persons, self.unseen_)]
        if not len(bare):
            return super()._thin()
        named = "; ".join(known.words(int(c)) for c in bare[:5])
        return [
            *super()._thin(),
            f"visits of {len(bare)} combinations of {', '.join(known.names)} cannot be told from "
            f"none ({named}): persons of theirs are drawn without visits",
        ]

    def _arrays(self) -> dict[str, Array]:
        visits = {
            "counts": self.visits_.counts_,
            "sigma": np.array([self.visits_.counts_sigma_]),
            "sharpness": self.levels_.sharpness,
        }
        learnt = {
            name + key: array
            for name, table in self._tables().items()
            for key, array in table._arrays().items()
        }
        return {**learnt, **visits}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        tables = self._begin()
        if arrays["counts"].shape != (self.visits_.conditions_.n,):
            raise ValueError("the visits are not counted by label and group.")
        self.persons_.counts_, self.persons_.counts_sigma_ = self.counts_, self.counts_sigma_
        self.visits_.counts_ = arrays["counts"]
        self.visits_.counts_sigma_ = float(arrays["sigma"][0])
        for name, table in tables.items():
            table._restore(under(arrays, name))
        self.levels_ = PersonLevels.of(arrays["sharpness"], self.visits_)
        self._share_claim()

    def _evaluate(self, synthetic: Any, test: Any, **options: Any) -> TwoTableEvaluation:
        """Measure the persons with the number of their visits, given as (persons, visits)."""
        train = options.pop("train", None)
        if train is not None:
            options["train"] = self.joined(*train)[0]
        first, real = self.joined(*synthetic)[0], self.joined(*test)
        plain = self.sample(len(test[0]), balance=(), random_state=options.get("random_state", 0))
        return TwoTableEvaluation.of(
            evaluate_rows(self.persons_, first, real[0], **options),
            real[1].set_axis(test[1][self.codec_.key]),
            self.joined(*plain)[1].set_axis(plain[1][self.codec_.key]),
            n_persons=len(test[0]),
            schema=self.codec_.visits.schema,
        )


def _asks_for_visits(conditions: Any, n: int) -> BoolArray:
    """Whether the conditions of each of n persons, which were met, rule out that it has none."""
    if conditions is None or NUMBER not in conditions:
        return np.zeros(n, dtype=np.bool_)
    asked = conditions[NUMBER]
    each = list(asked) if isinstance(conditions, pd.DataFrame) else [asked] * n
    lowest = [value[0] if isinstance(value, tuple) else value for value in each]
    return np.array([float(value) > 0 for value in lowest], dtype=np.bool_)


def _learner(given: Any) -> TableSynthesizer:
    """Return a generator of tables from itself, or from its method and settings."""
    if isinstance(given, Mapping):
        settings = dict(given)
        method = _checks.one_of("method", settings.pop("method", ""), names_of("tables"))
        given = GENERATORS["tables", method](**settings)
    if not isinstance(given, TableSynthesizer):
        raise TypeError(
            f"persons and visits are learnt by generators of tables, such as "
            f"MarginalSynthesizer(), got {given!r}."
        )
    if given.not_private:
        raise ValueError(f"{type(given).__name__} has no claim, and two tables are under one.")
    if given.noise is not None or given.random_state is not None:
        raise ValueError(
            f"noise and random_state are those of both tables: give them to TwoTableSynthesizer, "
            f"and leave them out of {type(given).__name__}."
        )
    if not isinstance(given, MarginalSynthesizer):
        return given
    if given.tilt:
        raise ValueError(
            "tilt=True tilts the labels of single rows, and here numbers of visits and what visits "
            "of one person share are drawn from the tree itself: leave tilt out."
        )
    return replace(given, tilt=False)


def _refuse_undeclared(schema: Schema | None, carry: Sequence[str]) -> None:
    """Refuse columns to carry that the persons' schema does not declare as categories."""
    columns = () if schema is None else schema.columns
    whole = [c.name for c in columns if c.categories and c.prefix is None and not c.missing]
    wrong = [name for name in carry if name not in whole]
    if wrong:
        raise ValueError(
            f"carry= names {some(wrong)}, which the schema of the persons must declare, as "
            f"categories without missing values."
        )


def _declared(schema: Schema | None, key: str, *more: ColumnSchema) -> Schema:
    """Return what is declared of a table, with a key that is made anew, and with ``more``."""
    known = {} if schema is None else {column.name: column for column in schema.columns}
    made = ColumnSchema(name=key, kind="made", pattern=MADE["id"])
    if known.setdefault(key, made).kind != "made":
        known[key] = made
    return Schema(columns=(*known.values(), *more))
