"""``evenhand synthesize``: synthetic rows or pictures, with their claim and a report."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._checks import at_least, one_of
from evenhand.cli import options, vocabulary
from evenhand.cli.command import command_of
from evenhand.cli.console import Bars, emit, note, progress_bars, show, table
from evenhand.cli.failures import as_bad_input, told_once
from evenhand.cli.folder import require_free, require_place, whole_file
from evenhand.cli.synthesis import SyntheticData, claim_text, measured_table, summary_of
from evenhand.cli.synthesize_options import PARITY, SynthesizeOptions
from evenhand.cli.synthetic_pictures import ENDING, Pictures
from evenhand.cli.synthetic_tables import Tables
from evenhand.generators.registry import GENERATORS, names_of

if TYPE_CHECKING:
    from evenhand.generators.synthesizer import Synthesizer


@command_of(SynthesizeOptions)
def synthesize(given: SynthesizeOptions) -> None:
    """Learn a private table once, and draw synthetic rows whose labels and groups are balanced.

    The claim holds whatever the data are: every use of the private table is charged before its
    noise is drawn. Drawing rows costs nothing further. Nothing is written unless everything is.
    """
    started = time.perf_counter()
    data: SyntheticData = (Pictures if given.private.suffix == ENDING else Tables)(given)
    files = _require_room(given, data)
    with progress_bars() as bars:
        bars.begin(f"reading {given.private}")
        generator, summary, measured = _make(given, data, files, bars)
    summary["wall_s"] = time.perf_counter() - started
    _tell(generator, summary, measured, given.json)


def _require_room(given: SynthesizeOptions, data: SyntheticData) -> dict[str, Path]:
    """Refuse what can be refused before a file is read; return the files to write."""
    at_least("--rows", given.rows, 1)
    given.balanced  # noqa: B018  # reading it is the check
    one_of("--parity", given.parity, PARITY)
    if given.noise is not None:
        one_of("--noise", given.noise, vocabulary.NOISES)
    data.refuse()
    one_of("--method", given.method or data.default, names_of(data.payload, offered=True))
    out = given.out
    files = {
        "data": out,
        "claim": out.with_suffix(".claim.json"),
        "report": out.with_suffix(".html"),
    }
    for file in files.values():
        require_place(file, overwrite=given.overwrite)
    if given.private.exists() and any(
        f.exists() and f.samefile(given.private) for f in files.values()
    ):
        raise FileExistsError(f"{out} is the private table. Choose another --out.")
    if given.save is not None:
        require_free(given.save)
    elif given.sign is not None:
        raise ValueError("--sign signs the folder of --save, which is missing. Name one.")
    options.private_key(given.sign)  # before anything is spent
    return files


def _make(
    given: SynthesizeOptions, data: SyntheticData, files: dict[str, Path], bars: Bars
) -> tuple[Synthesizer, dict[str, Any], list[Any]]:
    """Learn, draw, measure and write; return the generator, a summary and what to show."""
    from evenhand.privacy import Budget

    budget = Budget(epsilon=given.epsilon, delta=given.delta)
    data.read()
    method = given.method or data.default
    generator = GENERATORS[data.payload, method](**data.noise(), random_state=given.seed)
    with as_bad_input(TypeError, MemoryError), told_once():
        data.fit(
            generator,
            budget=budget,
            unit_name=given.unit_name,
            per_unit=given.per_unit,
            progress=bars,
        )
    bars.begin(f"drawing {data.words}")
    drawn = data.draw(generator)
    found = None if given.test is None else data.evaluate(generator, drawn, bars)
    bars.begin("writing")
    with ExitStack() as stack:
        made = {
            name: stack.enter_context(whole_file(path, overwrite=given.overwrite))
            for name, path in files.items()
        }
        data.write(drawn, made["data"])
        made["claim"].write_text(claim_text(generator), encoding="utf-8")
        data.report(generator, drawn, made["report"], found)
    if given.save is not None:
        generator.save(given.save, sign=given.sign)
    summary = summary_of(generator.fitted_, data.conditions(drawn), found) | {
        "method": method,
        "out": str(given.out),
        "report": str(files["report"]),
        "generator": None if given.save is None else str(given.save),
    }
    return generator, summary, [] if found is None else measured_table(data, found)


def _tell(generator: Synthesizer, told: dict[str, Any], measured: list[Any], json: bool) -> None:
    """Print what was done: for a person, or for a program."""
    for words in told["warnings"]:
        note(f"warning: {words}")
    for words in generator.notes_:
        if words not in told["warnings"]:
            note(f"note: {words}")
    note(str(generator.snr_))
    if json:
        emit(told)
        return
    show(
        str(generator.guarantee_),
        table(
            ("label and group", "rows"),
            [(name, f"{n:,}") for name, n in told["counts"].items()],
        ),
        *measured,
        f"{told['n_rows']:,} rows are in {told['out']}, the report in {told['report']}.",
    )
