"""The pieces of the page, as HTML in which every text from outside is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand._version import __version__
from evenhand.frontier.cost import NOT_COVERED, ReleaseCost
from evenhand.frontier.run import Run
from evenhand.report.htmltext import table, text

LIMITS = (
    ("epsilon", "Largest epsilon"),
    ("gap", "Largest gap"),
    ("accuracy", "Smallest accuracy"),
    ("coverage", "Smallest coverage"),
)
"""The four limits, in the order and the words of the page."""

LISTED_WITHOUT_SCRIPT = 40
NUMBERS = ("gap", "accuracy", "majority", "free", "coverage")


def head(title: str, runs: Sequence[Run], told: Mapping[str, Any]) -> str:
    """Return the title, and what is on the page in one line."""
    n, m = len(runs), len(told["settings"]["method"]) + told["left_out"]
    data = ", ".join(dict.fromkeys(run.setting.data for run in runs))
    methods = len({run.setting.method for run in runs})
    return (
        f'<p class="kind">Frontier · evenhand {text(__version__)} · {text(data)} · '
        f"{_many(methods, 'method')} · {_many(m, 'setting')} · {_many(n, 'run')}</p>"
        f"<h1>{text(title)}</h1>"
    )


def notices(
    runs: Sequence[Run], told: Mapping[str, Any], *, cost: ReleaseCost, stand_in: str | None
) -> str:
    """Return what must be known before anything is chosen."""
    kinds = Counter(run.data_kind for run in runs)
    measured = Counter(run.measured_on for run in runs)
    n = len(runs)
    stand_ins = kinds["public stand-in"] + kinds["synthetic stand-in"]
    if stand_in and not stand_ins:
        raise ValueError(
            f"stand_in={stand_in!r} names stand-in data, but no run learned from any: none has "
            f"data_kind='public stand-in' or 'synthetic stand-in'. Leave stand_in out."
        )
    out = []
    if cost.parts:
        out.append(
            _notice(
                "Publishing this page has a price",
                f"{_of(kinds['private'], n)} learned from private rows. Each is a release of its "
                "own: showing them all costs what they cost together, and not the epsilon of the "
                f"one that is chosen. {_sentence('; '.join(map(str, cost.parts)))} "
                f"{_sentence(NOT_COVERED)}",
                warn=True,
            )
        )
    if stand_ins:
        what = f" ({stand_in})" if stand_in else ""
        out.append(
            _notice(
                "Made on stand-in data",
                f"{_of(stand_ins, n)} learned from stand-in data{what}, not from the private data "
                "that a model would learn from. They tell what to expect. What is chosen here "
                "still has to be trained and measured on the real data.",
            )
        )
    if measured["private holdout, not covered"]:
        out.append(
            _notice(
                "The measurements are not covered",
                f"{_of(measured['private holdout, not covered'], n)} had gap, accuracy and "
                "coverage measured on private test rows without noise. No claim on this page "
                "covers them.",
                warn=True,
            )
        )
    if useless := sum(run.no_better is True for run in runs):
        out.append(
            _notice(
                "No better than the majority class",
                f"{_of(useless, n)} could not be told from a model that always predicts the "
                "majority class of the rows they were measured on. The list shows the accuracy of "
                "that beside each.",
                warn=True,
            )
        )
    if kinds["published"]:
        out.append(
            _notice(
                "Points of others",
                f"{_of(kinds['published'], n)} were published by others. They were not run here "
                "and nothing is claimed for them.",
            )
        )
    if told["left_out"]:
        out.append(
            _notice(
                "Not every setting is drawn",
                f"{_many(told['left_out'], 'setting')} are left out, at random among those that "
                "are not on the front. Counts are of what is shown; whether anything meets the "
                "limits is answered as if all were.",
            )
        )
    return f'<div class="notices">{"".join(out)}</div>' if out else ""


def controls(told: Mapping[str, Any], styles: Iterable[int]) -> str:
    """Return the limits, the methods, and what is counted as a point."""
    limits = "".join(
        f'<div class="limit" id="limit-{name}"><label for="field-{name}">{title}</label>'
        f'<input type="number" id="field-{name}" placeholder="any" min="0" step="any"'
        f'{"" if name == "epsilon" else " max=1"} aria-describedby="wrong-{name}">'
        f'<input type="range" id="slide-{name}" min="0" max="200" step="1" '
        f'aria-label="{title}">'
        f'<span class="wrong" id="wrong-{name}" role="alert"></span></div>'
        for name, title in LIMITS
    )
    methods = "".join(
        f'<label class="tick"><input type="checkbox" value="{method}" checked>'
        f'<canvas width="32" height="32" data-method="{method}" aria-hidden="true"></canvas>'
        f"<span>{text(told['texts'][method])}</span></label>"
        for method in styles
    )
    return (
        '<aside aria-label="What is acceptable">'
        f"{_kinds(told['kinds'])}"
        f"<fieldset><legend>What is acceptable</legend>"
        f'<div class="limits">{limits}</div>'
        '<label class="tick"><input type="checkbox" id="strictly"><span>Hold gap, accuracy and '
        "coverage to it at the worse end of their 95 % intervals</span></label>"
        '<button type="button" class="plain" id="reset">No limits</button></fieldset>'
        f'<fieldset id="methods"><legend>Methods</legend>{methods}</fieldset>'
        f"{_views(told)}"
        '<p id="chosen-short" hidden><strong>Chosen:</strong> <span id="chosen-short-words"></span>'
        '<br><a href="#chosen">Read its claim</a></p></aside>'
    )


def views(pairs: Sequence[tuple[str, str]], coverage_note: str) -> str:
    """Return the frames of the charts; scripts draw into them."""
    frames = "".join(
        f'<figure><figcaption id="pair-{x}-{y}">{y.capitalize()} by {x}</figcaption>'
        f'<div class="view pair" data-x="{x}" data-y="{y}" role="img" '
        f'aria-labelledby="pair-{x}-{y} how"></div></figure>'
        for x, y in pairs
    )
    three = " three" if len(pairs) == 3 else ""
    return (
        '<div id="views">'
        f'<div class="pairs-of{three}">{frames}</div>'
        '<p class="kind" id="how">Coloured: within the limits. Grey: outside. Dark outline: on the '
        "front of all four objectives. Steps: the best of this pair, whatever the other two are. "
        "Bars: 95 % intervals, of points on the front (at most 40 at a time) and of the chosen "
        f"one. Dashed red: your limits. {text(coverage_note)}</p>"
        '<div class="wide"><figure><figcaption id="parallel-title">All four at once'
        "<span>One line per point; up is better on every axis. At most 300 lines are drawn, those "
        "on the front first.</span></figcaption>"
        '<div class="view" id="parallel" role="img" aria-labelledby="parallel-title"></div>'
        "</figure>"
        '<figure><figcaption id="space-title">Accuracy over epsilon and gap, coloured by coverage'
        "<span>The surface is the best accuracy within each epsilon and gap. Drag to turn, or use "
        "the arrow keys.</span></figcaption>"
        '<div class="view" id="space" role="img" tabindex="0" aria-labelledby="space-title">'
        "</div></figure></div></div>"
    )


def choosing() -> str:
    """Return the list of what is within the limits, and the place of the chosen one."""
    head = "".join(
        f'<th scope="col"{"" if by in ("method", "words") else " class=number"}>'
        f'<button type="button" data-by="{by}">{words}</button></th>'
        for by, words in (
            ("method", "Method"),
            ("words", "Setting"),
            ("epsilon", "Epsilon"),
            ("gap", "Gap"),
            ("accuracy", "Accuracy"),
            ("majority", "Majority"),
            ("free", "No margin"),
            ("coverage", "Coverage"),
            ("front", "Front"),
        )
    )
    return (
        '<div class="below"><section aria-labelledby="list-title">'
        '<h2 id="list-title">Within the limits</h2><p class="kind" id="list-words"></p>'
        '<div id="list-scroll" role="region" tabindex="0" aria-labelledby="list-title">'
        f'<table id="list"><thead><tr>{head}</tr></thead><tbody></tbody></table></div>'
        '<button type="button" class="plain" id="more">Show 100 more</button></section>'
        '<section id="chosen" aria-labelledby="chosen-head">'
        '<h2 id="chosen-head">The chosen one</h2>'
        '<p id="chosen-none">Choose a point in a chart or in the list to read what is claimed '
        "for it, how it treats each group, and the command that trains it.</p>"
        '<div id="chosen-body" hidden><h3 id="chosen-title" tabindex="-1"></h3>'
        '<p id="chosen-words"></p><dl class="glance" id="chosen-figures"></dl>'
        '<p id="seed-line"><label for="seed">Claim, groups and command below are of the run with '
        '</label><select id="seed"></select></p>'
        '<h3>Its claim</h3><blockquote id="claim"></blockquote>'
        '<h3>Where the margin sits</h3><p id="margin"></p>'
        "<h3>Each group, with 95 % intervals</h3>"
        '<p id="groups-none">Nothing was measured per group.</p>'
        '<div class="scroll" role="region" tabindex="0" aria-label="Each group">'
        '<table id="groups"><thead></thead><tbody></tbody></table></div>'
        '<p class="kind" id="measured-on"></p>'
        "<h3>The command that trains it anew</h3><p>With noise of its own: a release more, whose "
        'cost adds to that of these runs.</p><pre><code id="command"></code></pre>'
        '<button type="button" class="plain" id="copy">Copy the command</button>'
        '<span id="copied" role="status"></span></div></section></div>'
    )


def without_script(told: Mapping[str, Any]) -> str:
    """Return the front as a table, for readers whose browser runs no scripts."""
    rows: list[tuple[str, ...]] = []
    settings = told["settings"]
    for i, front in enumerate(settings["front"]):
        if front and len(rows) < LISTED_WITHOUT_SCRIPT:
            name, words = (told["texts"][settings[key][i]] for key in ("method", "words"))
            epsilon = settings["epsilon"][i]
            rows.append(
                (
                    f"{name}: {words}" if words else name,
                    "∞" if epsilon is None else f"{epsilon:g}",
                    *(_known(settings[key][i]) for key in NUMBERS),
                )
            )
    return (
        "<noscript><p>Sliders and charts need JavaScript. This is the front, "
        f"its first {_many(len(rows), 'setting')}.</p>"
        + table(
            "The front",
            (
                "Setting",
                "Epsilon",
                "Gap",
                "Accuracy",
                "Of the majority class",
                "Without margin",
                "Coverage",
            ),
            rows,
            6,
        )
        + "</noscript>"
    )


def _kinds(kinds: Sequence[str]) -> str:
    if len(kinds) == 1:
        return f'<p class="kind">{text(kinds[0])}</p>'
    options = "".join(f'<option value="{i}">{text(kind)}</option>' for i, kind in enumerate(kinds))
    return (
        '<fieldset><legend><label for="kind">Data and gap</label></legend>'
        f'<select id="kind">{options}</select></fieldset>'
    )


def _views(told: Mapping[str, Any]) -> str:
    if "epsilon" not in told["runs"]:
        return ""
    return (
        '<fieldset><legend>One point is</legend><label class="tick"><input type="radio" name="view"'
        ' value="settings" checked><span>a setting: mean over its seeds</span></label>'
        '<label class="tick"><input type="radio" name="view" value="runs"><span>a single run'
        "</span></label></fieldset>"
    )


def _notice(title: str, words: str, *, warn: bool = False) -> str:
    kind = "notice warn" if warn else "notice"
    return f'<p class="{kind}"><strong>{text(title)}</strong>{text(words)}</p>'


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _many(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _of(n: int, total: int) -> str:
    if n == total:
        return "The run" if n == 1 else f"All {n:,} runs"
    return f"{n:,} of {_many(total, 'run')}"


def _known(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.4f}"
