"""Where decisions are kept: SQLite in one file, or PostgreSQL between several servers."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from evenhand._database import Database, cause
from evenhand.fairness import RejectOption
from evenhand.fairness.gate.decisions import Verdict
from evenhand.fairness.gate.reject_option import StateOfAnotherModel
from evenhand.fairness.gate.review import Request
from evenhand.serve.tables import (
    COUNTS,
    DECISIONS,
    GROUPS,
    KEYS,
    KEYS_BY_AGE,
    OPEN,
    REVIEWS,
    SCHEMA,
    TABLES,
    TOKENS,
)
from evenhand.serve.tokens import Caller, Role, checked_name, digest, new_token

if TYPE_CHECKING:
    from evenhand.serve.cases import Reader

MOST_FORGOTTEN: Final = 5000
"""Idempotency keys that one turn lets go: it must not hold up who waits for an answer."""
_STATE: Final = "reject_option"


class StoreAway(ConnectionError):
    """The store cannot be read or written now. Nothing is answered without it."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The counts as they stand in the store."""

    version: int
    """Rises with every change."""
    n_forced: int
    """Decisions of people that were forced."""
    reject_option: str
    """State of the reject option, as JSON."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One decision as it stands."""

    id: int
    request: Request | None
    """As the reject option knows it; None where the group is unknown."""
    verdict: Verdict
    """What became of it without a person."""
    features: dict[str, Any] | None
    """What was asked about, while a person may have to see it."""
    asked_by: str
    asked_at: float
    """Seconds since 1970."""

    @property
    def open(self) -> bool:
        """Whether it waits for a person."""
        return self.request is not None and self.request.given < 0 and not self.request.by_person


class _Hot:
    """The statements of almost every turn, compiled once."""

    def __init__(self, database: Database) -> None:
        counts, keys = COUNTS.c, KEYS.c
        answered: Any = sa.literal_column(str(int(Verdict.ANSWERED)))
        number: sa.BindParameter[int] = sa.bindparam("number")
        token: sa.BindParameter[str] = sa.bindparam("token")
        key: sa.BindParameter[str] = sa.bindparam("key")
        self.lock = database.prepared(sa.select(counts.version, counts.n_forced).with_for_update())
        self.save = database.prepared(
            COUNTS.update().values(
                {name: sa.bindparam(f"new_{name}") for name in ("version", "n_forced", _STATE)}
            )
        )
        self.add = database.prepared(DECISIONS.insert())
        self.release = database.prepared(
            DECISIONS.update()
            .where(DECISIONS.c.id == number)
            .values(given=sa.bindparam("label"), verdict=answered, features=sa.null())
        )
        self.key = database.prepared(
            sa.select(keys.body_digest, keys.answer, keys.at).where(
                keys.token == token, keys.key == key
            )
        )
        self.forget = database.prepared(KEYS.delete().where(keys.token == token, keys.key == key))
        self.remember = database.prepared(KEYS.insert())


