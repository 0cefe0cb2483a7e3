"""The commands, under one name."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from evenhand._version import __version__
from evenhand.cli.aggregate import aggregate
from evenhand.cli.assess import assess
from evenhand.cli.audit import audit
from evenhand.cli.card import card
from evenhand.cli.check import check
from evenhand.cli.command import Command
from evenhand.cli.datasets import datasets
from evenhand.cli.demo import demo
from evenhand.cli.evaluate import evaluate
from evenhand.cli.failures import CommandGroup, traceback_of
from evenhand.cli.frontier import frontier
from evenhand.cli.inspect import inspect
from evenhand.cli.owner import owner
from evenhand.cli.plan import plan
from evenhand.cli.predict import predict
from evenhand.cli.serve import serve, tokens
from evenhand.cli.sums import sums
from evenhand.cli.synthesize import synthesize
from evenhand.cli.train import train
from evenhand.cli.verify import verify

# Tracebacks of Typer would print local variables, and these hold the private data.
app = typer.Typer(
    name="evenhand",
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(inspect)
app.command(cls=Command)(train)
app.command()(aggregate)
app.command()(plan)
app.command()(predict)
app.command()(evaluate)
app.command()(assess)
app.command()(card)
app.command()(frontier)
app.command(cls=Command)(synthesize)
app.command()(serve)
app.command()(check)
app.command()(verify)
app.command()(audit)
app.add_typer(datasets, name="datasets")
app.add_typer(tokens, name="tokens")
app.add_typer(owner, name="owner")
app.add_typer(sums, name="sums")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def evenhand(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            envvar="EVENHAND_DEBUG",
            help="Keep the traceback of an error in the input. It shows code, not data.",
        ),
    ] = False,
) -> None:
    """Train classifiers that are differentially private and within a fairness margin.

    Start with `evenhand demo`: real data, a model and a report in under a minute.
    """


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="evenhand")
    except Exception as error:  # a defect of ours, or bad input with --debug
        print(traceback_of(error), file=sys.stderr)
        sys.exit(1)
