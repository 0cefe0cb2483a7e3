"""``evenhand demo``: real data, a model and a report in under a minute."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from evenhand._roles import Roles
from evenhand.cli import options, results
from evenhand.cli.command import Options, command_of
from evenhand.cli.console import progress_bars
from evenhand.cli.output import Training, require_free_or_demo, write_model_folder

SHOWS: Final = (
    "Method fair-shares: the demo shows the ensemble of teachers. evenhand train chooses a method "
    "by the case, and would take dpsgd for this table."
)


@dataclass(frozen=True, kw_only=True)
class DemoOptions(Options):
    """What a run of ``evenhand demo`` was asked to do."""

    epsilon: options.Epsilon = 3.0
    delta: options.Delta = 1e-5
    noise: options.NoiseName = "exact"
    margin: options.Margin = 0.05
    reference: options.Reference = "rest"
    n_teachers: options.NTeachers = None
    seed: options.Seed = 0
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the model and its report. The folder of an earlier demo is replaced; "
            "any other that is not empty is refused.",
        ),
    ] = Path("evenhand-demo")
    json: options.Json = False


@command_of(DemoOptions)
def demo(given: DemoOptions) -> None:
    """Train on Adult (census income, groups by sex), and measure the model on its test rows.

    The demo shows an ensemble of teachers, whatever fits the table best; train chooses by the case.

    Takes about ten seconds once the data are here; they are fetched the first time (5 MB).
    """
    started = time.perf_counter()
    require_free_or_demo(given.out)
    with progress_bars() as bars:
        bars.begin("reading Adult")
        from evenhand.baselines import NonPrivateClassifier
        from evenhand.datasets import fetch, load_adult
        from evenhand.datasets.columns import TypedTable
        from evenhand.estimators import FairSharesClassifier
        from evenhand.fairness import DemographicParity
        from evenhand.privacy import Budget
        from evenhand.report import write_report

        model = FairSharesClassifier(
            budget=Budget(epsilon=given.epsilon, delta=given.delta),
            fairness=DemographicParity(margin=given.margin, reference=given.reference),
            n_teachers=given.n_teachers,
            noise=options.noise(given.noise),
            random_state=given.seed,
        )
        fetch("adult", progress=bars.say)
        data = load_adult()
        split = data.split(public=0.2, test=0.25, random_state=given.seed)
        assert split.private.y is not None
        assert split.test.y is not None
        model.fit(
            split.private.X,
            split.private.y,
            X_public=split.public.X,
            sensitive_features_public=split.public.groups,
            progress=bars,
        )
        bars.begin("training without privacy, to compare: Adult is public")
        plain = NonPrivateClassifier(random_state=given.seed)
        plain.fit(split.private.X, split.private.y, X_public=split.public.X)
        bars.begin("measuring and writing")
        trial = results.Trial(
            X=TypedTable(split.test.X), y=split.test.y, groups=split.test.groups, path=Path("Adult")
        )
        measured = results.measure(model, trial, positive="1", without_privacy=plain)
        write_model_folder(
            model,
            given.out,
            training=Training.of(
                "demo",
                Roles(label=data.label, sensitive=data.sensitive),
                reference=given.reference,
                margin=given.margin,
                positive="1",
            ),
            write_report=lambda path: write_report(model, path, dataset=data, measured=measured),
            replace_demo=True,
        )
    found = results.of_measured(measured, given.reference)
    summary = results.of_run(model, measured, given.reference) | {
        "dataset": data.name,
        "error": found["error"],
        "error_interval": found["error_interval"],
        "demographic_parity_gap": found["demographic_parity_gap"],
        "gap_interval": found["gap_interval"],
        "model": str(given.out),
        "wall_s": time.perf_counter() - started,
    }
    results.show_run(
        model,
        summary,
        measured,
        given.reference,
        SHOWS,
        f"The model, its claim and report.html are in {given.out} ({summary['wall_s']:.1f} s). "
        f"Open {given.out / 'report.html'} in a browser.",
        json=given.json,
    )