class Turn:
    """One writer's turn: the counts are locked until it ends, and all of it is kept or nothing.

    Parameters
    ----------
    version : int
        Of the counts, which rises with every change.
    n_forced : int
        Decisions of people that were forced.
    """

    def __init__(self, db: sa.Connection, hot: _Hot, *, version: int, n_forced: int) -> None:
        self._db, self._hot = db, hot
        self.version, self.n_forced = version, n_forced
        self._new: list[dict[str, Any]] = []  # decisions that one statement will keep

    def reject_option(self) -> Any:
        """Return the state of the reject option, in JSON's types."""
        return json.loads(str(self._db.scalar(sa.select(COUNTS.c.reject_option))))

    def answer_to(self, token: str, key: str, since: float) -> tuple[str, str] | None:
        """Return digest of the body, and the answer, that a key stands for since then."""
        row = self._hot.key(self._db, {"token": token, "key": key}).fetchone()
        if row is not None and row[2] < since:
            self._hot.forget(self._db, {"token": token, "key": key})
            return None
        return None if row is None else (str(row[0]), str(row[1]))

    def forget_keys(self, before: float) -> None:
        """Let go of the keys that are older, of at most ``MOST_FORGOTTEN`` of them."""
        name = sa.tuple_(KEYS.c.token, KEYS.c.key)
        old = sa.select(KEYS.c.token, KEYS.c.key).where(KEYS.c.at < before)
        old = old.order_by(KEYS.c.at).limit(MOST_FORGOTTEN)
        self._db.execute(KEYS.delete().where(name.in_(old)))

    def remember(self, token: str, key: str, body_digest: str, answer: str) -> None:
        """Keep the answer that a key stands for."""
        values = {"token": token, "key": key, "body_digest": body_digest}
        self._hot.remember(self._db, values | {"answer": answer, "at": time.time()})

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Keep new decisions."""
        self._new += rows

    def released(self, requests: Sequence[tuple[int, int]]) -> None:
        """Keep that earlier requests, by their numbers, are answered now."""
        if requests:
            self._flush()
            rows = [{"number": number, "label": label} for number, label in requests]
            self._hot.release(self._db, *rows)

    def decision(self, id_: int) -> Decision | None:
        """Return a decision as it stands."""
        self._flush()
        return _found(self._db, id_)

    def review(self, id_: int, after: Request, **facts: Any) -> None:
        """Keep what a person decided, by whom and when."""
        self._db.execute(
            DECISIONS.update()
            .filter_by(id=id_)
            .values(given=after.given, by_person=True, features=None)
        )
        self._db.execute(REVIEWS.insert().values(decision=id_, at=time.time(), **facts))

    def save(self, option: RejectOption, *, n_forced: int) -> int:
        """Keep the counts, which are what the store holds from now on; returns their version."""
        self._flush()
        state = json.dumps(option.to_dict(), separators=(",", ":"))
        made = {"version": self.version + 1, "n_forced": n_forced, _STATE: state}
        self._hot.save(self._db, {f"new_{name}": value for name, value in made.items()})
        return self.version + 1

    def _flush(self) -> None:
        if self._new:
            self._hot.add(self._db, *self._new)
            self._new = []


class DecisionStore:
    """Decisions, reviews, idempotency keys, tokens and counts.

    Parameters
    ----------
    where : str or Path
        A file for SQLite, or a SQLAlchemy URL of PostgreSQL. The tables are made if they are not
        there.

    Notes
    -----
    A decision and the counts that it changed are one transaction, which ends before the answer
    leaves. A server that is killed has then either kept both or neither; an answer may be counted
    that nobody got, never the other way round.
    """

    def __init__(self, where: str | Path) -> None:
        self._database = Database(
            where,
            what="A store of decisions",
            in_memory="Name a file that the counts can stay in.",
            keep_open=True,
        )
        self._hot, self._writer = _Hot(self._database), self._database.writer()
        with self.transaction("opened", write=True) as db:
            self._database.create(db, TABLES)
            KEYS_BY_AGE.create(db, checkfirst=True)  # stores of earlier versions have none
            found = db.execute(sa.select(COUNTS.c.schema_version)).scalar()
        if found not in (None, SCHEMA):
            raise ValueError(
                f"{self} is a store of version {found}, and this package writes {SCHEMA}. Serve it "
                f"with the version that wrote it, or name another store."
            )

    def begin(self, option: RejectOption, reader: Reader) -> None:
        """Go on from the counts in the store, or begin them.

        Raises
        ------
        StateOfAnotherModel
            If the store counts the answers of another model, under other settings, or of groups
            that are made of something else.
        """
        with self.transaction("opened", write=True) as db:
            self._database.in_turn(db)
            if db.execute(sa.select(COUNTS.c.only)).first() is None:
                db.execute(
                    COUNTS.insert().values(
                        only=1,
                        schema_version=SCHEMA,
                        version=1,
                        n_forced=0,
                        reject_option=json.dumps(option.to_dict()),
                    )
                )
        try:
            option.resume(json.loads(self.counts().reject_option))
        except StateOfAnotherModel as error:
            raise StateOfAnotherModel(
                f"{self} counts other labels: {error} A store of its own is named with --store."
            ) from None
        ours = json.dumps(reader.made_of, sort_keys=True)
        with self.transaction("opened", write=True) as db:
            self._database.in_turn(db)
            theirs = db.scalar(sa.select(GROUPS.c.made_of))
            if theirs is None:
                db.execute(GROUPS.insert().values(only=1, made_of=ours))
        if theirs not in (None, ours):
            raise StateOfAnotherModel(
                f"{self} counts groups that are made of {_made_of(theirs)}, not of "
                f"{_made_of(ours)}; groups of the same names are others. Name the columns that it "
                f"began with, or another store."
            )

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Lock the counts, and keep what is written in the block: all of it, or nothing."""
        with self._reached("written"), self._writer.transaction(self._hot.lock) as (db, counts):
            version, n_forced = counts
            yield Turn(db, self._hot, version=int(version), n_forced=int(n_forced))

    def counts(self) -> Counts:
        """Return the counts as they stand."""
        with self.transaction("read") as db:
            return _counts(db.execute(sa.select(COUNTS)).one())

    def version(self) -> int:
        """Return the number that rises with every change."""
        with self.transaction("read") as db:
            return int(db.scalar(sa.select(COUNTS.c.version)) or 0)

    def queue(
        self,
        *,
        after: int = -1,
        limit: int = 50,
        late: Collection[int] = (),
        withheld: bool = False,
    ) -> list[Decision]:
        """Return what waits, oldest first, beyond the number ``after``.

        Parameters
        ----------
        after, limit : int
        late : collection of int
            Groups whose first block was not given yet: their withheld labels wait for the model.
        withheld : bool
            Whether to return these in place of all that wait for a person.
        """
        query = sa.select(DECISIONS).where(_waits(late, withheld), DECISIONS.c.id > after)
        query = query.order_by(DECISIONS.c.id).limit(limit)
        with self.transaction("read") as db:
            return [_decision(row) for row in db.execute(query)]

    def n_open(self, *, late: Collection[int] = (), withheld: bool = False) -> int:
        """Return how many ``queue`` has in all."""
        query = sa.select(sa.func.count()).select_from(DECISIONS).where(_waits(late, withheld))
        with self.transaction("read") as db:
            return int(db.scalar(query) or 0)

    def decision(self, id_: int) -> Decision | None:
        """Return a decision as it stands, or None if there is none of that number."""
        with self.transaction("read") as db:
            return _found(db, id_)

    def reviews(self, id_: int) -> list[dict[str, Any]]:
        """Return what people decided about it, oldest first, with who and when."""
        query = sa.select(REVIEWS).filter_by(decision=id_).order_by(REVIEWS.c.id)
        with self.transaction("read") as db:
            return [dict(row) for row in db.execute(query).mappings()]

    def n_reviews(self) -> dict[str, int]:
        """Return how often people took each action."""
        query = sa.select(REVIEWS.c.action, sa.func.count()).group_by(REVIEWS.c.action)
        with self.transaction("read") as db:
            return {action: int(n) for action, n in db.execute(query)}

    def add_token(self, name: str, role: Role) -> str:
        """Make a token and return it; the store keeps its digest, and it cannot be shown again."""
        token = new_token()
        values = {"digest": digest(token), "name": checked_name(name), "role": str(role)}
        with self.transaction("written", write=True) as db:
            if db.execute(sa.select(TOKENS.c.name).filter_by(name=name)).first() is not None:
                raise ValueError(
                    f"There is a token of the name {name!r} already. Choose another name, or "
                    f"revoke that one first."
                )
            db.execute(TOKENS.insert().values(**values, made_at=time.time()))
        return token

    def revoke_token(self, name: str) -> None:
        """Take a token out of use."""
        with self.transaction("written", write=True) as db:
            gone = db.execute(TOKENS.delete().filter_by(name=name).returning(TOKENS.c.name)).all()
        if not gone:
            raise ValueError(f"There is no token of the name {name!r}.")

    def callers(self) -> dict[str, Caller]:
        """Return who may ask, by the digest of the token, in the order of their names."""
        query = sa.select(TOKENS).order_by(TOKENS.c.name)
        with self.transaction("read") as db:
            return {row.digest: Caller(row.name, Role(row.role)) for row in db.execute(query)}

    def close(self) -> None:
        """Let go of the database."""
        self._writer.close()
        self._database.close()

    @contextmanager
    def transaction(self, doing: str, *, write: bool = False) -> Iterator[sa.Connection]:
        """Run statements that happen whole or not at all.

        Raises
        ------
        StoreAway
            If the database cannot be reached, is locked for too long, or refuses to write.
        """
        with self._reached(doing), self._database.transaction(write=write) as db:
            yield db

    @contextmanager
    def _reached(self, doing: str) -> Iterator[None]:
        try:
            yield
        except self._database.errors as error:
            raise StoreAway(
                f"The decisions in {self} could not be {doing}: {cause(error)}. Nothing is "
                f"answered until it is back; what was kept before stands."
            ) from error

    def __str__(self) -> str:
        return str(self._database)

    def __repr__(self) -> str:
        return f"DecisionStore({str(self)!r})"


