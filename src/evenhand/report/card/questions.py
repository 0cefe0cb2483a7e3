"""Questions of a registry, a guideline or a rule: what the model's record answers, and what not."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Literal

from evenhand._checks import did_you_mean
from evenhand.report.card.record import Record

Words = str | float | tuple[str, ...]
Said = Callable[[Record], Words | None]
Kind = Literal["text", "list", "date"]

BLANK: Final = "TO BE FILLED IN"
NOT_COVERED: Final = "Not covered"
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


def unknown(record: Record) -> Words | None:
    """Answer nothing: the record of a model does not know."""
    return None


@dataclass(frozen=True)
class Question:
    """One question, and how the record of any model answers it."""

    key: str
    """Its name in ``card.toml``, and in what machines read."""
    asks: str
    """The question, for a reader."""
    _: KW_ONLY
    says: Said = unknown
    """The answer, or None where the record does not know."""
    yours: bool = False
    """Whether ``card.toml`` may answer. What follows from the model's record is not anybody's to
    say; an answer of yours to the rest stands above that of the record.
    """
    kind: Kind = "text"
    """What an answer of yours must be. One of "text", "list", "date"."""
    among: tuple[str, ...] = ()
    """The answers that there are; any where empty."""
    tier: int = 0
    """In the registry of deployments; 0 elsewhere."""
    needed: bool = False
    """Whether the registry refuses an entry without it."""

    def answered(self, record: Record, section: str) -> Answer:
        """Return the answer of ``card.toml``, else that of the record, else a blank."""
        yours = record.filled.get(section, {}).get(self.key)
        if yours is not None:
            return Answer(question=self, words=yours, source="card.toml")
        said = self.says(record)
        return Answer(question=self, words=said, source="blank" if said is None else "the model")

    def problem(self, value: Any) -> str | None:
        """Say what is wrong with an answer of ``card.toml``, if anything is."""
        if not self.yours:
            return "follows from the model's own record, so it is not to be filled in"
        if self.kind == "list":
            several = isinstance(value, list) and value
            if not several or not all(isinstance(v, str) and v.strip() for v in value):
                return f"must be a list of texts, got {value!r}"
        elif self.kind == "date":
            if not _is_date(value):
                return f"must be a date such as 2026-11-23, got {value!r}"
        elif not isinstance(value, str) or not value.strip():
            return f"must be a text, got {value!r}"
        elif self.among and value not in self.among:
            return f"must be one of {', '.join(self.among)}, got {value!r}"
        return None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A question with its answer and where that is from."""

    question: Question
    words: Words | None
    source: Literal["the model", "card.toml", "blank"]

    @property
    def text(self) -> str:
        """The answer for a reader; of a blank, what is to be done about it."""
        if self.words is None:
            return f"{BLANK}." if self.question.yours else f"{NOT_COVERED}."
        if isinstance(self.words, tuple):
            return "; ".join(self.words)
        return f"{self.words:g}" if isinstance(self.words, float) else self.words

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for machines."""
        words = list(self.words) if isinstance(self.words, tuple) else self.words
        return {"asks": self.question.asks, "answer": words, "from": self.source}


Section = tuple[Question, ...]


def answers(section: Section, name: str, record: Record) -> tuple[Answer, ...]:
    """Answer all questions of a section."""
    return tuple(question.answered(record, name) for question in section)


def read_filled(
    written: Mapping[str, Any], sections: Mapping[str, Section], where: str
) -> dict[str, dict[str, Words]]:
    """Return what ``card.toml`` fills in, checked: a table per section, a key per question.

    Raises
    ------
    ValueError
        Naming every key that no section knows, and every value that does not fit, at once.
    """
    flat = {
        name: dict(_flat(table)) if isinstance(table, Mapping) else table
        for name, table in written.items()
    }
    problems = list(_problems(flat, sections))
    if problems:
        raise ValueError(f"{where}: {'; '.join(problems)}.")
    return {
        name: {key: _plain(value) for key, value in table.items()} for name, table in flat.items()
    }


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a table holds by dotted keys: TOML reads ``basic.name`` as a table in a table."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _problems(written: Mapping[str, Any], sections: Mapping[str, Section]) -> Iterator[str]:
    for name, table in written.items():
        if name not in sections:
            near = did_you_mean(name, sections).rstrip("?")
            yield f"it does not know the table [{name}].{near}{'?' * bool(near)} " + (
                f"There are {', '.join(f'[{known}]' for known in sections)}"
            )
            continue
        if not isinstance(table, Mapping):
            yield f"{name} must be a table, such as [{name}] with keys below it"
            continue
        known = {question.key: question for question in sections[name]}
        yours = [key for key, question in known.items() if question.yours]
        for key, value in table.items():
            if key not in known:
                yield (
                    f"[{name}] does not know the key {key!r}.{did_you_mean(key, yours)} It takes "
                    f"{', '.join(yours)}"
                )
            elif (problem := known[key].problem(value)) is not None:
                yield f"[{name}] {key} {problem}"


def _plain(value: Any) -> Words:
    if isinstance(value, list):
        return tuple(value)
    return str(value).strip()


def _is_date(value: Any) -> bool:
    if isinstance(value, datetime.date):
        return not isinstance(value, datetime.datetime)
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return True
