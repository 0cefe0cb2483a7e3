"""The sections of the page on the claim and on what was asked, in the order they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from evenhand.fairness import Yardstick
from evenhand.privacy import Guarantee
from evenhand.privacy.relation import each
from evenhand.report import claim, figures
from evenhand.report.answers import SHORT
from evenhand.report.content import ModelReport
from evenhand.report.frames import between, cover, framed
from evenhand.report.htmltext import items, pairs, table, text
from evenhand.report.spending import Spending
from evenhand.voting import Answers, Shares


class Told(Protocol):
    """What the sections on the claim and the ledger read: of a model, or of a generator."""

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""

    @property
    def spending(self) -> Spending | None:
        """The ledger, added up."""

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What the writer says about the data."""


def the_claim(report: Told) -> str:
    """Return the claim, its terms in plain words, and what it rests on and leaves out."""
    guarantee = report.guarantee
    void = "" if guarantee.holds else ' class="void"'
    public = items(_capital(words) for words in guarantee.public) or "<p>Nothing.</p>"
    left_out = items(_capital(words) for words in guarantee.not_covered) or "<p>Nothing named.</p>"
    parts = [f"<blockquote{void}>{text(guarantee)}</blockquote>"]
    if guarantee.holds:
        parts.append("<h3>What this means</h3>" + pairs(claim.meaning(guarantee)))
    elif guarantee.bounded:
        parts.append(
            "<p>The terms of the claim are not explained here, because it does not hold.</p>"
        )
    if guarantee.bounded:
        parts.append(
            '<div class="two">'
            f"<div><h3>Treated as public</h3>{public}</div>"
            f"<div><h3>Not covered by the guarantee</h3>{left_out}</div></div>"
        )
    if report.facts:
        parts.append("<h3>About the data</h3>" + pairs(report.facts))
    return "".join(parts)


def what_was_spent(report: Told) -> str:
    """Return the ledger, added up by purpose; nothing where there was nothing to spend."""
    books = report.spending
    if books is None:
        return ""
    rows = [
        (
            charge.purpose,
            f"{charge.words}: {charge.mechanism}" if charge.words else charge.mechanism,
            f"{charge.n_uses:,}",
            f"{charge.mu_squared:.6f}",
            f"{charge.share:.1%}",
        )
        for charge in books.charges
    ]
    rows.append(("Not spent", "", "", f"{_left(books):.6f}", f"{max(0.0, 1 - books.share):.1%}"))
    rows.append(("Budget", "", "", f"{books.mu_squared_budget:.6f}", "100.0%"))
    return (
        "<p>Privacy loss is counted in mu², the square of the Gaussian differential privacy "
        "parameter, because in this unit the costs of single uses simply add up. "
        f"{_affords(books, report.guarantee)} mu² = {books.mu_squared_budget:.6f}. The price of a "
        "use is fixed in advance and the same whatever the data are, and a use that would have "
        f"passed the budget was not made.{text(_apart(books))}</p>"
        + framed(
            "spent",
            "Share of the budget by mechanism",
            "The whole bar is the privacy budget.",
            figures.spending(books),
        )
        + table("The ledger", ("Purpose", "Mechanism", "Uses", "mu²", "Share of budget"), rows, 3)
    )


def outcomes(report: ModelReport) -> str:
    """Return the answers and refusals; nothing for a method that asks nobody."""
    counted, answers = report.outcomes, report.answers
    if answers is None:
        return ""
    if counted is None:
        if report.true_groups is not None:
            what = "classes" if report.true_groups.by_teachers else "groups"
            return cover(report) + (
                f"<p>The teachers were asked about the {what} of {len(answers):,} rows, whose "
                f"features are public, and what was released of each are noisy shares of the "
                f"votes.</p>"
            )
        return cover(report) + (
            f"<p>The teachers were asked about all {len(answers):,} public rows, and what was "
            f"released of every row are noisy shares of the votes{_asked_again(answers)}. No label "
            "was given and none was refused; the student learned from the shares, knowing their "
            "noise.</p>"
        )
    who = "group and class" if counted.by_group else "class"
    head_row = (
        "Group" if counted.by_group else "Rows",
        *(f"answered {name}" for name in counted.classes),
        *(SHORT[reason] for reason in counted.reasons),
        "rows",
    )
    rows = [
        (
            group,
            *(f"{n:,}" for n in counted.answered[i].tolist()),
            *(f"{n:,}" for n in counted.unlabelled[i].tolist()),
            f"{int(counted.sizes[i]):,}",
        )
        for i, group in enumerate(counted.groups)
    ]
    why = ""
    if counted.reasons:
        reasons = pairs(
            (_capital(SHORT[r]), _capital(r.words.partition(": ")[2])) for r in counted.reasons
        )
        why = f"<p>A row is left without an answer for one of these reasons.</p>{reasons}"
    return (
        cover(report)
        + f"<p>The teachers were asked about {answers.n_asked:,} of {len(answers):,} public rows, "
        f"and {answers.n_answered:,} answers were given; the student learned from these "
        f"alone.</p>{why}"
        + framed(
            "outcomes",
            f"Answers and refusals per {who}",
            "Each bar is all public rows of one group."
            if counted.by_group
            else "The bar is all public rows; this method reads no groups.",
            figures.outcomes(counted),
        )
        + table(f"Public rows per {who}", head_row, rows, len(head_row) - 1)
    )


def _asked_again(answers: Answers | Shares) -> str:
    again = answers.n_asked - len(answers)
    if again <= 0:
        return ""
    return (
        f"; {again:,} times a row was asked again, where the shares released before left the "
        "student unsure"
    )


