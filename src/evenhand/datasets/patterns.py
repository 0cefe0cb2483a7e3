"""Text made up by a public pattern, such as C-00001: values of columns that are made anew."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final

import numpy as np

from evenhand.typing import Array, IntArray

ALPHABETS: Final[Mapping[str, str]] = {"#": string.digits, "?": string.ascii_uppercase}
"""What a place of a pattern is filled with."""

MADE: Final[Mapping[str, str]] = {
    "id": "*",
    "email": "person*@example.org",  # RFC 2606: nobody can own it
    "phone": "00999 ### ### ####",  # reserved by E.164: no such country
}
"""Kinds of a declaration that are made anew, and the pattern where none is given."""

_PLACE: Final = re.compile(r"[#?*]")
_PUNCTUATION: Final = re.compile(r"[ +().\-/]")
_MOST: Final = 2**62


@dataclass(frozen=True)
class Pattern:
    """A text with places: ``#`` is a digit, ``?`` a letter, ``*`` a number without leading zeros.

    Examples
    --------
    >>> Pattern("C-##").made(np.array([1, 99])).tolist(), Pattern("C-##").capacity
    (['C-01', 'C-99'], 100)
    >>> Pattern("person*@example.org").made(np.array([1, 100])).tolist()
    ['person1@example.org', 'person100@example.org']
    """

    text: str
    """With one ``*``, or any number of ``#`` and ``?``."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"A pattern is a text, got {self.text!r}.")
        places = _PLACE.findall(self.text)
        if not places or ("*" in places and len(places) > 1):
            raise ValueError(
                f"A pattern has places for digits (#) and letters (?), such as 'C-#####', or one * "
                f"for a number of any length, got {self.text!r}."
            )

    @property
    def capacity(self) -> int:
        """How many different texts there are; beyond 2**62 that many."""
        if "*" in self.text:
            return _MOST
        return min(_MOST, math.prod(len(ALPHABETS[place]) for place in _PLACE.findall(self.text)))

    def require_room(self, n: int, name: str) -> None:
        """Raise ValueError if there are fewer than ``n`` different texts for a column."""
        if n > self.capacity:
            raise ValueError(
                f"The pattern {self.text!r} of column {name!r} makes {self.capacity:,} different "
                f"values, and {n:,} rows are asked for. Declare a longer one, such as "
                f"{self.text + '#' * (len(str(n)) - len(str(self.capacity)) + 1)!r}, or ask for "
                f"fewer rows."
            )

    def of_numbers(self) -> Pattern:
        """Return the pattern as a column of numbers has it: without blanks and punctuation.

        Raises
        ------
        ValueError
            If what is left is no number.
        """
        bare = _PUNCTUATION.sub("", self.text)
        if not re.fullmatch(r"[0-9#]*|[0-9]*\*", bare):
            raise ValueError(f"the pattern {self.text!r} makes no numbers")
        return Pattern(bare)

    def made(self, numbers: IntArray) -> Array:
        """Return the texts of these numbers, as objects; they repeat after ``capacity``."""
        pieces: list[Any] = []
        left = numbers % self.capacity
        for part in reversed(re.split(f"({_PLACE.pattern})", self.text)):
            if part == "*":
                pieces.append(left.astype(str).astype(object))
            elif part in ALPHABETS:
                letters = np.array(list(ALPHABETS[part]), dtype=object)
                pieces.append(letters[left % len(letters)])
                left = left // len(letters)
            elif part:
                pieces.append(part)
        texts: Array = np.full(len(numbers), "", dtype=object) + reduce(add, reversed(pieces))
        return texts
