"""Which error ends in which exit code, decided in one place for every command."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import typer
from typer.core import TyperGroup

from evenhand import _values
from evenhand._extras import MissingExtra
from evenhand.cli.console import safe

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130


class CommandGroup(TyperGroup):
    """Runs a command; bad input becomes one line on stderr and exit code 2.

    Everything else keeps its traceback and ends with exit code 1: it is a defect of the program,
    and whoever reports it needs to say where it was.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            with warnings.catch_warnings(), quiet_interrupts():
                warnings.showwarning = _warn
                return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if ctx.params.get("debug") or not is_bad_input(error):
                raise
            print(f"error: {one_line(error)}{_way_to_see(error, ctx)}", file=sys.stderr)
            raise typer.Exit(BAD_INPUT) from None


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Let Ctrl-C end the command wherever it lands, without a traceback of somebody else's.

    A library that closes a connection logs whatever stopped it there, and Python swallows what is
    raised in a finalizer. The first is not printed for an interrupt; the second is sent again.
    """
    spoken, unraisable = logging.lastResort, sys.unraisablehook
    if spoken is not None:
        spoken.addFilter(_is_no_interrupt)
    sys.unraisablehook = _again_if_interrupt
    try:
        yield
    finally:
        sys.unraisablehook = unraisable
        if spoken is not None:
            spoken.removeFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, KeyboardInterrupt)


def _again_if_interrupt(unraisable: Any) -> None:
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        # Raised here it would be swallowed as well; a moment later it lands somewhere else.
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(unraisable)


def is_bad_input(error: Exception) -> bool:
    """Whether the user can mend it: a wrong value, an absent file, an empty budget, no room."""
    if isinstance(error, BrokenPipeError):
        return False  # the reader of our output left, as in "evenhand predict ... | head"
    if isinstance(error, ValueError | OSError | MemoryError | MissingExtra):
        return True
    # What has not been imported has not been raised: the end of a help page imports nothing.
    known = (("evenhand.datasets", "DataNotAvailable"), ("evenhand.privacy", "BudgetExceeded"))
    return any(
        isinstance(error, getattr(sys.modules[home], name))
        for home, name in known
        if home in sys.modules
    )


def one_line(error: BaseException) -> str:
    """Return the message without line breaks, and never empty."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return safe(" ".join(f"{error.filename}: {error.strerror}".split()))  # without its number
    return safe(_values.said_by(error))


def _way_to_see(error: Exception, ctx: Any) -> str:
    """Name the option that shows a value, where a value was left out and there is the option."""
    command = ctx.command.commands.get(ctx.invoked_subcommand)
    options = {option.name for option in getattr(command, "params", ())}
    if _values.WITHHELD not in one_line(error) or "show_values" not in options:
        return ""
    return " Add --show-values to see what is not shown, on your own screen."


def traceback_of(error: BaseException) -> str:
    """Return a traceback that shows code and our own words, and no words that may quote a cell."""
    inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    before = "" if inner is None else f"{traceback_of(inner)}\nwhile this was handled:\n"
    frames = "".join(traceback.format_tb(error.__traceback__))
    return f"{before}{frames}{type(error).__name__}: {safe(_values.said_by(error))}"


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as a person reads it: without the line of code that gave it."""
    print(f"warning: {safe(' '.join(str(message).split()))}", file=sys.stderr)


@contextmanager
def as_bad_input(*kinds: type[Exception], where: str = "") -> Iterator[None]:
    """Turn errors that mean a defect elsewhere, and bad input here, into ValueError.

    A column of dates is a TypeError to the library, whose caller chose the types; at the command
    line it is what stood in the user's file.
    """
    try:
        yield
    except kinds as error:
        raise ValueError(f"{where}: {one_line(error)}" if where else one_line(error)) from (
            _values.cause(error)
        )


@contextmanager
def told_once() -> Iterator[None]:
    """Leave out warnings that are printed as notes of the generator."""
    from evenhand.generators import NotedWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotedWarning)
        yield