def settings(report: ModelReport) -> str:
    """Return every argument that the model was trained with, and what was chosen for the user."""
    chosen = "".join(f"<li>{text(words)}</li>" for words in report.choices)
    return (
        f"<p>All arguments of <code>{text(report.method)}</code>. They are treated as public, so "
        "they must not have been chosen by looking at private data.</p>"
        f'<div class="settings">{pairs(report.settings)}</div>'
        + (
            f"<p>Chosen from public numbers, before any teacher was trained:</p><ul>{chosen}</ul>"
            if chosen
            else ""
        )
    )


def how_to_use(report: ModelReport) -> str:
    """Return how to load the model and predict, and which columns it expects."""
    columns = (
        f"<details><summary>The {report.n_columns} columns it expects</summary>"
        f"<p>{', '.join(f'<code>{text(name)}</code>' for name in report.columns)}</p></details>"
        if report.columns
        else f"<p>It was fitted on arrays and expects {report.n_columns} columns.</p>"
    )
    if report.kind.needs_group:
        needs = "need the group of every row"
        predict = (
            'rows = pd.read_csv("new_rows.csv")\n'
            'groups = rows.pop("group")                # the sensitive column\n'
            "labels = model.predict(rows, sensitive_features=groups)"
        )
    else:
        needs = "need no group"
        predict = 'labels = model.predict(pd.read_csv("new_rows.csv"))'
    free = " and cost no further privacy" if report.guarantee.holds else ""
    return (
        "<p>The model is a folder of plain files: JSON and arrays, no executable code. "
        "<code>load</code> checks every file against its checksum first. "
        f"Predictions {needs}{free}.</p>"
        '<pre tabindex="0" aria-label="Python code"><code>import evenhand\n'
        "import pandas as pd\n\n"
        'model = evenhand.load("model")           # the folder that save() wrote\n'
        "print(model.guarantee_)                  # the claim, as printed above\n"
        f"{predict}</code></pre>" + columns
    )


def glance(report: ModelReport) -> str:
    """Return the few numbers to see first."""
    guarantee, trace, found = report.guarantee, report.disparity, report.measured
    tiles = []
    if guarantee.holds:
        tiles.append(
            (
                "Privacy",
                f"ε = {guarantee.epsilon:g}",
                f"at δ = {guarantee.delta:g}, for {each(guarantee.unit)} ({guarantee.neighbors})",
            )
        )
    else:
        why = "the noise of this run protects nobody" if guarantee.bounded else "trained without it"
        tiles.append(("Privacy", "none", why))
    where, _, who = str(report.kind).partition(", ")
    tiles.append(("Where the margin sits", _capital(where), f"{who} at prediction"))
    if trace is not None:
        tiles.append(
            (
                "Gap of the answered set",
                f"{trace.final:.4f}",
                f"margin {trace.notion.margin:g}; "
                + ("within it after every answer" if trace.kept else "left at times"),
            )
        )
    elif report.student is not None:
        student = report.student
        tiles.append(
            (
                f"Student’s gap {student.where.replace('the ', '', 1)}",
                f"{student.gap:.4f}",
                f"{student.notion.name.replace('-', ' ')}, margin {student.notion.margin:g}; "
                f"{student.kept}",
            )
        )
    if report.answers is not None:
        what = "noisy labels" if report.outcomes is not None else "noisy shares of the votes"
        n_given, n = report.answers.n_answered, len(report.answers)
        tiles.append(("Answers given", f"{n_given:,}", f"{what}, of {n:,} public rows"))
    beside = "" if report.yardstick is None else _beside(report.yardstick, report.classes)
    if found is None or found.error is None:
        tiles.append(("Error on test rows", "not measured", "no labelled test rows were given"))
        if report.yardstick is not None:
            value = f"{report.yardstick.error.value:.3f}"
            tiles.append(("Error by the released answers", value, beside.removesuffix("; ")))
    else:
        tiles.append(
            (
                "Error on test rows",
                f"{found.error.value:.3f}",
                f"{found.level:.0%} interval {between(found.error, 3)}; {beside}not covered by "
                f"the guarantee",
            )
        )
    inside = "".join(
        f'<div><dt>{text(name)}</dt><dd><span class="figure">{text(value)}</span>'
        f'<span class="note">{text(note)}</span></dd></div>'
        for name, value, note in tiles
    )
    return f'<dl class="glance">{inside}</dl>'


def _beside(found: Yardstick, classes: Sequence[str]) -> str:
    """Return the errors to read a model's error beside."""
    return "".join(f"{words}: {error.value:.3f}; " for words, error in found.rows(classes))


def _affords(books: Spending, claimed: Guarantee) -> str:
    at = f"at delta = {claimed.delta:g}"
    if len(books.parts) == 1:
        own = claimed.delta if books.delta is None else books.delta
        return f"The budget, epsilon = {claimed.epsilon:g} at delta = {own:g}, affords"
    each = " and ".join(f"{part:g}" for part in books.parts)
    return (
        f"The budget has parts with a ledger each, epsilon = {each}, because their prices do not "
        f"add up; each part alone is read {at}, and side by side they afford"
    )


def _apart(books: Spending) -> str:
    if not any(charge.mechanism.startswith("SubsampledGaussian") for charge in books.charges):
        return ""
    return (
        " The price of noisy gradient steps is no Gaussian one: it is written as the mu² of the "
        "same epsilon at this delta, and does not add up with that of other runs."
    )


def _left(books: Spending) -> float:
    return max(0.0, books.mu_squared_budget - books.mu_squared_spent)


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"
