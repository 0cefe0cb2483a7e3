"""The sections of the page on synthetic pictures that are not those of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.generators.images import Judged
from evenhand.report import synthetic_figures as figures
from evenhand.report.frames import framed
from evenhand.report.htmltext import pairs, table, text
from evenhand.report.pictures import strip
from evenhand.report.synthetic_sections import (
    cover,
    model_numbers,
    percent,
    privacy_tiles,
    tiles,
)

if TYPE_CHECKING:
    from evenhand.report.images import ImageReport


def glance(report: ImageReport) -> str:
    """Return the numbers that are read first."""
    shown = privacy_tiles(report)
    found = report.evaluation
    if found is not None and found.judged is not None:
        shown.append(
            (
                "Groups shown",
                f"{found.judged.balance.kl.value:.4f}",
                f"KL distance from even groups, in nats, by a classifier that is right for "
                f"{found.judged.accuracy:.1%}; of the real pictures "
                f"{found.real_balance.kl.value:.4f}",
            )
        )
    if found is not None and found.utility:
        n = sum(u.trained_on == "synthetic" for u in found.utility)
        named = f"mean of {n} networks trained on synthetic pictures; not covered"
        shown += [
            ("Accuracy on real pictures", f"{found.mean('accuracy'):.3f}", named),
            (
                "Equalized odds gap",
                f"{found.mean('equalized_odds_pairwise'):.3f}",
                "of these networks, between two groups; not covered",
            ),
        ]
    return tiles(shown)


def pictures(report: ImageReport) -> str:
    """Return a strip of pictures per combination of label and group, beside real ones."""
    beside = any(row.real is not None for row in report.strips)
    out = [cover(report, measured=beside)]
    if beside:
        out.append(
            "<p>The real pictures are of people or things in the test part: a page that shows them "
            "publishes them.</p>"
        )
    for row in report.strips:
        out.append(f"<h3>{text(row.words)}</h3>")
        if row.synthetic is None:
            out.append(
                "<p>None: no picture of this combination can be told from the noise, so none is "
                "drawn.</p>"
            )
        else:
            out.append(_captioned("synthetic", strip(row.synthetic, f"synthetic: {row.words}")))
        if row.real is not None:
            out.append(_captioned("real", strip(row.real, f"real: {row.words}")))
    return "".join(out)


def balance(report: ImageReport) -> str:
    """Return the shares of labels and groups, as asked for and as shown."""
    found = report.evaluation
    learnt = dict(report.shares)
    rows = list(learnt.items())
    out = cover(report, measured=False)
    out += "<p>Samples have the shares that are asked for, to a picture.</p>" + framed(
        "balance-chart",
        "Share of every combination of label and group",
        "As learnt, by noisy counts.",
        figures.shares([(name, value, None, None) for name, value in rows]),
        table("Shares", ("Label and group", "learnt"), [(n, percent(v)) for n, v in rows], 1),
    )
    if found is None:
        return out
    out += cover(report, measured=True)
    out += pairs(
        [
            *(
                []
                if found.balance is None
                else [("Groups that were asked for", _kl(found.balance.kl.value))]
            ),
            *([] if found.judged is None else [("Groups that are shown", _shown(found.judged))]),
            ("Groups of the test pictures", _kl(found.real_balance.kl.value)),
        ]
    )
    if found.judged is not None:
        real = dict(found.real_balance.groups)
        asked = {} if found.balance is None else dict(found.balance.groups)
        out += table(
            "Share of every group",
            ("Group", "asked for", "shown", "real test pictures"),
            [
                (name, percent(asked.get(name)), percent(value), percent(real.get(name)))
                for name, value in found.judged.balance.groups
            ],
            3,
        )
    return out


def utility(report: ImageReport) -> str:
    """Return how networks do; nothing where nothing was measured."""
    found = report.evaluation
    if found is None or not found.utility:
        return ""
    return (
        cover(report, measured=True)
        + f"<p>Each network was trained on {found.n_synthetic:,} synthetic pictures and tested on "
        f"{found.n_test:,} real ones. It does not see the group.</p>"
        + model_numbers(found.utility, "Networks", "pictures")
    )


def distances(report: ImageReport) -> str:
    """Return distances in the features of a network; nothing where none were measured."""
    found = report.evaluation
    if found is None or not found.distances:
        return ""
    name = found.distances[0].name
    own = (
        "<p>These are not FIDs, which are made of the features of another network, and must not be "
        "put beside published ones.</p>"
        if name != "FID"
        else ""
    )
    return (
        cover(report, measured=True)
        + own
        + "<p>A distance of few pictures is too large: compare those of the same number only. KID "
        "has no such bias, and is near 0 where there is no difference.</p>"
        + table(
            "Distance from real test pictures",
            ("Label and group", "pictures on either side", name, "KID"),
            [(d.group, f"{d.n:,}", f"{d.frechet:.1f}", f"{d.kid:.4f}") for d in found.distances],
            3,
        )
    )


def how_to_use(report: ImageReport) -> str:
    """Return how to load the generator and draw."""
    return (
        "<p>A generator is a folder of plain files: JSON and arrays, no executable code. Drawing "
        "pictures costs no privacy.</p>"
        '<pre tabindex="0" aria-label="Python code"><code>'
        "from evenhand.generators.images import load_image_synthesizer\n\n"
        'generator = load_image_synthesizer("generator")   # the folder that save() wrote\n'
        "print(generator.guarantee_)                        # the claim, as printed above\n"
        "drawn = generator.sample(10_000)                   # labels and groups spread evenly\n"
        "drawn.images, drawn.y, drawn.sensitive_features"
        "</code></pre>"
    )


def _captioned(words: str, picture: str) -> str:
    return f'<div class="pictures"><span>{text(words)}</span>{picture}</div>'


def _kl(value: float) -> str:
    return f"{value:.5f} nats from even ones (KL)"


def _shown(judged: Judged) -> str:
    said = (
        f"{_kl(judged.balance.kl.value)}, by a classifier that is right for {judged.accuracy:.1%}"
    )
    if judged.agreement == judged.agreement:  # NaN where nothing was asked for
        said += f"; {judged.agreement:.1%} show the group that was asked for"
    return said
