"""TwoTableSynthesizer: persons and their visits, two tables with one key, under one claim."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, Self

import numpy as np
import pandas as pd

from evenhand import _checks, _values
from evenhand._random import as_generator
from evenhand._roles import Roles
from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable, some
from evenhand.datasets.patterns import MADE
from evenhand.datasets.schema import ColumnSchema
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise, under
from evenhand.generators.conditions import Conditions
from evenhand.generators.memory import require_memory
from evenhand.generators.payload import Encoding, Payload, Progress
from evenhand.generators.registry import GENERATORS, register
from evenhand.generators.synthesizer import Synthesizer
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.evaluation import TableEvaluation, evaluate_rows
from evenhand.generators.tables.marginal import MarginalSynthesizer
from evenhand.generators.tables.private_table import PrivateTable
from evenhand.generators.tables.records import as_roles
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Budget, Guarantee
from evenhand.privacy.ledger_store import Store
from evenhand.privacy.noise import Noise
from evenhand.teachers.partition import chosen_records
from evenhand.typing import Array, IntArray, RandomState

NUMBER: Final = "number of visits"
"""A column that the persons have while they are learnt and drawn."""

PERSONS, VISITS = "persons: ", "visits: "
"""What stands before all that is of one table: purposes, notes, arrays."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedCodec:
    """What both tables look like.

    Parameters
    ----------
    key : str
        Column by which they are linked.
    persons, visits : TableCodec
        Of the persons with the number of their visits, and of the visits with label and groups.
    """

    key: str
    persons: TableCodec
    visits: TableCodec

    @property
    def conditions(self) -> Conditions:
        """The combinations of label and sensitive values, which are those of the persons."""
        return self.persons.conditions

    @property
    def memory(self) -> tuple[str, float]:
        """Return what one record is, and the bytes that it needs; see ``TableCodec``."""
        (first, of_person), (second, of_visit) = self.persons.memory, self.visits.memory
        return f"persons ({first}) and visits ({second})", of_person + of_visit

    @property
    def schema(self) -> Schema:
        """What is public about the columns of the persons."""
        return self.persons.schema

    def decode(
        self, made: IntArray, conditions: IntArray, rng: np.random.Generator, index: Any = None
    ) -> pd.DataFrame:
        """Return visits from their states; arguments as for ``TableCodec.decode``."""
        rows = self.visits.complete(self.visits.decode(made, conditions, rng, index))
        return rows.drop(columns=list(self.visits.given))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "key": self.key,
            "persons": self.persons.to_dict(),
            "visits": self.visits.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LinkedCodec:
        """Read what ``to_dict`` wrote."""
        persons, visits = (TableCodec.from_dict(values[name]) for name in ("persons", "visits"))
        return cls(key=str(values["key"]), persons=persons, visits=visits)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedTables(Payload):
    """Private persons and their visits, each a payload of its own; see ``Payload``.

    Parameters
    ----------
    key : str
    persons, visits : PrivateTable
        The conditions of the visits are those of the persons, who name their categories.
    """

    key: str
    persons: PrivateTable
    visits: PrivateTable

    @property
    def tables(self) -> dict[str, PrivateTable]:
        """Both tables."""
        return {PERSONS: self.persons, VISITS: self.visits}

    @property
    def known(self) -> dict[str, Any]:
        """What a method may know of each table before the first release."""
        return {name: table.known for name, table in self.tables.items()}

    @property
    def public(self) -> tuple[str, ...]:
        """What the claim takes as public."""
        most = f"that at most {self.visits.records.per_unit} visits of a person are read"
        return tuple(dict.fromkeys((*self.persons.public, *self.visits.public, most)))

    @property
    def delta_aside(self) -> tuple[float, str]:
        """The parts of both tables: that neither names a category by accident, they add up."""
        parts = [table.delta_aside for table in self.tables.values()]
        return math.fsum(share for share, _ in parts), parts[0][1]

    def check(self, plan: BudgetPlan, delta: float) -> None:
        """Refuse columns that cannot be learnt, those of both tables at once."""
        _checks.together(
            partial(_check, name, table, plan.part(name), self._aside(delta, table))
            for name, table in self.tables.items()
        )

    def shares(self, of_method: Mapping[str, float]) -> dict[str, float]:
        """Return the public plan; of the part of each table its own columns are released first."""
        plan: dict[str, float] = {}
        for name, table in self.tables.items():
            own = under(of_method, name)
            whole = math.fsum(own.values())
            shares = table.shares({purpose: share / whole for purpose, share in own.items()})
            plan |= {name + purpose: whole * share for purpose, share in shares.items()}
        return plan

    def encode(self, plan: BudgetPlan, delta: float) -> Encoding:
        """Read the persons, and then the visits, by the categories of label and group so named."""
        persons = self.persons.encode(plan.part(PERSONS), self._aside(delta, self.persons))
        known = persons.codec
        named = [known[name].schema for name in known.given]
        visits = self.visits.encode(plan.part(VISITS), self._aside(delta, self.visits), named)
        found = {PERSONS: persons, VISITS: visits}
        said = {
            words: tuple(name + one for name, of in found.items() for one in getattr(of, words))
            for words in ("notes", "warnings", "doubts")
        }
        codec = LinkedCodec(key=self.key, persons=known, visits=visits.codec)
        return Encoding(codec=codec, data={name: of.data for name, of in found.items()}, **said)

    def _aside(self, delta: float, table: PrivateTable) -> float:
        """Return the part of what is set aside of delta that one table uses."""
        return delta * table.delta_aside[0] / (self.delta_aside[0] or 1.0)


