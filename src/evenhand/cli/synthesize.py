"""``evenhand synthesize``: synthetic rows or pictures, with their claim and a report."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import _checks
from evenhand._checks import at_least, one_of
from evenhand._words import ARRAYS
from evenhand.cli import options
from evenhand.cli.command import command_of
from evenhand.cli.console import Bars, emit, note, plain, progress_bars, show, table
from evenhand.cli.failures import as_bad_input, told_once
from evenhand.cli.halfway import halfway
from evenhand.cli.output import require_free, require_place, whole_file
from evenhand.cli.results import NOT_COVERED, warn_of_training_rows
from evenhand.cli.synthesize_options import SynthesizeOptions
from evenhand.cli.synthetic_data import Pictures, SyntheticData, Tables
from evenhand.cli.tables import require_outside
from evenhand.cli.two_tables import TwoTables
from evenhand.generators.registry import names_of

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.generators.evaluation import Evaluation
    from evenhand.generators.fitted import FittedGenerator
    from evenhand.generators.synthesizer import Synthesizer


@command_of(SynthesizeOptions)
def synthesize(given: SynthesizeOptions) -> None:
    """Learn a private table once, and draw synthetic rows whose labels and groups are balanced.

    The claim holds whatever the data are: every use of the private table is charged before its
    noise is drawn. Drawing rows costs nothing further. Nothing is written unless everything is.
    """
    started = time.perf_counter()
    data = _data_of(given)
    files = _require_room(given, data)
    if given.test is not None:
        warn_of_training_rows(given.test, private=given.private)
    with progress_bars() as bars:
        bars.begin(f"reading {given.private}")
        generator, summary, measured = _make(given, data, files, bars)
    summary["wall_s"] = time.perf_counter() - started
    _tell(generator, summary, measured, given.json)


def _data_of(given: SynthesizeOptions) -> SyntheticData:
    """Return the kind of data that the command is about."""
    if given.visits is not None:
        return TwoTables.of(given)
    for option, value in (
        ("--key", given.key),
        ("--carry", given.carry),
        ("--visits-schema", given.visits_schema),
        ("--test-visits", given.test_visits),
        ("--visits-out", given.visits_out),
    ):
        if value:
            raise ValueError(f"{option} is about two tables: name the second one with --visits.")
    return (Pictures if given.private.suffix == ARRAYS else Tables)(given)


def _require_room(given: SynthesizeOptions, data: SyntheticData) -> dict[str, Path]:
    """Refuse what can be refused before a file is read; return the files to write."""
    at_least("--rows", given.rows, 1)
    given.balanced  # noqa: B018  # reading it is the check
    data.refuse()
    of, unit = data.given.per_unit, data.given.unit
    _checks.per_unit(of, unit is not None, name="--per-unit", whose="--unit")
    method = given.method or data.default
    data.settings(one_of("--method", method, names_of(data.payload, offered=True)))
    out = given.out
    files = {
        **data.tables,
        "claim": out.with_suffix(".claim.json"),
        "report": out.with_suffix(".html"),
    }
    if given.curators_report is not None:
        if given.test is None:
            raise ValueError(
                "--curators-report attacks private rows beside test rows. Name these with --test."
            )
        if any(given.curators_report.absolute() == file.absolute() for file in files.values()):
            raise ValueError(
                f"--curators-report is not to be published, and {given.curators_report} is written "
                f"beside --out for others. Choose another name."
            )
        files["curator's report"] = given.curators_report
    _require_apart(given, files)
    for file in files.values():
        require_place(file, overwrite=given.overwrite)
    if given.resume:
        halfway(data, method)  # before a file is read
    elif given.save is not None:
        require_free(given.save, "--save", ", or go on with a fit that was interrupted by --resume")
    elif given.sign is not None:
        raise ValueError("--sign signs the folder of --save, which is missing. Name one.")
    options.private_key(given.sign)  # before anything is spent
    return files


def _require_apart(given: SynthesizeOptions, files: dict[str, Path]) -> None:
    """Refuse to write two things to one file, over one that is read, or among private ones."""
    require_outside(given.private, *files.values(), given.save)
    read = {
        "the private table": (given.private, given.visits),
        "read as --test": (given.test, given.test_visits),
        "read as --reference": (given.reference,),
        "read as --schema": (given.schema, given.visits_schema),
    }
    of = {path.resolve(): what for what, paths in read.items() for path in paths if path}
    written: dict[Path, str] = {}
    for name, file in files.items():
        place = file.resolve()
        same = [path for path in of if path.exists() and file.exists() and file.samefile(path)]
        if place in of or same:
            what = of[place if place in of else same[0]]
            raise FileExistsError(f"{file} is {what}. Choose another --out.")
        if place in written:
            raise ValueError(
                f"{file} would hold two things: {written[place]!r} and {name!r}. Name another file "
                f"for one of them."
            )
        written[place] = name


def _make(
    given: SynthesizeOptions, data: SyntheticData, files: dict[str, Path], bars: Bars
) -> tuple[Synthesizer, dict[str, Any], list[Any]]:
    """Learn, draw, measure and write; return the generator, a summary and what to show."""
    from evenhand.generators.saving import autosave
    from evenhand.privacy import Budget

    budget = Budget(epsilon=given.epsilon, delta=given.delta)
    data.read()
    method = given.method or data.default
    generator: Any = halfway(data, method) if given.resume else data.generator(method)
    # What was paid for stays, whatever fails from here on.
    told = bars if given.save is None else autosave(generator, given.save, progress=bars)
    with as_bad_input(TypeError, MemoryError), told_once(), _kept_halfway(generator, given.save):
        if given.resume:
            generator.resume(progress=told)
        else:
            data.fit(
                generator,
                budget=budget,
                unit_name=given.unit_name,
                per_unit=given.per_unit,
                progress=told,
            )
    if given.save is not None:
        generator.save(given.save, sign=given.sign, overwrite=True)
    with _kept_after(generator, given):
        bars.begin(f"drawing {data.words}")
        drawn = data.draw(generator)
        measured = None if given.test is None else data.evaluate(generator, drawn, bars)
        attacked = data.attack(generator, drawn, bars)
        # What private rows were read for stands in the curator's report and nowhere else.
        found = measured if attacked is None or measured is None else measured.of_synthetic()
        bars.begin("writing")
        with ExitStack() as stack:
            made = {
                name: stack.enter_context(whole_file(path, overwrite=given.overwrite))
                for name, path in files.items()
            }
            data.write(drawn, *(made[name] for name in data.tables))
            made["claim"].write_text(_claim_text(generator), encoding="utf-8")
            data.report(generator, drawn, made["report"], found)
            if attacked is not None:
                data.report(generator, drawn, made["curator's report"], measured, attacked)
    summary = _summary_of(generator.fitted_, data.conditions(drawn), found) | {
        "method": method,
        **data.sizes(drawn),
        **{name: str(path) for name, path in data.tables.items()},
        "report": str(files["report"]),
        "curators_report": None if attacked is None else str(given.curators_report),
        "generator": None if given.save is None else str(given.save),
    }
    return generator, summary, [] if found is None else _measured_table(data, found)


@contextmanager
def _kept_after(generator: Synthesizer, given: SynthesizeOptions) -> Iterator[None]:
    """Keep a generator that is paid for, whatever fails after its fit, and say where it is."""
    try:
        yield
    except BaseException:
        folder = given.save
        if folder is None:
            taken = itertools.chain([""], map(str, itertools.count(2)))
            names = (given.out.with_suffix(f".generator{n}") for n in taken)
            folder = generator.save(next(name for name in names if not name.exists()))
        note(
            f"The budget of this fit is spent. What was learnt is in {folder}: "
            f"evenhand.generators.load draws from it, at no further cost."
        )
        raise


@contextmanager
def _kept_halfway(generator: Synthesizer, save: Path | None) -> Iterator[None]:
    """Save an interrupted fit that can go on, and say how."""
    try:
        yield
    except KeyboardInterrupt:
        if save is not None and generator.unfinished_:
            generator.save(save, overwrite=True)
            note(f"{save} holds the fit as far as it came. The same command with --resume goes on.")
        raise


def _tell(generator: Synthesizer, summary: dict[str, Any], measured: list[Any], json: bool) -> None:
    """Print what was done: for a person, or for a program."""
    for words in summary["warnings"]:
        note(f"warning: {words}")
    for words in generator.notes_:
        if words not in summary["warnings"]:
            note(f"note: {words}")
    note(str(generator.snr_))
    if summary["curators_report"] is not None:
        note(
            f"{summary['curators_report']} is for the curator alone: private rows were read for it "
            f"without noise. Do not publish it."
        )
    if json:
        emit(summary)
        return
    second = ""
    if "visits" in summary:
        second = f", {summary['n_visits']:,} visits in {summary['visits']}"
    show(
        str(generator.guarantee_),
        table(
            ("label and group", "rows"),
            [(name, f"{n:,}") for name, n in summary["counts"].items()],
        ),
        *measured,
        f"{summary['n_rows']:,} rows are in {summary['out']}{second}, the report in "
        f"{summary['report']}.",
    )


def _summary_of(
    fitted: FittedGenerator, conditions: pd.DataFrame, found: Evaluation | None
) -> dict[str, Any]:
    """Return the claim, and how often each label and group (``conditions``) was drawn."""
    claim = fitted.guarantee
    names = list(conditions.columns)
    joined = f"{names[0]}=" + conditions[names[0]].astype(str)
    for name in names[1:]:
        joined = joined + f", {name}=" + conditions[name].astype(str)
    counts = joined.value_counts().sort_index()
    return {
        "n_rows": len(conditions),
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "unit": claim.unit,
        "neighbors": claim.neighbors,
        "guarantee": str(claim),
        "holds": claim.holds,
        "warnings": [*claim.cautions, *fitted.warnings],
        "notes": list(fitted.notes),
        "signal_to_noise": fitted.snr.value,
        "counts": {str(name): int(count) for name, count in counts.items()},
        "measured": None if found is None else found.to_dict(),
    }


def _claim_text(generator: Synthesizer) -> str:
    """Return the guarantee and the ledger as JSON."""
    from evenhand.privacy.saved_claim import claim_record

    claim = claim_record(generator.guarantee_, generator.ledger_)
    return json.dumps(plain(claim), indent=2, ensure_ascii=False) + "\n"


def _measured_table(data: SyntheticData, found: Evaluation) -> list[Any]:
    """Return means over models that were trained on synthetic data, and what belongs below."""
    shown, more = data.measured(found)
    rows = [(words, f"{found.mean(name):.3f}") for words, name in shown]
    head = f"trained on synthetic, tested on real {data.words}: mean"
    return [table((head, ""), rows + more), NOT_COVERED]
