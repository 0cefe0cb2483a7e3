"""A command made of a dataclass: its fields are the options, given as flags or in a TOML file."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo

from evenhand._checks import did_you_mean
from evenhand._notions import called_now
from evenhand.cli.console import show, table

SPEC: Final = ".toml"
_NOT_IN_A_FILE: Final = ("help_all", "json", "show_values")
KINDS: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
"""The types of a value in a file, in words."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a command was asked to do: the base of dataclasses whose annotated fields are options.

    Every field of type ``Annotated[..., typer.Option(...)]`` is an option, and one with
    ``typer.Argument`` an argument. With a field of type ``HelpAll`` in a :class:`Command`,
    ``--help`` leaves out options with a ``rich_help_panel``, which few runs need; ``--help-all``
    shows them under that heading.

    Parameters
    ----------
    given : frozenset of str
        The options that stood in the command or in its file, by the names of their fields.
    """

    given: frozenset[str] = frozenset()

    @classmethod
    def more_help(cls) -> dict[str, list[tuple[str, str]]]:
        """Return what ``--help-all`` says beside the options: rows of words, under headings."""
        return {}


_Given = TypeVar("_Given", bound=Options)


class Command(TyperCommand):
    """A command whose ``--help`` shows the options that most runs need."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page: all of it after ``--help-all``."""
        rare = [p for p in self.params if getattr(p, "rich_help_panel", None) and not _all(ctx)]
        with _hidden(rare):
            super().format_help(ctx, formatter)
        if _all(ctx):
            for heading, rows in _options_of(self).more_help().items():
                show(table((heading, ""), rows, text=2))


def command_of(options: type[_Given]) -> Callable[[Callable[[_Given], None]], Callable[..., None]]:
    """Make a command of a function that takes these options; its docstring is the help."""
    types = option_types(options)
    defaults = {f.name: f.default for f in fields(options) if f.default is not MISSING}

    def decorate(run: Callable[[_Given], None]) -> Callable[..., None]:
        def command(context: typer.Context, **values: Any) -> None:
            run(options(**values, given=_given(context)))

        taken = {"context": typer.Context, **types}
        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=hint,
                default=defaults.get(name, inspect.Parameter.empty),
            )
            for name, hint in taken.items()
        ]
        about: dict[str, Any] = {
            "__signature__": inspect.Signature(parameters),
            "__annotations__": taken,
            "__name__": run.__name__,
            "__doc__": run.__doc__,
            "options": options,  # for ``from_file`` and the help page
        }
        for name, value in about.items():
            setattr(command, name, value)
        return command

    return decorate


def option_types(options: type[Options]) -> dict[str, Any]:
    """Return the fields that are options with their settings for Typer, in the order of help.

    Arguments come first; then the options of the command itself, then those that it shares.
    """
    hints = get_type_hints(options, include_extras=True)
    found = {name: hint for name, hint in hints.items() if get_origin(hint) is Annotated}
    first = [name for name, hint in found.items() if isinstance(_option_of(hint), ArgumentInfo)]
    own = [name for kind in options.__mro__ for name in vars(kind).get("__annotations__", ())]
    return {name: found[name] for name in dict.fromkeys((*first, *own)) if name in found}


def from_file(context: typer.Context, place: Path) -> Path:
    """Take the options of a TOML file, as the callback of the argument that may name one.

    Flags stand above the file. Files that it names are relative to its own folder.

    Raises
    ------
    ValueError
        For what is no TOML, an unknown key (with the nearest), and a value of another type.
    """
    if place.suffix.lower() != SPEC:
        return place
    written = read_toml(place)
    types = option_types(_options_of(context.command))
    hints = {name: hint for name, hint in types.items() if name not in _NOT_IN_A_FILE}
    spelled = {param.opts[0].removeprefix("--"): param.name for param in context.command.params}
    for key, value in written.items():
        if key not in hints:
            near = spelled.get(key.replace("_", "-"))
            hint = (
                f" Did you mean {near!r}?" if near else called_now(key) or did_you_mean(key, hints)
            )
            raise ValueError(
                f"{place} does not know the key {key!r}.{hint} It takes: {', '.join(hints)}."
            )
        written[key] = _checked(place, key, value, hints[key])
    name = next(p.name for p in context.command.params if p.param_type_name == "argument")
    if name not in written:
        raise ValueError(f'{place} has no key {name}. Add a line such as {name} = "{name}.csv".')
    found = written.pop(name)
    context.default_map = written
    return Path(found)


def read_toml(file: Path) -> dict[str, Any]:
    """Return what a TOML file says; ValueError where it is none."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # tomllib's own error is a ValueError
        raise ValueError(f"{file} is not TOML: {error}") from None


def is_a(kind: type, value: object) -> bool:
    """Return whether a value of TOML is of a type; a whole number is a number, and a flag is none.

    Examples
    --------
    >>> is_a(float, 2), is_a(int, 2.0), is_a(int, True)
    (True, False, False)
    """
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)


def _options_of(command: Any) -> type[Options]:
    """Return the dataclass that a command was made of."""
    options: type[Options] = command.callback.options
    return options


def _checked(place: Path, key: str, value: Any, hint: Any) -> Any:
    """Return a value of the file as the command line would read it."""
    kind, several = _kind(hint)
    if several and not isinstance(value, list):
        value = [value]
    option = _option_of(hint)
    of_file = kind is Path or "FILE" in (option.metavar or "")
    wanted = str if kind is Path else kind
    for item in value if several else [value]:
        if not is_a(wanted, item):
            raise ValueError(f"{place}: {key} must be {KINDS[wanted]}, got {item!r}.")
    if of_file and "://" not in value:
        return str(place.parent / value)
    return value


def _kind(hint: Any) -> tuple[type, bool]:
    """Return the type of one value, and whether there may be several."""
    found = get_args(hint)[0]
    if NoneType in get_args(found):
        found = get_args(found)[0]
    return (get_args(found)[0], True) if get_origin(found) is list else (found, False)


def _option_of(hint: Any) -> Any:
    """Return the settings of an option for Typer."""
    return get_args(hint)[1]


def _given(context: typer.Context) -> frozenset[str]:
    """Return the names of the parameters that were given, as flags or in a file."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    said = ("COMMANDLINE", "DEFAULT_MAP")
    return frozenset(name for name, source in sources.items() if source and source.name in said)


def _all(context: Any) -> bool:
    return bool(context.meta.get(__name__))


def _show_all(context: typer.Context, asked: bool) -> bool:
    if asked:
        context.meta[__name__] = True
        typer.echo(context.get_help())
        raise typer.Exit
    return asked


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", callback=_show_all, is_eager=True, help="Show every option, and exit."
    ),
]


@contextmanager
def _hidden(params: list[Any]) -> Iterator[None]:
    for param in params:
        param.hidden = True
    try:
        yield
    finally:
        for param in params:
            param.hidden = False
