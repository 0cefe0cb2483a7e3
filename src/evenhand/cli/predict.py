"""``evenhand predict``: labels for new rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.cli import reject_option
from evenhand.cli.command import command_of
from evenhand.cli.console import emit, note, progress_bars
from evenhand.cli.folder import require_place, whole_file
from evenhand.cli.output_tables import require_table_name, write_table
from evenhand.cli.predict_options import PredictOptions

if TYPE_CHECKING:
    import pandas as pd


@command_of(PredictOptions)
def predict(given: PredictOptions) -> None:
    """Predict the label of every row, in the order of the file.

    No group is needed, except by a model that decides by the group as well: then the table needs
    the sensitive columns of training.

    Predictions cost no privacy: the model was made of answers that are released already.

    With --reject-margin some rows get no prediction, so that the given ones stay within a margin;
    then the groups are needed.
    """
    reject_option.check(given)
    for option, place in (("--out", given.out), ("--delivered", given.delivered)):
        if place is not None:
            require_table_name(place, option)
            require_place(place, overwrite=given.overwrite)
    with progress_bars() as bars:
        bars.begin(f"predicting {given.new}")
        from evenhand.cli.tables import features_of, read
        from evenhand.methods import load

        model = load(given.model, trusted=given.trust or ())
        table = read(given.new)
        X = features_of(model, table)
        if given.reject_margin is not None:
            decided = reject_option.decide(model, X, table, given.reject_margin, given)
            reject_option.hand_out(decided, given)
            return
        groups = reject_option.groups_of(model, table, given)
        labels = predictions(model, X, groups)
        shares = probabilities(model, X, groups) if given.proba else None
    _hand_out(given, labels, shares, [str(name) for name in model.classes_])


def _hand_out(given: PredictOptions, labels: Any, shares: Any, classes: list[str]) -> None:
    """Write the predictions into the file, or on stdout."""
    n, out = len(labels), given.out
    if out is not None:
        if out.exists() and out.samefile(given.new):
            raise FileExistsError(f"{out} is the table to predict on. Choose another --out.")
        with whole_file(out, overwrite=given.overwrite) as made:
            write_table(_frame(labels, shares, classes), made, raw=given.raw)
        note(f"{n} predictions are in {out}")
        if given.json:
            emit({"n_rows": n, "out": str(out)})
    elif given.json:
        found: dict[str, Any] = {"n_rows": n, "predictions": labels}
        if shares is not None:
            found |= {"classes": classes, "probabilities": shares}
        emit(found)
    else:
        write_table(_frame(labels, shares, classes), None, raw=given.raw)


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
