"""``evenhand synthesize``: synthetic rows or pictures, with their claim and a report."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand._checks import at_least, one_of
from evenhand._random import LARGEST_SEED
from evenhand.cli import options, pictures, vocabulary
from evenhand.cli.console import Bars, emit, note, progress_bars, show, table
from evenhand.cli.drawn import GAPS, files_beside, measured_table, summary_of, write_claim
from evenhand.cli.failures import as_bad_input, told_once
from evenhand.cli.folder import require_free, require_place, whole_file
from evenhand.cli.written import require_table_name, write_table

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.generators import Evaluation, Synthesizer
    from evenhand.generators.images import ImageSynthesizer

METHODS: Final = ("marginal", "mean-embedding", "pate-gan", "dp-wgan", "ron-gauss", "ffpdg")
_ROLES = "Columns"
_ROWS = "Rows"
_PARITY: Final = ("none", "equalized-odds", "demographic-parity", "both")


def synthesize(
    private: Annotated[
        Path,
        typer.Argument(
            metavar="PRIVATE",
            help="Private records: CSV (also .gz) or Parquet; or pictures, an .npz with the array "
            "images and one array per label, sensitive attribute and unit.",
        ),
    ],
    label: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="Column of the classes.", rich_help_panel=_ROLES),
    ],
    sensitive: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN",
            help="Sensitive column; name several by repeating the option, and groups are their "
            "combinations.",
            rich_help_panel=_ROLES,
        ),
    ],
    epsilon: options.Epsilon,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Table to write: CSV, or Parquet by its ending; .npz for pictures. The claim "
            "(.claim.json) and the report (.html) are written beside it.",
        ),
    ],
    rows: Annotated[
        int, typer.Option(help="Rows to draw, at least 1.", rich_help_panel=_ROWS)
    ] = 10_000,
    balance: Annotated[
        str,
        typer.Option(
            metavar="label,sensitive",
            help="What is spread evenly over the rows: label, sensitive, both, or none.",
            rich_help_panel=_ROWS,
        ),
    ] = "label,sensitive",
    parity: Annotated[
        str,
        options.choice(
            _PARITY,
            help="Move the labels' shares within groups so that models of the rows treat groups "
            "more alike. For two classes; with both, fewer rows of the second class are asked for.",
            rich_help_panel=_ROWS,
        ),
    ] = "none",
    method: Annotated[
        str | None,
        options.choice(
            METHODS,
            help="Noisy tables of counts on a tree of columns, noisy means of random features, "
            "noisy votes of teachers on generated rows, noisy gradients of a critic (both need "
            "PyTorch), noisy means and covariances, or the same evened out between groups. For "
            "pictures mean-embedding, or a method of teachers.",
            show_default="marginal; mean-embedding for pictures",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Declared columns in JSON: kinds, categories, bounds. What it does not say is "
            "bought from the budget.",
            show_default="all of it is bought",
            rich_help_panel=_ROLES,
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public rows with the sensitive columns: groups that are missing in private rows "
            "are predicted from them.",
            rich_help_panel=_ROLES,
        ),
    ] = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says whose record a row is. The guarantee is then for each of these.",
            rich_help_panel=_ROLES,
        ),
    ] = None,
    unit_name: Annotated[
        str,
        typer.Option(metavar="NOUN", help="What a unit is, in the claim.", rich_help_panel=_ROLES),
    ] = "person",
    per_unit: Annotated[
        int,
        typer.Option(
            help="Rows of one unit that are read, its first ones. The noise grows in proportion.",
            rich_help_panel=_ROLES,
        ),
    ] = 1,
    delta: options.Delta = 1e-5,
    noise: options.NoiseName = "exact",
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Real rows to measure on: models are trained on the synthetic rows and tested on "
            "these. The guarantee does not cover these numbers.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="New folder for the generator, to draw more later."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=LARGEST_SEED,
            help="Seeds what is drawn besides privacy noise.",
            rich_help_panel=_ROWS,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the files of --out if they are there.")
    ] = False,
    sign: options.Sign = None,
    raw: options.Raw = False,
    sep: options.Separator = None,
    encoding: options.Encoding = None,
    show_values: options.ShowValues = False,
    json: options.Json = False,
) -> None:
    """Learn a private table once, and draw synthetic rows whose labels and groups are balanced.

    The claim holds whatever the data are: every use of the private table is charged before its
    noise is drawn. Drawing rows costs nothing further. Nothing is written unless everything is.
    """
    started = time.perf_counter()
    at_least("--rows", rows, 1)
    one_of("--parity", parity, _PARITY)
    one_of("--noise", noise, vocabulary.NOISES)
    even = _balance(balance)
    of_pictures = private.suffix == pictures.ENDING
    if of_pictures:
        for option, given in (
            ("--parity", parity != "none"),
            ("--schema", schema),
            ("--drop", drop),
            ("--keep", keep),
            ("--reference", reference),
        ):
            if given:
                raise ValueError(f"{option} is for tables, and {private} holds pictures.")
    else:
        method = one_of("--method", method or METHODS[0], METHODS)
    files = pictures.files_of(out) if of_pictures else _files(out)
    for file in files.values():
        require_place(file, overwrite=overwrite)
    if private.exists() and any(f.exists() and f.samefile(private) for f in files.values()):
        raise FileExistsError(f"{out} is the private table. Choose another --out.")
    if save is not None:
        require_free(save)
    elif sign is not None:
        raise ValueError("--sign signs the folder of --save, which is missing. Name one.")
    options.private_key(sign)  # before anything is spent
    if of_pictures:
        asked = pictures.Asked(
            private=private,
            out=out,
            test=test,
            label=label,
            sensitive=sensitive,
            unit=unit,
            unit_name=unit_name,
            per_unit=per_unit,
            epsilon=epsilon,
            delta=delta,
            rows=rows,
            balance=even,
            method=method,
            noise=noise,
            seed=seed,
            overwrite=overwrite,
            save=save,
            sign=sign,
        )
        with progress_bars() as bars:
            bars.begin(f"reading {private}")
            drew, told, shown = pictures.make_pictures(asked, files, bars)
        told["wall_s"] = time.perf_counter() - started
        _tell(drew, told, shown, json)
        return
    assert method is not None
    with progress_bars() as bars:
        bars.begin(f"reading {private}")
        from evenhand.datasets import Schema, read_table
        from evenhand.generators.memory import require_rows
        from evenhand.privacy import Budget

        budget = Budget(epsilon=epsilon, delta=delta)
        with as_bad_input(TypeError, KeyError, where=str(schema)):
            declared = None if schema is None else Schema.load(schema)
        frame = _read(private, drop or ())
        known = None if reference is None else read_table(reference)
        real = None if test is None else _read(test, drop or (), columns=set(frame.columns))
        # Before anything is spent.
        require_rows(rows, frame.shape[1], lower="--rows, and draw more from the folder of --save")
        generator = _new(method, noise, seed)
        with as_bad_input(TypeError), told_once():
            generator.fit(
                frame,
                label=label,
                sensitive=sensitive,
                budget=budget,
                schema=declared,
                unit=unit,
                unit_name=unit_name,
                per_unit=per_unit,
                reference=known,
                keep=tuple(keep or ()),
                progress=bars,
            )
        bars.begin("drawing rows")
        synthetic = _draw(generator, rows, even, parity, seed)
        found = None if real is None else _evaluate(generator, synthetic, real, bars)
        bars.begin("writing")
        conditions = synthetic[list(generator.conditions_.names)]
        summary = summary_of(generator, conditions, found) | {
            "method": method,
            "out": str(out),
            "report": str(files["report"]),
            "generator": None if save is None else str(save),
        }
        _write(generator, synthetic, found, real, files, private, overwrite, raw)
        if save is not None:
            generator.save(save, sign=sign)
    summary["wall_s"] = time.perf_counter() - started
    _tell(generator, summary, _measured(found), json)


def _tell(
    generator: Synthesizer | ImageSynthesizer, told: dict[str, Any], measured: list[Any], json: bool
) -> None:
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


def _balance(said: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in said.split(",") if word.strip())
    if words == ("none",):
        return ()
    for word in words:
        one_of("--balance", word, ("label", "sensitive", "none"))
    if not words or "none" in words:
        raise ValueError(f"--balance must be label, sensitive, both, or none, got {said!r}.")
    return words


def _files(out: Path) -> dict[str, Path]:
    require_table_name(out)
    return files_beside(out, "table")


def _read(path: Path, drop: Any, columns: set[str] | None = None) -> pd.DataFrame:
    from evenhand.cli.tables import require
    from evenhand.datasets import read_table

    frame = read_table(path)
    if columns is None:
        for column in drop:
            require(frame, path, "--drop", column)
        return frame.drop(columns=list(drop))
    for column in columns:
        require(frame, path, "the private table", column)
    return frame[[column for column in frame.columns if column in columns]]


def _new(method: str, noise: str, seed: int | None) -> Synthesizer:
    from evenhand.generators import METHODS as KNOWN

    made = {kind.method: kind for kind in KNOWN.values()}[method]
    return made(noise=vocabulary.noise(noise), random_state=seed)


def _draw(
    generator: Synthesizer, rows: int, even: tuple[str, ...], parity: str, seed: int | None
) -> pd.DataFrame:
    if parity == "none":
        return generator.sample(rows, balance=even, random_state=seed)
    from evenhand.generators import even_rates

    shares = even_rates(generator, parity.replace("-", "_"), random_state=seed)
    return generator.sample(rows, shares=shares, random_state=seed)


def _evaluate(
    generator: Synthesizer, synthetic: pd.DataFrame, real: pd.DataFrame, bars: Bars
) -> Evaluation:
    from evenhand.generators import evaluate

    with as_bad_input(KeyError, where="--test"):
        return evaluate(generator, synthetic, real[list(synthetic.columns)], progress=bars)


def _write(
    generator: Synthesizer,
    synthetic: pd.DataFrame,
    found: Evaluation | None,
    real: pd.DataFrame | None,
    files: dict[str, Path],
    private: Path,
    overwrite: bool,
    raw: bool,
) -> None:
    """Write the table, the claim and the report: all of them, or none."""
    from evenhand.report import write_synthetic_report

    columns = list(synthetic.columns)
    with ExitStack() as stack:
        made = {
            name: stack.enter_context(whole_file(path, overwrite=overwrite))
            for name, path in files.items()
        }
        write_table(synthetic, made["table"], raw=raw)
        write_claim(generator, made["claim"])
        write_synthetic_report(
            generator,
            made["report"],
            evaluation=found,
            test=None if real is None else real[columns],
            title=f"Synthetic rows of {private.name}",
            dataset={"Private table": private.name, "Rows drawn": f"{len(synthetic):,}"},
        )


def _measured(found: Evaluation | None) -> list[Any]:
    if found is None:
        return []
    more = [
        ("fidelity of columns", f"{found.fidelity.column_score:.3f}"),
        ("fidelity of pairs", f"{found.fidelity.pair_score:.3f}"),
    ]
    return measured_table("rows", found, (("AUROC", "auroc"), *GAPS), more)
