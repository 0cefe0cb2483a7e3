"""``evenhand card``: the record of a model or generator in the words of registries and rules."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand.cli.command import command_of, read_toml
from evenhand.cli.console import note, progress_bars
from evenhand.cli.evaluate import Asked, Measures, read_asked
from evenhand.cli.options import choice
from evenhand.cli.output import Training, whole_file

if TYPE_CHECKING:
    from evenhand.report.card.record import ImpactTable

FORMATS: Final = ("html", "md", "yaml", "json")


@dataclass(frozen=True, kw_only=True)
class CardOptions(Measures):
    """What a run of ``evenhand card`` was asked to do."""

    card: Annotated[
        Path | None,
        typer.Option(
            metavar="CARD.toml",
            help="What the model does not know: a table per section, a key per blank. Unknown keys "
            "are refused.",
            show_default="every blank stays marked",
        ),
    ] = None
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="TEST",
            help="Labelled rows for impact ratios: CSV (also .gz) or Parquet. The counts on the "
            "card are then exact, and no guarantee covers them.",
            show_default="nothing is measured",
        ),
    ] = None
    format: Annotated[
        str,
        choice(
            FORMATS,
            help="A page, Markdown, the entry for the registry of deployments alone, or all of it "
            "for machines.",
        ),
    ] = "html"
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it to this file.", show_default="printed"),
    ] = None


@command_of(CardOptions)
def card(given: CardOptions) -> None:
    """Write the card of a model or a generator: privacy registry, NIST questions, rules.

    Every answer follows from its claim, ledger and settings; a model's card has impact ratios too
    (--data). What they cannot know is a marked blank that --card fills. It is no legal advice.
    """
    from evenhand.report.card.content import QUESTIONS, ModelCard
    from evenhand.report.card.formats import written
    from evenhand.report.card.questions import read_filled

    form = "json" if given.json else given.format
    filled = (
        {} if given.card is None else read_filled(read_toml(given.card), QUESTIONS, str(given.card))
    )
    with progress_bars(time_left=True) as bars:
        model, known = _read(given)
        asked = None
        impact: tuple[ImpactTable, ...] = ()
        if given.data is not None:
            bars.begin(f"measuring on {given.data}")
            asked = read_asked(given, given.data, model, bars)
            impact = impact_tables(model, asked)
        made = ModelCard.of(
            model,
            measured=None if asked is None else asked.measured,
            impact=impact,
            data="" if given.data is None else given.data.name,
            sensitive=asked.roles.sensitive if asked else () if known is None else known.sensitive,
            filled=filled,
            saved_by=_saved_by(given.model),
        )
    text = written(made, form)
    if given.out is None:
        sys.stdout.write(text)
    else:
        with whole_file(given.out, overwrite=given.overwrite) as place:
            place.write_text(text, encoding="utf-8", newline="\n")
        note(f"the card is in {given.out}")
    if made.n_blank:
        note(f"{made.n_blank} blanks of the card can be filled with --card CARD.toml")


def _read(given: CardOptions) -> tuple[Any, Training | None]:
    """Read the folder of a model, and what is remembered of its training; or of a generator."""
    from evenhand._folder import kind_of
    from evenhand.generators import load as load_generator
    from evenhand.generators.saving import KIND
    from evenhand.methods import load

    if kind_of(given.model) != KIND:
        return load(given.model, trusted=given.trust or ()), Training.read(given.model)
    if given.data is not None:
        raise ValueError(
            f"{given.model} is a generator, which selects nobody: it has no impact ratios. Leave "
            f"--data out, or measure a model that learned from its records."
        )
    return load_generator(given.model, trusted=given.trust or ()), None


def impact_tables(model: Any, asked: Asked) -> tuple[ImpactTable, ...]:
    """Return selection rates and impact ratios by each sensitive column, and by all together."""
    import numpy as np

    from evenhand._numerals import text_of
    from evenhand.cli.predict import predictions, probabilities
    from evenhand.fairness.groups import encode_groups
    from evenhand.fairness.impact import impact_ratios
    from evenhand.fairness.tally import Tally
    from evenhand.report.card.record import ImpactTable

    trial, groups = asked.trial, asked.trial.groups
    if groups is None:
        return ()
    known = groups if asked.same_groups else None
    names = [text_of(name) for name in model.classes_.tolist()]
    positive = asked.measured.positive
    if positive is None:
        raise ValueError(
            f"Impact ratios need one class that counts as being selected, and this model has "
            f"{len(names)}. Name it with --positive: {', '.join(names)}."
        )
    decided = [text_of(label) for label in predictions(model, trial.X, known).tolist()]
    chosen = {f"predicted {names[positive]}": np.array([d == names[positive] for d in decided])}
    if len(names) == 2 and hasattr(model, "predict_proba"):
        scores = probabilities(model, trial.X, known)[:, positive]
        chosen["score above the median"] = scores > np.median(scores)
    by: dict[str, Any] = {", ".join(asked.roles.sensitive): groups}
    if getattr(groups, "ndim", 1) == 2 and groups.shape[1] > 1:
        by = {str(name): groups[name] for name in groups} | by
    made, units = [], trial.unit_codes
    for column, values in by.items():
        coded = encode_groups(values)
        for selected, is_selected in chosen.items():
            decided_so = is_selected.astype(np.int64)
            tally = Tally.of(coded.codes, decided_so, len(coded.names), 2, units=units)
            rows = impact_ratios(tally, 1, coded.names)
            made.append(ImpactTable(by=column, selected=selected, rows=rows))
    return tuple(made)


def _saved_by(folder: Path) -> str:
    """Return the version that wrote a folder, as its manifest says; ``load`` has checked that."""
    from evenhand._folder import MANIFEST

    head = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return str(head.get("evenhand", ""))