def _made_of(said: str) -> str:
    """Return what makes groups, in words."""
    found = json.loads(said)
    cut = f", by {json.dumps(found['grouping'])}" if found["grouping"] else ""
    return ", ".join(map(repr, found["columns"])) + cut


def _counts(row: sa.Row[Any]) -> Counts:
    return Counts(
        version=row.version,
        n_forced=row.n_forced,
        reject_option=row.reject_option,
    )


def _waits(late: Collection[int], withheld: bool) -> sa.ColumnElement[bool]:
    """Return which decisions wait for a person, or for the first block of a late group."""
    for_model = sa.and_(
        DECISIONS.c.verdict == int(Verdict.WITHHELD), DECISIONS.c.group_code.in_(late)
    )
    return sa.and_(OPEN, for_model if withheld else sa.not_(for_model))


def _found(db: sa.Connection, id_: int) -> Decision | None:
    row = db.execute(sa.select(DECISIONS).filter_by(id=id_)).first()
    return None if row is None else _decision(row)


def _decision(row: sa.Row[Any]) -> Decision:
    known = row.group_code >= 0
    return Decision(
        id=row.id,
        request=Request(
            number=row.id,
            group=row.group_code,
            said=row.said,
            given=row.given,
            by_person=row.by_person,
        )
        if known
        else None,
        verdict=Verdict(row.verdict),
        features=None if row.features is None else json.loads(row.features),
        asked_by=row.asked_by,
        asked_at=row.asked_at,
    )
