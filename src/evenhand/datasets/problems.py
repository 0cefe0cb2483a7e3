"""What may be wrong with a column, kind by kind: what a value looks like, and what follows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

import numpy as np

from evenhand.typing import FloatArray, IntArray

MANY: Final = 50
"""A column with more categories than this is named."""

TOO_MANY: Final = 1000
"""Text with more different values is taken for an identifier, as ``Schema.of_public`` does."""

LEAST_ROWS: Final = 20
"""On fewer rows nothing is called an identifier."""

WORDS: Final = 4
"""A name has no more words than this."""

_DOUBT: Final = 20 * math.log(2)  # a coincidence has a probability of at most 2**-20
_NEARLY: Final = 0.9  # share of the different values that have the form in question
CODES: Final = 30
"""So many different numbers in text may well be codes: those of the PUMS have up to 24."""


class Problem(Enum):
    """Kinds of problem, the grave ones first.

    Each has ``words``, that follow the name of a column; ``stops``, whether ``train``,
    ``synthesize`` and ``Dataset.from_frame`` stop; ``then``, what they do; and ``declared``, how a
    schema has such a column in drawn rows without its values.
    """

    EMPTY = ("has no value at all", True, "stop: nothing can be learnt from it")
    OBJECTS = ("holds neither numbers nor text", True, "stop: it cannot be read")
    DATE = ("holds dates or times", True, "stop: only synthesize reads dates, by dtype or schema")
    DURATION = ("holds durations", True, "stop: write them as numbers, such as seconds or days")
    COMMA_NUMBER = ("holds numbers with a comma", True, "stop: each number would be a category")
    NUMBER_TEXT = ("holds numbers stored as text", True, "stop: each number would be a category")
    EMAIL = (
        "holds e-mail addresses",
        True,
        "stop: they name people; synthesize makes them anew, if declared",
        {"kind": "email"},
    )
    PHONE = (
        "holds phone numbers",
        True,
        "stop: they name people; synthesize makes them anew, if declared",
        {"kind": "phone"},
    )
    IDENTIFIER = (
        "looks like an identifier",
        True,
        "stop: it names records and says no more; synthesize makes ids anew, if declared",
        {"kind": "id"},
    )
    FREE_TEXT = (
        "holds free text",
        True,
        "stop: each text would be a category; write what matters in it as columns",
    )
    LABEL_COPY = ("is a copy of the label", True, "stop: a model would learn nothing else")
    OTHER_KIND = (
        "holds numbers in one table and text in the other",
        True,
        "stop: the tables do not match",
    )
    NOT_PUBLIC = ("is not in the public table", True, "stop: the tables do not match")
    REPEATED_ID = (
        "looks like the id of somebody with several records",
        False,
        "go on, and learn it: name it with --unit or --drop",
        {"kind": "id"},
    )
    POSTCODE = (
        "looks like a postcode",
        False,
        "go on, as with any numbers or text; synthesize learns its first characters, if declared",
        {"kind": "postcode", "prefix": 2},
    )
    MISSING_CODE = (
        "has a number far from all others that may stand for a missing value",
        False,
        "go on, and learn it as an amount: leave such fields empty in the file",
    )
    SPELLINGS = (
        "has categories that differ by case or blanks alone",
        False,
        "go on, and take each spelling as a category",
    )
    NEW_CATEGORIES = (
        "has categories that the public table lacks",
        False,
        "go on: train reads them as no category, synthesize as any other",
    )
    MANY_CATEGORIES = (
        f"has more than {MANY} categories",
        False,
        "go on: each is a feature (train), or rare ones become 'other' (synthesize)",
    )
    CONSTANT = ("has one value only", False, "go on: it says nothing")

    def __init__(
        self, words: str, stops: bool, then: str, declared: Mapping[str, object] | None = None
    ) -> None:
        self.words = words
        self.stops = stops
        self.then = then
        self.declared = declared

    @property
    def kind(self) -> str:
        """Name for programs, such as "label-copy"."""
        return self.name.lower().replace("_", "-")


_PLAIN = r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?"
_WITH_COMMA = (
    r"[+-]?\d+,\d+",  # 3,14
    r"[+-]?\d{1,3}([. '\u00a0\u2019]\d{3})+,\d+",  # 1.234,56
    r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?",  # 1,234.56
)
_DAY, _MONTH, _YEAR = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])", r"(1[89]|20|21)\d\d"
_NAMED = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TIME = r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?( ?[ap]m)?"
_SIGNED = r"[$€£]? ?({}) ?[%$€£]?"  # prices and shares are numbers, too

_NUMBER: Final = re.compile(_SIGNED.format(_PLAIN))
_COMMA: Final = re.compile(_SIGNED.format("|".join(_WITH_COMMA)))
_DATE: Final = re.compile(
    rf"({_YEAR}[-/.]{_MONTH}[-/.]{_DAY}"
    rf"|({_DAY}[-/.]{_MONTH}|{_MONTH}[-/.]{_DAY})[-/.](\d\d|{_YEAR})"
    rf"|({_DAY}[-. ]+)?{_NAMED}[-, ]+({_DAY},? )?{_YEAR})([T ].*)?|{_TIME}",
    re.IGNORECASE,
)
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")
_PHONE: Final = re.compile(
    r"(?!\d{5}-\d{4}$)(?=(\D*\d){7,15}\D*$)("  # ZIP+4 is none
    r"\+\d[\d ()./-]*"  # +49 30 123456
    r"|0\d{1,5}[ /.-][\d /.-]+"  # 030/1234567
    r"|(1[ .-])?\(?\d{3}\)?[ .-]{1,2}(\d{3}[ .-])?\d{4})"  # (212) 555-0123
)
_FORMS: Final = {
    Problem.DATE: _DATE,
    Problem.COMMA_NUMBER: _COMMA,
    Problem.EMAIL: _EMAIL,
    Problem.PHONE: _PHONE,
}
_CODE = re.compile(r"[+-]?0\d")  # "007" is a code: numbers are not written so
_ID = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|ssn|iban)$|#$|^(subject|patient|person|customer|client|user)$"
)
_NAMED_PHONE = re.compile(r"(^|[^a-z])(phone|tel|telephone|telefon|mobile|cell|fax)([^a-z]|$)")
_NAMED_POSTCODE = re.compile(
    r"(^|[^a-z])(zip|zip_?code|post_?code|postal_?code|plz|postleitzahl)([^a-z]|$)"
)
_MISSING = re.compile(r"-[789]|-?([789])\1+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def text_problem(texts: Sequence[str]) -> Problem | None:
    """Return what the different values of a text column look like, if they have a form.

    Examples
    --------
    >>> text_problem(["31.12.2020", "1.1.2021"]).kind
    'date'
    >>> text_problem(["1,5", "2", "3,75"]).kind, text_problem(["<=50K", ">50K"])
    ('comma-number', None)
    >>> text_problem(["ann@firm.com", "bob@home.net"]).kind
    'email'
    """
    enough = _NEARLY * len(texts)
    if sum(_DATE.fullmatch(text) is not None for text in texts) >= enough:
        return Problem.DATE
    commas = sum(_COMMA.fullmatch(text) is not None for text in texts)
    plain = sum(_NUMBER.fullmatch(text) is not None for text in texts)
    if commas and commas + plain >= enough:
        return Problem.COMMA_NUMBER
    coded = any(map(_CODE.match, texts))
    if plain > CODES and plain >= enough and not coded:
        return Problem.NUMBER_TEXT
    if sum(_EMAIL.fullmatch(text) is not None for text in texts) >= enough:
        return Problem.EMAIL
    if len(texts) > CODES and sum(_PHONE.fullmatch(text) is not None for text in texts) >= enough:
        return Problem.PHONE
    return None


def example_of(problem: Problem, texts: Sequence[str]) -> str:
    """Return the first value that has the form for which a text column has a problem.

    Examples
    --------
    >>> example_of(Problem.COMMA_NUMBER, ["31.5", "unknown", "1,200.50"])
    '1,200.50'
    """
    form = _FORMS.get(problem)
    return next(text for text in texts if form is None or form.fullmatch(text))


def first_that_is_no_number(texts: Sequence[str]) -> str | None:
    """Return the first value that keeps a column of numbers from being read as numbers."""
    return next((text for text in texts if not _NUMBER.fullmatch(text)), None)


def text_is_identifier(n_different: int, n_rows: int) -> bool:
    """Whether text with so many different values in so many rows names records.

    Examples
    --------
    >>> text_is_identifier(990, 1000), text_is_identifier(300, 1000)
    (True, False)
    """
    if n_rows < LEAST_ROWS:
        return False
    share = n_different / n_rows
    return n_different > TOO_MANY or share >= 0.95 or (n_different > MANY and share >= 0.5)


def unlike_text(texts: Sequence[str]) -> Problem:
    """Return what text that is nearly unique is: sentences, or names of records.

    Examples
    --------
    >>> unlike_text(["paid late, wants to move", "asked for more time, again"]).kind
    'free-text'
    >>> unlike_text(["Ann Li", "Ole van den Berg"]).kind
    'identifier'
    """
    wordy = sum(len(text.split()) > WORDS for text in texts)
    return Problem.FREE_TEXT if 2 * wordy >= len(texts) else Problem.IDENTIFIER


def numbers_are_identifier(values: FloatArray, name: str = "") -> bool:
    """Whether numbers, none of them missing, number the records.

    They do if all are whole and different, and either ascend or descend from row to row; or lie
    so close that independent numbers would repeat: n of them among R are all different with a
    probability of at most ``exp(-n (n - 1) / (2 R))``, whatever their distribution (the uniform
    one repeats least); or the name of the column says so.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> numbers_are_identifier(rng.permutation(1000).astype(float))
    True
    >>> numbers_are_identifier(rng.normal(size=1000))  # a measurement, all different
    False
    """
    n = len(values)
    if n < LEAST_ROWS or not np.isfinite(values).all() or (values != np.floor(values)).any():
        return False
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return True
    if len(np.unique(values)) < n:
        return False
    spread = float(values.max() - values.min()) + 1.0
    return n * (n - 1) / (2.0 * spread) >= _DOUBT or names_an_id(name)


def missing_codes(values: FloatArray) -> tuple[int, ...]:
    """Return the numbers that seem to stand for missing values.

    They are written in one digit, as -9 or 999, occur more than once, and lie farther from all
    others than these do from each other.

    Examples
    --------
    >>> missing_codes(np.array([120.5, 75.0, 171.0, -999.0, -999.0, 9999.0, 9999.0]))
    (-999, 9999)
    >>> missing_codes(np.array([18.0, 64.0, 99.0, 99.0]))  # an age
    ()
    """
    known, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    written = [_MISSING.fullmatch(f"{value:g}") is not None for value in known]
    coded = np.array(written, dtype=bool) & (counts > 1)
    others = known[~coded]
    if len(others) < 2:
        return ()
    spread = others[-1] - others[0]
    far = (known < others[0] - spread) | (known > others[-1] + spread)
    return tuple(int(value) for value in known[coded & far])


def names_an_id(name: str) -> bool:
    """Whether the name of a column says that it holds ids.

    Examples
    --------
    >>> [names_an_id(name) for name in ("customer_id", "PersonID", "subject#", "paid")]
    [True, True, True, False]
    """
    return _says(_ID, name)


def names_a_postcode(name: str) -> bool:
    """Whether the name of a column says that it holds postcodes.

    Examples
    --------
    >>> [names_a_postcode(name) for name in ("ZIP", "homePostcode", "zip_code", "zipper")]
    [True, True, True, False]
    """
    return _says(_NAMED_POSTCODE, name)


def names_phones(name: str) -> bool:
    """Whether the name of a column says that it holds phone numbers."""
    return _says(_NAMED_PHONE, name)


def numbers_are_phones(values: FloatArray) -> bool:
    """Whether numbers of a column that is named so are phone numbers, and not how many one has.

    Examples
    --------
    >>> numbers_are_phones(np.arange(1e9, 1e9 + 99)), numbers_are_phones(np.ones(9))
    (True, False)
    """
    if (values != np.floor(values)).any():
        return False
    return len(np.unique(values)) > CODES and float((values >= 1e6).mean()) >= _NEARLY


def _says(word: re.Pattern[str], name: str) -> bool:
    return word.search(_HUMP.sub("_", name).lower()) is not None


def is_copy(values: IntArray, labels: IntArray) -> bool:
    """Whether each value goes with one class and each class with one value.

    ``values`` and ``labels`` are codes from 0 of the rows where the value is not missing. Of a few
    rows, or of one class nearly, it is not said: probability agrees with ``exp(-n H)``, H the
    entropy of the classes.
    """
    sizes = np.bincount(labels)
    shares = sizes[sizes > 0] / len(labels)
    if len(labels) * float(-(shares * np.log(shares)).sum()) < _DOUBT:
        return False
    pairs = np.unique(values * (int(labels.max()) + 1) + labels)
    return len(pairs) == len(np.unique(values)) == len(shares)


def spellings(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the categories that differ by case or blanks alone, each set of them together.

    Examples
    --------
    >>> spellings(["Private", "private ", "State", "pri vate"])
    (('Private', 'private '),)
    """
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(" ".join(text.casefold().split()), []).append(text)
    return tuple(tuple(written) for written in alike.values() if len(written) > 1)
