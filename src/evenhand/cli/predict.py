"""``evenhand predict``: labels for new rows, or refusals that keep a margin."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import margins, pictures
from evenhand.cli.command import command_of
from evenhand.cli.console import Bars, emit, note, progress_bars
from evenhand.cli.failures import as_bad_input
from evenhand.cli.margins import REJECT, KeepsMargins
from evenhand.cli.options import Raw
from evenhand.cli.output import (
    Training,
    require_place,
    require_table_name,
    whole_file,
    write_table,
)
from evenhand.cli.pictures import ReadsPictures
from evenhand.cli.tables import group_columns, read, sensitive_features

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.datasets.columns import TypedTable
    from evenhand.estimators import RejectOptionClassifier


@dataclass(frozen=True, kw_only=True)
class PredictOptions(ReadsPictures, KeepsMargins):
    """What a run of ``evenhand predict`` was asked to do."""

    new: Annotated[
        Path,
        typer.Argument(
            metavar="NEW",
            help="Rows to decide on: CSV (also .gz) or Parquet. Missing values and new categories "
            "are allowed; other columns, such as a label or groups, are passed over. Of "
            "pictures: a table whose column path names them.",
        ),
    ]
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write: CSV, or Parquet by its ending.",
            show_default="stdout",
        ),
    ] = None
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class, in [0, 1].")
    ] = False
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of NEW to write before the predictions, such as an id or the groups; may "
            "be repeated.",
            show_default="none",
        ),
    ] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file of --out if it is there.")
    ] = False
    reject_margin: Annotated[
        float | None,
        typer.Option(
            help="Refuse predictions that would bring the groups' rates further apart than this, "
            "over all given ones. In [0, 1]. The same as --within demographic-parity=MARGIN.",
            show_default="none is refused",
            rich_help_panel=REJECT,
        ),
    ] = None
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the groups; may be repeated.",
            show_default="those of training",
            rich_help_panel="Groups",
        ),
    ] = None
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the counts in this file, over runs; made by the first. One run at a time.",
            rich_help_panel=REJECT,
        ),
    ] = None
    delivered: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file for predictions that earlier runs withheld and that are given now.",
            rich_help_panel=REJECT,
        ),
    ] = None
    raw: Raw = False

    @property
    def margins(self) -> dict[str, float]:
        """The margins over the given predictions; none where nothing is refused."""
        return margins.margins_of(self, self.reject_margin, "--reject-margin")

    @property
    def fetches(self) -> bool:
        """Whether there is a place for answers to requests of earlier runs."""
        return self.state is None or self.json or self.delivered is not None


@command_of(PredictOptions)
def predict(given: PredictOptions) -> None:
    """Predict the label of every row, in the order of the file.

    No group is needed, except by a model that decides by the group as well: then the table needs
    the sensitive columns of training.

    Predictions cost no privacy: the model was made of answers that are released already.

    With --reject-margin or --within some rows get no prediction, so that the given ones stay within
    a margin; then the groups are needed.
    """
    _check(given)
    for option, place in (("--out", given.out), ("--delivered", given.delivered)):
        if place is not None:
            require_table_name(place, option)
            require_place(place, overwrite=given.overwrite)
    with progress_bars(time_left=True) as bars:
        bars.begin(f"predicting {given.new}")
        from evenhand.methods import load

        model = load(given.model, trusted=given.trust or ())
        table = read(given.new)
        kept = _kept(model, table, given)
        X = pictures.rows_of(model, table, given, bars)
        if given.margins:
            _hand_out_decided(_decide(model, X, table, given, bars), kept, given)
            return
        groups = _groups_of(model, table, given)
        labels = predictions(model, X, groups)
        shares = probabilities(model, X, groups) if given.proba else None
    _hand_out(given, kept, labels, shares, [str(name) for name in model.classes_])


def _kept(model: Any, table: TypedTable, given: PredictOptions) -> pd.DataFrame:
    """Return the columns that are copied, if any, with a row for each of the table."""
    import pandas as pd

    from evenhand._frames import DAYS

    names = tuple(dict.fromkeys(given.keep or ()))
    table.require(names, "which --keep names")
    own = {"prediction", "reason", "request", *map(_probability_of, model.classes_)}
    if taken := [name for name in names if name in own]:
        raise ValueError(
            f"--keep {taken[0]} names a column of {given.new}, and predict writes one of that name "
            f"itself. Rename it in the table, or leave it out."
        )
    index = pd.RangeIndex(len(table))
    kept = pd.DataFrame({name: table[name].values.set_axis(index) for name in names}, index)
    if days := [name for name in names if table[name].date_unit == "day"]:
        kept.attrs[DAYS] = days
    return kept


def _hand_out(
    given: PredictOptions, kept: pd.DataFrame, labels: Any, shares: Any, classes: list[str]
) -> None:
    """Write the predictions into the file, or on stdout."""
    n, out = len(labels), given.out
    if out is not None:
        if out.exists() and out.samefile(given.new):
            raise FileExistsError(f"{out} is the table to predict on. Choose another --out.")
        with whole_file(out, overwrite=given.overwrite) as made:
            write_table(_frame(kept, labels, shares, classes), made, raw=given.raw)
        note(f"{n} predictions are in {out}")
        if given.json:
            emit({"n_rows": n, "out": str(out)})
    elif given.json:
        found: dict[str, Any] = {"n_rows": n, **_for_machines(kept), "predictions": labels}
        if shares is not None:
            found |= {"classes": classes, "probabilities": shares}
        emit(found)
    else:
        write_table(_frame(kept, labels, shares, classes), None, raw=given.raw)


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


def _frame(kept: pd.DataFrame, labels: Any, shares: Any, classes: list[str]) -> pd.DataFrame:
    columns = {"prediction": labels}
    if shares is not None:
        columns |= {_probability_of(name): shares[:, i] for i, name in enumerate(classes)}
    return kept.assign(**columns)


def _probability_of(name: Any) -> str:
    return f"probability of {name}"


def _for_machines(kept: pd.DataFrame) -> dict[str, Any]:
    """Return the columns that are copied, for ``--json``; what JSON has no type for is text."""

    def value(cell: Any, gone: bool) -> Any:
        return None if gone else cell if isinstance(cell, str | bool | int | float) else str(cell)

    if not len(kept.columns):
        return {}
    cells = {
        name: list(map(value, column.tolist(), column.isna())) for name, column in kept.items()
    }
    return {"kept": cells}


# ---- with a reject option ------------------------------------------------------------


def _check(given: PredictOptions) -> None:
    """Check the options of ``predict`` against each other, before any file is read."""
    asked = given.margins
    if not asked:
        for name in ("state", "delivered", "reference", *margins.OF_TRUTH):
            if name in given.given:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(
                    f"{option} is of use only with --reject-margin or --within. Add one, for "
                    f"example --reject-margin 0.02, or leave {option} out."
                )
        return
    margins.check(given, asked)
    if given.proba:
        raise ValueError(
            "--proba does not go together with --reject-margin or --within: the probabilities of a "
            "refused row tell its label. Leave one of them out."
        )
    if given.delivered is not None and given.state is None:
        raise ValueError(
            "--delivered is for answers to requests of earlier runs, and without --state there "
            "are none. Add --state, or leave --delivered out."
        )
    if given.state is not None and not given.state.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"The folder {given.state.absolute().parent} of --state does not exist. Make it first."
        )
    _refuse_one_place_for_two(
        NEW=given.new,
        calibration=given.calibration,
        out=given.out,
        state=given.state,
        delivered=given.delivered,
    )


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What became of the rows; a prediction is None where none is given."""

    option: RejectOptionClassifier
    predictions: list[Any]
    reasons: list[str]
    requests: list[int]
    delivered: dict[int, Any]
    waiting: int

    def frame(self, kept: pd.DataFrame) -> pd.DataFrame:
        """Return a row for each row of the table; an empty prediction is a refusal."""
        import pandas as pd

        return kept.assign(
            prediction=pd.Series(self.predictions, dtype=object),
            reason=self.reasons,
            request=self.requests,
        )

    def delivered_frame(self) -> pd.DataFrame:
        """Return the answers to requests of earlier runs."""
        import pandas as pd

        return pd.DataFrame(
            {
                "request": list(self.delivered),
                "prediction": pd.Series(list(self.delivered.values()), dtype=object),
            }
        )

    def rows_for_machines(self) -> dict[str, Any]:
        """Return the decisions for ``--json``."""
        return {
            "predictions": self.predictions,
            "reasons": self.reasons,
            "requests": self.requests,
        }

    def facts_for_machines(self) -> dict[str, Any]:
        """Return the counts, and what was fetched, for ``--json``."""
        return {
            "n_answered": self.reasons.count("answered"),
            "delivered": [
                {"request": number, "prediction": label} for number, label in self.delivered.items()
            ],
            "margin": self.option.margin,
            "gap": self.option.gap_,
            "margins": [kept.to_dict() for kept in self.option.reject_option_.kept],
            "coverage": {
                "classes": [str(name) for name in self.option.classes_],
                **self.option.coverage_.to_dict(),
            },
            "most_refused": self.option.coverage_.most_refused(
                [str(name) for name in self.option.classes_]
            ),
        }

    def say(self, state: Path | None) -> None:
        """Tell the person at the terminal, on stderr."""
        table = self.option.coverage_
        since = "" if state is None else f" (counted since {state} was begun)"
        note(f"{self.reasons.count('answered')} of {len(self.reasons)} rows are answered")
        for kept in self.option.reject_option_.kept:
            note(f"{kept.words}{since}")
        for z, group in enumerate(table.names):
            cells = [
                f"{name} {table.given[z, k]} of {table.offered[z, k]}"
                for k, name in enumerate(self.option.classes_)
            ]
            note(f"given to {group}: {', '.join(cells)}")
        note(table.most_refused([str(name) for name in self.option.classes_]))
        if withheld := self.reasons.count("withheld"):
            later = "" if state is not None else "; with --state a later run may answer them"
            note(f"{withheld} rows are withheld until enough answers of their group fit{later}")
        if self.waiting:
            note(
                f"{self.waiting} answers to requests of earlier runs are released and count as "
                f"given: fetch them with --delivered FILE"
            )


