"""The tables of a store of decisions."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

SCHEMA: Final = 1
"""Version of the tables below."""

TABLES: Final = sa.MetaData()

COUNTS: Final = sa.Table(
    "evenhand_serve",
    TABLES,
    sa.Column("only", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),  # rises with every change
    sa.Column("n_forced", sa.BigInteger, nullable=False),
    sa.Column("reject_option", sa.Text, nullable=False),  # its state, JSON
)
"""One row, which every writer locks: the counts."""

GROUPS: Final = sa.Table(
    "evenhand_groups",
    TABLES,
    sa.Column("only", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("made_of", sa.Text, nullable=False),  # JSON; stores of earlier versions have none
)
"""One row: what of a request's row makes its group. Groups of other columns may be called alike."""

DECISIONS: Final = sa.Table(
    "evenhand_decisions",
    TABLES,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("group_code", sa.Integer, nullable=False),  # -1 where the group is unknown
    sa.Column("said", sa.Integer, nullable=False),
    sa.Column("given", sa.Integer, nullable=False),
    sa.Column("verdict", sa.Integer, nullable=False),
    sa.Column("by_person", sa.Boolean, nullable=False),
    sa.Column("features", sa.Text),  # JSON, while a person may have to see it; else null
    sa.Column("asked_by", sa.Text, nullable=False),
    sa.Column("asked_at", sa.Double, nullable=False),
)
OPEN: Final = sa.and_(
    DECISIONS.c.given == -1, DECISIONS.c.by_person == sa.false(), DECISIONS.c.group_code >= 0
)
"""Which decisions wait for a person."""

sa.Index("evenhand_decisions_open", DECISIONS.c.id, sqlite_where=OPEN, postgresql_where=OPEN)

REVIEWS: Final = sa.Table(
    "evenhand_reviews",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("decision", sa.BigInteger, sa.ForeignKey(DECISIONS.c.id), nullable=False, index=True),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("given_before", sa.Integer, nullable=False),
    sa.Column("given", sa.Integer, nullable=False),
    sa.Column("forced", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("gap_before", sa.Double, nullable=False),
    sa.Column("gap_after", sa.Double, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
)

KEYS: Final = sa.Table(
    "evenhand_idempotency_keys",
    TABLES,
    sa.Column("token", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("body_digest", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
)

KEYS_BY_AGE: Final = sa.Index("evenhand_idempotency_keys_by_age", KEYS.c.at)

TOKENS: Final = sa.Table(
    "evenhand_tokens",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("made_at", sa.Double, nullable=False),
)
