"""Whether a message quotes what stands in a private cell: decided here and nowhere else.

A message names the column, the row and the kind of what is wrong. It leaves this machine with logs,
tickets and screens, so the value itself, a label, a group, an id or an exact count of private rows
appears only where the curator asked for it: ``with evenhand.show_values():``, or ``--show-values``.
What is public (a declared schema, public rows, arguments) is quoted as it is, without this module.
"""

from __future__ import annotations

import dis
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evenhand.typing import IntArray

_HOME: Final = str(Path(__file__).parent)
_RAISE: Final = dis.opmap["RAISE_VARARGS"]
_VOUCHED: Final = "_evenhand_may_be_told"

WITHHELD: Final = "(not shown)"
"""Stands where a value would, so that a reader knows that there is one to ask for."""

# A context variable: a thread or task that somebody else runs beside us keeps its own, hidden.
_shown: ContextVar[bool] = ContextVar("evenhand_show_values", default=False)


@contextmanager
def show_values() -> Iterator[None]:
    """Let messages quote private cells, labels, groups, ids and counts in this block.

    For the curator of the private table, at their own screen: such a message must not go where the
    table itself may not. It holds for this thread (or task) alone.

    Examples
    --------
    >>> import pandas as pd
    >>> from evenhand.datasets.columns import Column
    >>> ages = pd.Series(["41", "forty"], name="age")
    >>> try:
    ...     Column(ages).numbers
    ... except ValueError as error:
    ...     print(str(error)[:69])
    Column 'age' of the table must hold numbers, got the text (not shown)
    >>> with show_values():
    ...     try:
    ...         Column(ages).numbers
    ...     except ValueError as error:
    ...         print(str(error)[:65])
    Column 'age' of the table must hold numbers, got the text 'forty'
    """
    before = _shown.set(True)
    try:
        yield
    finally:
        _shown.reset(before)


def are_shown() -> bool:
    """Whether private values are quoted here and now."""
    return _shown.get()


def quoted(value: object) -> str:
    """Return a private value as a message may have it."""
    return plain(value) if _shown.get() else WITHHELD


def listed(values: Iterable[object], most: int = 5) -> str:
    """Return the first of some private values as a message may have them."""
    if not _shown.get():
        return WITHHELD
    return first(map(plain, values), most)


def first(texts: Iterable[str], most: int = 5, separator: str = ", ") -> str:
    """Join the first of some texts, and say how many there are beyond them."""
    known = list(texts)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return separator.join(known[:most]) + more


def plain(value: object) -> str:
    """Return a value as it is typed: a scalar of NumPy, also in a tuple, as the number it is."""
    return repr(_typed(value))


def _typed(value: object) -> object:
    np = sys.modules.get("numpy")  # without it there is no scalar of its own
    if isinstance(value, tuple):
        return tuple(map(_typed, value))
    return value.item() if np and isinstance(value, np.generic) else value


def count(n: int) -> str:
    """Return an exact count of private rows or values as a message may have it."""
    return f"{n:,}" if _shown.get() else WITHHELD


def row(position: int, what: str = "row") -> str:
    """Name one row by its position, which code counts from 0 and people from 1."""
    below = " below the header" if what == "row" else ""
    return f"{what} {position + 1} (counted from 1{below})"


def rows(positions: IntArray, what: str = "row") -> str:
    """Name the first of some rows; how many there are beyond it is a private count."""
    first = row(int(positions[0]), what)
    if len(positions) == 1:
        return first
    return f"{first} and {len(positions) - 1:,} more" if _shown.get() else f"{first} and others"


def cause(error: BaseException) -> BaseException | None:
    """Return what ``raise ... from`` may chain: an error of another library quotes what it read."""
    return error if _shown.get() else None


def may_be_told(error: BaseException) -> bool:
    """Whether an error's own words may leave: ours were written with care, other libraries' quote.

    Ours are those that a ``raise`` of this package made: ``float(cell)`` raises in our code as
    well, in words of its own. An error of another process says so itself (``vouched``).
    """
    if _shown.get() or getattr(error, _VOUCHED, False) or isinstance(error, OSError | MemoryError):
        return True
    frames = error.__traceback__
    if frames is None:
        return False
    while frames.tb_next is not None:
        frames = frames.tb_next
    code = frames.tb_frame.f_code
    return code.co_filename.startswith(_HOME) and code.co_code[frames.tb_lasti] == _RAISE


@contextmanager
def warnings_withheld() -> Iterator[None]:
    """Keep back what other libraries warn of while they read private rows: it follows from these.

    That a fit did not converge, or divided by zero, is a function of the rows without any noise.
    """
    with warnings.catch_warnings():
        if not _shown.get():
            warnings.simplefilter("ignore")
        yield


def vouched(error: Exception) -> Exception:
    """Return an error that is about to cross to another process, where its frames are lost."""
    if may_be_told(error):
        setattr(error, _VOUCHED, True)
    return error


def said_by(error: BaseException) -> str:
    """Return an error's words in one line, or its kind alone if they may quote private values."""
    if may_be_told(error):
        return " ".join(str(error).split()) or type(error).__name__
    return f"{type(error).__name__} {WITHHELD}"


def if_shown(text: str) -> str:
    """Return words that were made of private values, such as a nearest name, or none."""
    return text if _shown.get() else ""