@register
@dataclass(eq=False, repr=False, kw_only=True)
class TwoTableSynthesizer(Synthesizer):
    """Draw persons and their visits: a parent and a child table (one to many), for each person.

    The number of visits is a column of the persons. A person is drawn with it, and then as many
    visits, given the person's label and groups.

    Parameters
    ----------
    persons, visits : TableSynthesizer or mapping
        How each table is learnt; a mapping names ``method`` and its settings.
    visits_share : float
        Part of ``mu**2`` that the visits cost, in (0, 1); the rest is for the persons, with the
        numbers of their visits.
    **others
        ``neighbors``, ``noise`` and ``random_state``, see ``Synthesizer``; those of both tables.

    Attributes
    ----------
    persons_, visits_ : TableSynthesizer
        As they were learnt, for reports and measurements. The claim of each is that of the whole.

    Privacy
    -------
    Neighbors : add or remove one person, with all its visits.
    Sensitivity : that of each table's method; a person is one row of the persons, and at most
        ``most`` of the visits (noise on these grows in proportion). Which ones is decided by a
        keyed hash of its own id (``chosen_records``); label and groups of a visit are those of its
        own person.
    Cost : one Gaussian plan for both tables, charged before the first draw; its parts sum to the
        budget. Where categories are named, each table sets a part of delta aside, and the releases
        speak at what both leave: at most all of delta together.

    Notes
    -----
    Kept are the persons, the distribution of the number of visits given the other columns of the
    persons, as far as their method keeps pairs, and the visits given label and group. Not kept is
    what makes two visits of one person alike beyond that, an order of visits, and what links visits
    to other columns of their persons. A number of visits above ``most`` counts as ``most``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"id": range(5000), "sex": rng.choice(["F", "M"], 5000)})
    >>> people["ill"] = rng.choice(["no", "yes"], 5000)
    >>> n = np.where(people["ill"] == "yes", 3, 1)
    >>> seen = pd.DataFrame({"id": np.repeat(people["id"], n), "ward": "A"})
    >>> made = TwoTableSynthesizer(random_state=0).fit(
    ...     people, seen, key="id", label="ill", sensitive="sex", most=4,
    ...     budget=Budget(epsilon=4.0, delta=1e-6),
    ... )
    >>> persons, visits = made.sample(1000, random_state=0)
    >>> visits["id"].isin(persons["id"]).all(), visits["id"].value_counts().mode()[0]
    (np.True_, np.int64(3))
    """

    payload: ClassVar[str] = "two tables"
    method: ClassVar[str] = "two-table"
    words: ClassVar[str] = "a table of persons and one of their visits, each by a method of tables"
    codec_type: ClassVar[type[LinkedCodec]] = LinkedCodec

    persons_: TableSynthesizer = field(init=False)
    visits_: TableSynthesizer = field(init=False)

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
        schema, visits_schema : Schema, optional
            Of each table, as for ``TableSynthesizer``.
        keep, visits_keep : sequence of str
            Of each table, as for ``TableSynthesizer``.
        unit_name : str
            What a person is, in the claim.
        """
        payload = self.read(
            persons,
            visits,
            key=key,
            label=label,
            sensitive=sensitive,
            most=most,
            schema=schema,
            visits_schema=visits_schema,
            keep=keep,
            visits_keep=visits_keep,
        )
        return self._fit(
            payload,
            budget=budget,
            neighbors=self.neighbors,
            unit=unit_name,
            store=store,
            account=account,
            progress=progress,
        )

    def read(
        self,
        persons: pd.DataFrame,
        visits: pd.DataFrame,
        *,
        key: str,
        label: str,
        sensitive: str | Sequence[str],
        most: int = 10,
        schema: Schema | None = None,
        visits_schema: Schema | None = None,
        keep: Sequence[str] = (),
        visits_keep: Sequence[str] = (),
    ) -> LinkedTables:
        """Return the private rows of both tables, read and checked; arguments as for ``fit``."""
        self._open("a key")
        roles = as_roles(label, sensitive, key)
        given = TypedTable.of(persons, "table of persons")
        theirs = TypedTable.of(visits, "table of visits")
        at = _persons_of(given, theirs, roles, _checks.at_least("most", most, 1))
        number = ColumnSchema(name=NUMBER, kind="numeric", bounds=(0.0, float(most)), integer=True)
        counted, linked = _linked(given, theirs, roles, at, most)
        same: dict[str, Any] = {"label": label, "sensitive": sensitive, "unit": key}
        with _about(PERSONS):
            known = _declared(schema, given, key, number)
            first = self.persons.read(counted, schema=known, keep=(*keep, NUMBER), **same)
        with _about(VISITS):
            known = _declared(visits_schema, theirs, key)
            linked = linked[chosen_records(linked[key], most)]
            second = self.visits.read(linked, schema=known, keep=visits_keep, per_unit=most, **same)
        return LinkedTables(
            key=key, persons=first, visits=replace(second, elsewhere=roles.conditions)
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
        """
        self._require_fitted()
        rng = as_generator(random_state)
        persons = self.persons_.sample(n, random_state=rng, **how)
        number = persons.pop(NUMBER).to_numpy()
        table, codec = TypedTable.of(persons, "drawn persons"), self.codec_.persons
        condition = self.conditions_.code([codec[name].cells(table[name]) for name in codec.given])
        # Where no visit can be told from the noise there is nothing to draw any from.
        number = np.where(np.isin(condition, self.visits_.unseen_), 0, number)
        lines = np.repeat(np.arange(len(persons)), number)
        words, each = self.codec_.visits.memory
        require_memory(f"{len(lines):,} {words}", len(lines) * each, "n, and sample several times")
        given = condition[lines] if len(lines) else condition[:1]  # of none one keeps the dtypes
        drawn = self.codec_.decode(self._draw(given, rng), given, rng)[: len(lines)]
        drawn[self.codec_.key] = persons[self.codec_.key].array.take(lines)
        return persons, drawn

    def sample_learnt(self, n: int, *, random_state: RandomState = None) -> pd.DataFrame:
        """Draw persons as a report shows them; see ``TableSynthesizer.sample_learnt``."""
        return self.persons_.sample_learnt(n, random_state=random_state)

    def joined(
        self, persons: pd.DataFrame, visits: pd.DataFrame
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return two tables, drawn or real, as ``persons_`` and ``visits_`` have learnt such ones.

        Persons have the number of their visits, and visits label and groups of their persons.
        """
        self._require_fitted()
        label, *sensitive = self.conditions_.names
        roles = as_roles(label, sensitive, self.codec_.key)
        given = TypedTable.of(persons, "table of persons")
        theirs = TypedTable.of(visits, "table of visits")
        most = int(self.codec_.persons[NUMBER].schema.bounds[1])
        at = _persons_of(given, theirs, roles, most)
        counted, linked = _linked(given, theirs, roles, at, most)
        return counted.drop(columns=roles.unit), linked.drop(columns=roles.unit)

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the states of visits, one for each of these combinations of label and group."""
        return self.visits_.states(conditions, rng)

    def _tables(self) -> dict[str, TableSynthesizer]:
        return {PERSONS: self.persons_, VISITS: self.visits_}

    def _begin(self) -> dict[str, TableSynthesizer]:
        """Return new learners of both tables, which know their columns."""
        self.persons_, self.visits_ = copy(self.persons), copy(self.visits)
        self.persons_.codec_, self.visits_.codec_ = self.codec_.persons, self.codec_.visits
        self.persons_.conditions_ = self.visits_.conditions_ = self.conditions_
        return self._tables()

    def _shares(self) -> Mapping[str, float]:
        visits = _checks.open_unit("visits_share", self.visits_share)
        parts = {PERSONS: (1.0 - visits, self.persons), VISITS: (visits, self.visits)}
        return {
            name + purpose: part * share
            for name, (part, table) in parts.items()
            for purpose, share in table._shares().items()
        }

    def _foresee(self, known: Any) -> None:
        for name, table in ((PERSONS, self.persons), (VISITS, self.visits)):
            with _about(name):
                table._foresee(known[name])

    def _learn(
        self, data: Any, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        for name, table in self._begin().items():
            table._learn(data[name], plan.part(name), rng.spawn(1)[0], progress)
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
        return tuple(name + one for name, of in self._tables().items() for one in of._remarks())

    def _thin(self) -> list[str]:
        bare = [c for c in self.visits_.unseen_ if c not in self.unseen_]
        if not bare:
            return super()._thin()
        named = "; ".join(self.conditions_.words(c) for c in bare[:5])
        return [
            *super()._thin(),
            f"visits of {len(bare)} combinations of label and group cannot be told from none "
            f"({named}): persons of theirs are drawn without visits",
        ]

    def _arrays(self) -> dict[str, Array]:
        visits = {"counts": self.visits_.counts_, "sigma": np.array([self.visits_.counts_sigma_])}
        learnt = {
            name + key: array
            for name, table in self._tables().items()
            for key, array in table._arrays().items()
        }
        return {**learnt, **visits}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        tables = self._begin()
        if arrays["counts"].shape != self.counts_.shape:
            raise ValueError("the visits are not counted by label and group.")
        self.persons_.counts_, self.persons_.counts_sigma_ = self.counts_, self.counts_sigma_
        self.visits_.counts_ = arrays["counts"]
        self.visits_.counts_sigma_ = float(arrays["sigma"][0])
        for name, table in tables.items():
            table._restore(under(arrays, name))
        self._share_claim()

    def _evaluate(self, synthetic: Any, test: Any, **options: Any) -> TableEvaluation:
        """Measure the persons with the number of their visits, given as (persons, visits)."""
        train = options.pop("train", None)
        if train is not None:
            options["train"] = self.joined(*train)[0]
        first, real = self.joined(*synthetic)[0], self.joined(*test)[0]
        return evaluate_rows(self.persons_, first, real, **options)


def _learner(given: Any) -> TableSynthesizer:
    """Return a generator of tables from itself, or from its method and settings."""
    if isinstance(given, Mapping):
        settings = dict(given)
        given = GENERATORS["tables", settings.pop("method")](**settings)
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
    return given


def _persons_of(persons: TypedTable, visits: TypedTable, roles: Roles, most: int) -> IntArray:
    """Return whose each visit is, as a position among the persons.

    Raises
    ------
    ValueError
        For keys that are not there, missing, repeated or unknown, and columns that both tables or
        the generator would have twice.
    """
    key = str(roles.unit)
    _checks.together(partial(of.require, [key], "which key= names") for of in (persons, visits))
    _checks.together(
        [
            partial(persons[key].refuse_missing, "persons' key", _IDS),
            partial(visits[key].refuse_missing, "visits' key", _IDS),
            partial(_refuse_columns, persons, visits, roles),
        ]
    )
    known, theirs = (pd.Index(of[key].texts)[of[key].codes] for of in (persons, visits))
    twice, at = np.flatnonzero(known.duplicated()), np.zeros(0, dtype=np.int64)
    if twice.size:
        raise ValueError(
            f"Key {key!r} of the table of persons names a person a second time in "
            f"{_values.rows(twice)}. Give each person one row."
        )
    if not len(theirs):
        raise ValueError(
            "The table of visits has no rows, so there is nothing to learn about visits. Learn the "
            "persons alone, by a generator of one table."
        )
    at = known.get_indexer(theirs).astype(np.int64)
    strange = np.flatnonzero(at < 0)
    if strange.size:
        raise ValueError(
            f"Key {key!r} of the table of visits names nobody of the table of persons in "
            f"{_values.rows(strange)}. Leave these visits out, or add their persons."
        )
    return at


def _refuse_columns(persons: TypedTable, visits: TypedTable, roles: Roles) -> None:
    """Refuse columns that would be there twice, and keys of two dtypes."""
    key = str(roles.unit)
    persons.require(roles.conditions, "which label= or sensitive= names")
    twice = [name for name in roles.conditions if name in visits]
    if twice:
        raise ValueError(
            f"The table of visits has {some(twice)}, and a visit has the label and the groups of "
            f"its person. Leave out of the visits, or rename, what is another thing."
        )
    if NUMBER in persons:
        raise ValueError(f"The table of persons has a column {NUMBER!r}, which is counted anew.")
    if persons[key].dtype != visits[key].dtype:
        raise ValueError(
            f"Key {key!r} is {persons[key].dtype} in the table of persons and {visits[key].dtype} "
            f"in the table of visits. Convert one of them with astype."
        )


def _linked(
    persons: TypedTable, visits: TypedTable, roles: Roles, at: IntArray, most: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return persons with the number of their visits, and visits with label and groups."""
    number = np.bincount(at, minlength=len(persons)).clip(max=most)
    given = persons.frame[list(roles.conditions)].take(at).reset_index(drop=True)
    return persons.frame.assign(**{NUMBER: number}), visits.frame.reset_index(drop=True).join(given)


def _declared(schema: Schema | None, table: TypedTable, key: str, *more: ColumnSchema) -> Schema:
    """Return what is declared of a table, with a key that is made anew, and with ``more``."""
    known = {} if schema is None else {column.name: column for column in schema.columns}
    table.require(known, "which the schema names")
    if known.get(key) not in (schema.made if schema is not None else ()):
        known[key] = ColumnSchema(name=key, kind="made", pattern=MADE["id"])
    return Schema(columns=(*known.values(), *more))


def _check(name: str, table: PrivateTable, plan: BudgetPlan, delta: float) -> None:
    with _about(name):
        table.check(plan, delta)


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Say of an error which table it is about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if not _values.may_be_told(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}{error}") from _values.cause(error)


_IDS: Final = "Leave these rows out, or say whose they are."
