"""``evenhand plan``: what a vote of so many owners is likely to be worth, before any is asked."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.cli import options
from evenhand.cli.console import emit, progress_bars, show, table
from evenhand.cli.options import choice


def plan(
    owners: Annotated[int, typer.Option(min=1, help="Owners that would vote.")],
    rows: Annotated[int, typer.Option(min=1, help="Public rows that they would be asked about.")],
    epsilon: Annotated[float, typer.Option(help="What the model may cost each unit.")],
    delta: Annotated[float, typer.Option(help="Chance that the bound fails.")] = 1e-5,
    records: Annotated[int, typer.Option(min=1, help="Records of an owner.")] = 100,
    teachers: Annotated[
        int, typer.Option(min=1, help="Teachers of each owner, on disjoint parts.")
    ] = 1,
    unit: Annotated[str, choice(("owner", "record"), help="Whom the claim protects.")] = "owner",
    columns: Annotated[int, typer.Option(min=1, help="Features.")] = 10,
    ceiling: Annotated[
        float, typer.Option(help="Accuracy of the best rule that there is: how hard it is.")
    ] = 0.85,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Say how accurate a model of votes would be, and how many owners it needs.

    Simulated on made-up owners from these numbers alone: no file is read and nothing is spent. Real
    owners differ from each other, so a vote of them is likely to be worth less.
    """
    with progress_bars() as bars:
        bars.begin("simulating")
        from evenhand.estimators.planned_votes import Setting, plan_votes

        setting = Setting(
            n_owners=owners,
            n_rows=rows,
            epsilon=epsilon,
            delta=delta,
            n_records=records,
            n_teachers=teachers,
            unit=unit,
            n_columns=columns,
            ceiling=ceiling,
        )
        found = plan_votes(
            setting,
            seed=seed or 0,
            progress=lambda done, total: bars("simulating", done, total),
        )
    if json:
        emit(found.to_dict())
        return
    lines = [
        (f"{one.n_owners:,}", f"{one.accuracy:.3f} ± {one.half_width:.3f}")
        for one in found.expected
    ]
    enough = (
        f"At least {found.least:,} owners are needed to be better than an owner alone."
        if found.least is not None
        else f"Not even {found.expected[-1].n_owners:,} owners are better than an owner alone: "
        f"raise --epsilon, or ask about a simpler question."
    )
    verdict = "more" if found.asked.accuracy > found.alone else "no more"
    show(
        table(("owners", "accuracy of the model of their votes"), lines),
        f"With {owners:,} owners an accuracy of {found.asked.accuracy:.3f} is expected: {verdict} "
        f"than the {found.alone:.3f} of an owner alone. {enough}",
    )
