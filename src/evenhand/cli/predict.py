"""``evenhand predict``: labels for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import rejecting
from evenhand.cli.console import emit, note, progress_bars
from evenhand.cli.folder import require_place, whole_file
from evenhand.cli.options import Encoding, Json, ModelFolder, Raw, Separator, ShowValues, Trust
from evenhand.cli.written import require_table_name, write_table

if TYPE_CHECKING:
    import pandas as pd


def predict(
    model: ModelFolder,
    new: Annotated[
        Path,
        typer.Argument(
            metavar="NEW",
            help="Rows to decide on: CSV (also .gz) or Parquet. Missing values and new categories "
            "are allowed; other columns, such as a label or groups, are passed over.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write: CSV, or Parquet by its ending.",
            show_default="stdout",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class, in [0, 1].")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file of --out if it is there.")
    ] = False,
    reject_margin: Annotated[
        float | None,
        typer.Option(
            help="Refuse predictions that would bring the groups' rates further apart than this, "
            "over all given ones. In [0, 1].",
            show_default="none is refused",
            rich_help_panel="Reject option",
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the groups; may be repeated.",
            show_default="those of training",
            rich_help_panel="Groups",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the counts in this file, over runs; made by the first. One run at a time.",
            rich_help_panel="Reject option",
        ),
    ] = None,
    delivered: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file for predictions that earlier runs withheld and that are given now.",
            rich_help_panel="Reject option",
        ),
    ] = None,
    trust: Trust = None,
    raw: Raw = False,
    sep: Separator = None,
    encoding: Encoding = None,
    show_values: ShowValues = False,
    json: Json = False,
) -> None:
    """Predict the label of every row, in the order of the file.

    No group is needed, except by a model that decides by the group as well: then the table needs
    the sensitive columns of training.

    Predictions cost no privacy: the model was made of answers that are released already.

    With --reject-margin some rows get no prediction, so that the given ones stay within a margin;
    then the groups are needed.
    """
    asked = rejecting.Asked.of(reject_margin, sensitive, state, delivered, proba=proba, json=json)
    if asked is not None:
        rejecting.refuse_one_place_for_two(NEW=new, out=out, state=state, delivered=delivered)
    for option, place in (("--out", out), ("--delivered", delivered)):
        if place is not None:
            require_table_name(place, option)
            require_place(place, overwrite=overwrite)
    with progress_bars() as bars:
        bars.begin(f"predicting {new}")
        from evenhand.cli.tables import features_of
        from evenhand.datasets import read_table
        from evenhand.methods import load

        fitted = load(model, trusted=trust or ())
        table = read_table(new)
        X = features_of(fitted, table, new)
        if asked is not None:
            decided = rejecting.decide(fitted, model, X, table, new, asked)
            rejecting.hand_out(
                decided,
                asked,
                out=out,
                delivered=delivered,
                overwrite=overwrite,
                raw=raw,
                json=json,
            )
            return
        groups = rejecting.groups_of(fitted, model, table, new, sensitive or ())
        labels = predictions(fitted, X, groups)
        shares = probabilities(fitted, X, groups) if proba else None
    classes = [str(name) for name in fitted.classes_]
    if out is not None:
        if out.exists() and out.samefile(new):
            raise FileExistsError(f"{out} is the table to predict on. Choose another --out.")
        with whole_file(out, overwrite=overwrite) as made:
            write_table(_frame(labels, shares, classes), made, raw=raw)
        note(f"{len(X)} predictions are in {out}")
        if json:
            emit({"n_rows": len(X), "out": str(out)})
    elif json:
        found: dict[str, Any] = {"n_rows": len(X), "predictions": labels}
        if shares is not None:
            found |= {"classes": classes, "probabilities": shares}
        emit(found)
    else:
        write_table(_frame(labels, shares, classes), None, raw=raw)


def predictions(model: Any, X: Any, groups: Any) -> Any:
    """Predict, with the groups where the model needs them; the same rows get the same labels."""
    from evenhand.estimators.fitted import decide

    if model.needs_group_at_prediction_ and groups is None:
        raise ValueError(
            "This model decides by the group as well, and needs the sensitive columns of its "
            "training. Name them with --sensitive, and have them in the table."
        )
    return decide(model, X, groups)


def probabilities(model: Any, X: Any, groups: Any) -> Any:
    """Return the probability of each class: of a decision, where that is derived from the group."""
    from evenhand.fairness import FairnessKind

    if model.fairness_kind_ is FairnessKind.DERIVED:
        return model.predict_proba(X, sensitive_features=groups)
    return model.predict_proba(X)


def _frame(labels: Any, shares: Any, classes: list[str]) -> pd.DataFrame:
    import pandas as pd

    columns = {"prediction": labels}
    if shares is not None:
        columns |= {f"probability of {name}": shares[:, i] for i, name in enumerate(classes)}
    return pd.DataFrame(columns)
