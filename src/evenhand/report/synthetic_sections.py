"""The sections of the page on synthetic data, in the order they are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenhand.fairness import Estimate
from evenhand.generators import ModelUtility
from evenhand.generators.tables.fidelity import worst_pairs
from evenhand.report import synthetic_figures as figures
from evenhand.report.claim import covered
from evenhand.report.frames import between, framed
from evenhand.report.htmltext import pairs, table, text

if TYPE_CHECKING:
    from evenhand.report.generated import GeneratorReport
    from evenhand.report.synthetic import SyntheticReport

NOT_COVERED = (
    "Not covered by the guarantee. These numbers were measured on real rows without noise; "
    "publishing them says something about the people in those rows."
)


_NO_NOISE = 1e12  # a ratio above it is that of a reference without noise


def privacy_tiles(report: GeneratorReport) -> list[tuple[str, str, str]]:
    """Return the claim and the signal-to-noise, as they are read first."""
    guarantee = report.guarantee
    return [
        (
            "Privacy",
            f"ε = {guarantee.epsilon:g}" if guarantee.holds else "none",
            f"at δ = {guarantee.delta:g}, for each {guarantee.unit} ({guarantee.neighbors})"
            if guarantee.holds
            else "the noise of this run protects nobody",
        ),
        (
            "Signal-to-noise",
            _ratio(report.snr.value),
            f"as predicted: {report.snr.formula}; below 50 is poor",
        ),
    ]


def _ratio(value: float) -> str:
    if value > _NO_NOISE:
        return "no noise"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def glance(report: SyntheticReport) -> str:
    """Return the numbers that are read first."""
    shown, found = privacy_tiles(report), report.evaluation
    if found is not None:
        shown += [
            (
                "Groups",
                f"{found.balance.kl.value:.4f}",
                "KL distance from even groups, in nats; of the real rows "
                f"{found.real_balance.kl.value:.4f}",
            ),
            (
                "AUROC on real rows",
                f"{found.mean('auroc'):.3f}",
                f"mean of {sum(u.trained_on == 'synthetic' for u in found.utility)} models trained "
                "on synthetic rows; not covered",
            ),
            (
                "Equalized odds gap",
                f"{found.mean('equalized_odds_pairwise'):.3f}",
                "of these models, between two groups; not covered",
            ),
            (
                "Fidelity",
                f"{found.fidelity.column_score:.3f}",
                f"of columns, and {found.fidelity.pair_score:.3f} of pairs; 1 is best",
            ),
        ]
    return tiles(shown)


def tiles(shown: Iterable[tuple[str, str, str]]) -> str:
    """Return names with a large number and a note each."""
    inside = "".join(
        f'<div><dt>{text(name)}</dt><dd><span class="figure">{text(value)}</span>'
        f'<span class="note">{text(note)}</span></dd></div>'
        for name, value, note in shown
    )
    return f'<dl class="glance">{inside}</dl>'


def columns(report: SyntheticReport) -> str:
    """Return a panel per column."""
    beside = any(view.real is not None for view in report.columns)
    rows = [
        (
            view.name,
            "numbers" if view.numeric else "categories",
            *(() if view.missing[1] is None else (f"{view.missing[1]:.1%}",)),
            f"{view.missing[0]:.1%}",
        )
        for view in report.columns
    ]
    head = ("Column", "Kind", *(("missing, real",) if beside else ()), "missing, synthetic")
    return (
        cover(report, measured=beside)
        + "<p>Drawn as often as it was learnt, without balance, so that the columns can be "
        + ("compared with real test rows." if beside else "read as those of the table.")
        + "</p>"
        + framed(
            "columns-chart",
            "Share of the rows by value",
            "One panel per column; rare categories are joined.",
            figures.columns(report.columns),
        )
        + table("Missing values", head, rows, 2 if beside else 1)
    )


def balance(report: SyntheticReport) -> str:
    """Return the shares of labels and groups."""
    found = report.evaluation
    learnt = dict(report.shares)
    made = {} if found is None else dict(found.balance.cells)
    real = {} if found is None else dict(found.real_balance.cells)
    names = list(learnt) + [name for name in {**made, **real} if name not in learnt]
    rows = [(n, learnt.get(n), made.get(n), real.get(n)) for n in names]
    drawn = [(n, a or 0.0, b, c) for n, a, b, c in rows]
    out = cover(report, measured=found is not None)
    if found is not None:
        out += pairs(
            (
                (
                    "KL(p(s) || uniform)",
                    f"{found.balance.kl.value:.5f} nats of the synthetic rows (interval "
                    f"{found.balance.kl.low:.5f} to {found.balance.kl.high:.5f}), "
                    f"{found.real_balance.kl.value:.5f} of the real ones",
                ),
                (
                    "Distribution disparity",
                    f"{found.balance.disparity.value:.4f} of the synthetic rows, "
                    f"{found.real_balance.disparity.value:.4f} of the real ones (L2 distance from "
                    f"even groups)",
                ),
            )
        )
    return (
        out
        + framed(
            "balance-chart",
            "Share of every combination of label and group",
            "Synthetic rows have the shares that were asked for, to a row.",
            figures.shares(drawn),
        )
        + table(
            "Shares",
            ("Label and group", "learnt, by noisy counts", "synthetic rows", "real test rows"),
            [(n, *(percent(v) for v in values)) for n, *values in rows],
            3,
        )
    )


def utility(report: SyntheticReport) -> str:
    """Return how models do; nothing where nothing was measured."""
    found = report.evaluation
    if found is None:
        return ""
    seen = "see" if found.use_sensitive else "do not see"
    return (
        cover(report, measured=True)
        + f"<p>Each model was trained on {found.n_synthetic:,} synthetic rows and tested on "
        f"{found.n_test:,} real ones. The models {seen} the sensitive column"
        f"{'s' if len(found.sensitive) > 1 else ''}.</p>"
        + model_numbers(found.utility, "Models", "rows")
    )


def model_numbers(found: Sequence[ModelUtility], called: str, on: str) -> str:
    """Return the chart and the table of models; ``on`` is what they were trained on."""
    gaps = ("demographic_parity", "equalized_odds", "error_parity")
    rows = [
        (
            u.model,
            u.trained_on,
            _told(u.auroc),
            _told(u.accuracy),
            *(f"{u.gaps[f'{gap}_pairwise'].value:.3f}" for gap in gaps),
            *(f"{u.gaps[f'{gap}_overall'].value:.3f}" for gap in gaps),
        )
        for u in found
    ]
    return framed(
        "utility-chart",
        f"{called} trained on synthetic {on}, tested on real ones",
        "With 95 % intervals.",
        figures.utility(found, on),
    ) + table(
        f"{called} (gaps: largest difference of two groups, and from everybody)",
        (
            called.removesuffix("s"),
            "trained on",
            "AUROC",
            "accuracy",
            "demographic",
            "equalized odds",
            "accuracy gap",
            "demographic, overall",
            "equalized odds, overall",
            "accuracy gap, overall",
        ),
        rows,
        8,
    )


def fidelity(report: SyntheticReport) -> str:
    """Return scores by column and the worst pairs; nothing where nothing was measured."""
    found = report.evaluation
    if found is None:
        return ""
    near = found.fidelity
    return (
        cover(report, measured=True)
        + "<p>Numbers: one minus the Kolmogorov-Smirnov distance. Categories: one minus the total "
        "variation distance. Pairs: correlation or contingency similarity. The definitions are "
        "those of SDMetrics; 1 is best.</p>"
        + table(
            "Columns",
            ("Column", "Kind", "score"),
            [(c.name, c.kind, _score(c.score)) for c in near.columns],
            1,
        )
        + table(
            "The pairs that differ most",
            ("First", "Second", "score"),
            [(p.first, p.second, _score(p.score)) for p in worst_pairs(near)],
            1,
        )
    )


def settings(report: GeneratorReport) -> str:
    """Return the arguments of the generator."""
    return (
        f"<p>Arguments of <code>{text(report.method)}</code>. They are treated as public, so they "
        "must not have been chosen by looking at private data.</p>"
        f'<div class="settings">{pairs(report.settings)}</div>'
    )


def how_to_use(report: SyntheticReport) -> str:
    """Return how to load the generator and draw."""
    return (
        "<p>A generator is a folder of plain files: JSON and arrays, no executable code. Drawing "
        "rows costs no privacy.</p>"
        '<pre tabindex="0" aria-label="Python code"><code>'
        "from evenhand.generators import load_synthesizer\n\n"
        'generator = load_synthesizer("generator")   # the folder that save() wrote\n'
        "print(generator.guarantee_)                  # the claim, as printed above\n"
        "rows = generator.sample(10_000)              # labels and groups spread evenly"
        "</code></pre>"
    )


def cover(report: GeneratorReport, *, measured: bool) -> str:
    """Return whether what follows is covered by the guarantee, as a sentence."""
    words = NOT_COVERED if measured else covered(report.guarantee)
    kind = "covered" if report.guarantee.holds and not measured else "uncovered"
    return f'<p class="cover {kind}">{text(words)}</p>'


def percent(value: float | None) -> str:
    """Return a share; nothing for none."""
    return "" if value is None else f"{value:.2%}"


def _told(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} ({between(estimate, 3)})"


def _score(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.3f}"