def _around_what(fitted: Any) -> str:
    """Return the way out, where a model of its own stands inside the thresholds."""
    words = ", or train without --group-thresholds and put the reject option around that model"
    return words if fitted.fitted_.inside is not None else ""


def _decide(fitted: Any, X: Any, table: TypedTable, given: PredictOptions, bars: Bars) -> Decided:
    """Decide on the rows of a table, in their order; counts go on from a saved state."""
    from evenhand.fairness.gate.decisions import Verdict

    if fitted.needs_group_at_prediction_:
        raise ValueError(
            "--reject-margin and --within go with a model that decides without the group, and this "
            f"one keeps a margin by the group. Leave it out{_around_what(fitted)}."
        )
    known, new = Training.read(given.model), given.new
    columns = _columns(known, tuple(given.sensitive or ()))
    same = known is None or columns == known.sensitive
    grouping = known.grouping if known is not None and same else None
    asked = group_columns(table, columns, are_known=bool(same and fitted.groups_))
    features = sensitive_features(asked, grouping, new)
    option = margins.reject_option(
        fitted,
        given,
        given.margins,
        groups=fitted.groups_ if same and fitted.groups_ else _groups(features, given.state),
        columns=columns,
        grouping=grouping,
        rows_of=lambda rows: pictures.rows_of(fitted, rows, given, bars),
    )
    if given.state is not None and given.state.exists():
        with as_bad_input(ValueError, where=str(given.state)):
            option.load_state(given.state)
    with as_bad_input(ValueError, where=str(new)):
        result = option.decide(X, sensitive_features=features)
    first = int(result.ids[0])
    fetched = option.deliver() if given.fetches else {}
    own = {number: label for number, label in fetched.items() if number >= first}
    predictions, reasons = [], []
    for number, label, reason in zip(
        result.ids.tolist(), result.labels.tolist(), result.reasons.tolist(), strict=True
    ):
        verdict = Verdict.ANSWERED if number in own else Verdict(reason)
        answered = verdict == Verdict.ANSWERED
        predictions.append(own.get(number, label) if answered else None)
        reasons.append(verdict.name.lower().replace("_", " "))
    return Decided(
        option=option,
        predictions=predictions,
        reasons=reasons,
        requests=result.ids.tolist(),
        delivered={number: label for number, label in fetched.items() if number < first},
        waiting=0 if given.fetches else result.n_released,
    )


def _groups_of(fitted: Any, table: TypedTable, given: PredictOptions) -> Any:
    """Return the groups of the rows, where the model needs them to predict; else None."""
    if not fitted.needs_group_at_prediction_:
        if given.sensitive:
            raise ValueError(
                "--sensitive is of use only with --reject-margin or --within, or for a model that "
                "decides by the group: this one needs no group. Add --reject-margin 0.02, or leave "
                "--sensitive out."
            )
        return None
    known, new = Training.read(given.model), given.new
    columns = _columns(known, tuple(given.sensitive or ()))
    grouping = known.grouping if known is not None and columns == known.sensitive else None
    asked = group_columns(table, columns, are_known=True)
    features = sensitive_features(asked, grouping, new)
    with as_bad_input(ValueError, where=str(new)):
        from evenhand.fairness.groups import encode_groups

        encode_groups(features, names=fitted.groups_)
    return features


def _refuse_one_place_for_two(**places: Path | None) -> None:
    """Raise ValueError if two options name the same file."""
    taken: dict[Path, str] = {}
    for name, path in places.items():
        if path is None:
            continue
        option = name if name.isupper() else f"--{name}"
        other = taken.setdefault(path.resolve(), option)
        if other != option:
            raise ValueError(f"{path} is named by {other} and by {option}. Choose another file.")


def _hand_out_decided(decided: Decided, kept: pd.DataFrame, given: PredictOptions) -> None:
    """Save the counts, then give the predictions: none is given that is not counted."""
    out, overwrite, raw = given.out, given.overwrite, given.raw
    with ExitStack() as whole:
        if out is not None:
            made = whole.enter_context(whole_file(out, overwrite=overwrite))
            write_table(decided.frame(kept), made, raw=raw)
        if given.delivered is not None:
            made = whole.enter_context(whole_file(given.delivered, overwrite=overwrite))
            write_table(decided.delivered_frame(), made, raw=raw)
        if given.state is not None:
            decided.option.save_state(given.state)
    said: dict[str, Any] = {"n_rows": len(decided.requests)}
    if out is not None:
        said["out"] = str(out)
        note(f"{len(decided.requests)} rows are in {out}")
    else:
        said |= _for_machines(kept) | decided.rows_for_machines()
    margins.say_calibrated(decided.option, given)
    decided.say(given.state)
    if given.json:
        emit(said | decided.facts_for_machines())
    elif out is None:
        write_table(decided.frame(kept), None, raw=raw)


def _columns(known: Training | None, named: tuple[str, ...]) -> tuple[str, ...]:
    """Take the columns that were named, or those of training."""
    remembered = () if known is None else known.sensitive
    if not named and not remembered:
        raise ValueError(
            "--sensitive is missing: a margin is kept between groups, and training named none. "
            "Name the column of the groups."
        )
    same = not named or set(named) == set(remembered)
    return remembered if same else named  # in the order in which groups were named


def _groups(features: Any, state: Path | None) -> list[str]:
    """Take the groups of the saved state, or those of the table, where the model knows none."""
    from evenhand.fairness.gate import StateFile
    from evenhand.fairness.groups import encode_groups

    if state is not None and state.exists():
        return [str(name) for name in StateFile(state).read().get("groups", ())]
    found = list(encode_groups(features).names)
    note(f"the model knows no groups; those of the table are taken: {', '.join(found)}")
    return found
