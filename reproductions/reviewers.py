"""People behind a margin: what reviewers who err and keep others waiting do to error and gap.

    python reproductions/reviewers.py [--data Adult] [--seeds 4] [--kept FILE] [--save]

A simulation around a released model (``DPSGDClassifier``, epsilon 1, delta 1e-5, 600 steps,
floating-point noise, one fit per data set and seed; 25 % test, of the rest 20 % public) and
``RejectOption`` for demographic parity by sex, with a cold start of 50 or ``2 / margin`` that is
given: so the first block of a late group may be of any size, which by default it may not since.
The first 6,000 of the shuffled test rows come, 50 an hour, 8 hours a day, those of an hour
together. What is refused goes to a queue, oldest first; what is withheld waits for the model. A
reviewer takes 12 minutes a case, 40 cases a day; after the last request there is one more day. A
reviewer knows the true class and errs with a probability that does not hang on the group, or is
twice as large for women. What waits at the end has no label. Ways to count what people say:

- *forced*: the reviewer's label is given and counted (``review(..., force=True)``), also where it
  leaves the margin; while people have left it, the model gives only what does not lead further out;
- *within*: a label that would leave the margin is not taken (``PassesMargin``), and the case is
  closed without a label; the time is spent;
- *apart*: the case is closed in the counts and the reviewer's label is given beside them, so that
  the margin is one over the model's own labels;
- *eager*: as apart, and reviewers take withheld cases too. Only with a staff of 8, an error of .1.

Margins .01, .02, .05, .1. Staff 1, 2, 4, 8 with an error of .1; with a staff of 8 also errors of
.05, .2, .3, and of .1 with .2 for women. All settings of a seed have the same order of rows and the
same draws of people's errors.

Measured: wrong labels and rows without one over *all* rows; the gap among the labels that the model
gave and among all given labels; use of the staff (cases that came for each that can be done in that
time); the working days from request to label of the cases that people decided (mean, 95 % quantile:
those who still wait are not in it, so it is too small where the staff is); the share of cases never
reached. Beside them the model alone, which answers every row.

The claim, for each row: *refusing into people's hands lowers both error and gap end to end*. "yes"
if both differences to the model alone, paired over seeds, have a 95 % interval below 0: rows that
are wrong or without a label, and the gap among all given labels.

What is expected, written before the first run on test rows, after a rehearsal on made-up labels:

1. *apart*: "yes" where people err no more than .1 for anybody and the staff is enough, though the
   gap of all labels stays above the margin, since people bring back some of that of the true
   classes; "no" for errors of .2 and .3, and of .2 for women;
2. *forced*: the same verdicts, the gap of all labels near the margin, since the model makes up for
   what people give; more rows refused, and so more staff needed, than in *apart*;
3. *within*: the gap falls in every row and the error does not, "no": cases closed without a label
   are more than the errors that people mend;
4. where the staff is used beyond 1: "no" in every way, rows without a label outweigh;
5. *eager*: people who are quick take the first cases of the late group before a block of them can
   be given, and the model never begins to answer this group: most of its rows go to people. "yes".
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from _pictures import Axis, Panel, Series, around, axis, draw
from _table import Mean, Runs, asked, commit, interval, rule, select, write

from evenhand import Budget, DemographicParity, DPSGDClassifier
from evenhand.datasets import load_acs_income, load_adult
from evenhand.fairness.gate.reject_option import RejectOption, Verdict
from evenhand.fairness.gate.review import PassesMargin, Request
from evenhand.fairness.gate.table_gate import default_cold_start
from evenhand.fairness.groups import encode_groups
from evenhand.privacy import FloatNoise
from evenhand.typing import REJECTED

LOADERS = {"Adult": load_adult, "ACS-Income": load_acs_income}
WAYS = ("forced", "within", "apart")
EAGER = "eager"
MARGINS = (0.01, 0.02, 0.05, 0.1)
STAFF = (1, 2, 4, 8)
MIDDLE, MOST = 0.1, 8
PEOPLE = (
    *((MIDDLE, 1, staff) for staff in STAFF),
    *((error, 1, MOST) for error in (0.05, 0.2, 0.3)),
    (MIDDLE, 2, MOST),
)
"""Error of reviewers, how many times as large it is for women, and staff."""
ROWS = 6000  # fifteen days
AN_HOUR, HOURS, CASES = 50, 8, 5  # requests an hour, hours a day, cases of a reviewer an hour
MEASURED = (
    *("not_right", "wrong", "unlabelled", "gap", "error_gap", "model_gap", "coverage"),
    *("refused", "needed", "use", "wait", "wait_95", "unreached", "more_error", "more_gap"),
)


class Stream:
    """Test rows in the order in which they come, and what the model says of them."""

    def __init__(
        self, truth: np.ndarray, said: np.ndarray, groups: np.ndarray, names: list[str], seed: int
    ) -> None:
        rng = np.random.default_rng([seed, 16])
        order = rng.permutation(len(truth))[:ROWS]
        self.truth, self.said, self.groups = truth[order], said[order], groups[order]
        self.names = names
        self.luck = rng.random(len(order))  # a reviewer errs where it is below the error
        self.alone = float((self.said != self.truth).mean())
        self.alone_gap = self.gap_of(self.said)

    def gap_of(self, labels: np.ndarray) -> float:
        """Difference of the two groups' shares of class 1 among given labels; 0 if one has none."""
        own = [labels[(self.groups == z) & (labels != REJECTED)] for z in (0, 1)]
        return abs(float(own[0].mean() - own[1].mean())) if all(map(len, own)) else 0.0

    def error_gap(self, labels: np.ndarray) -> float:
        """Error of women less that of men, among given labels."""
        women = self.groups == self.names.index("Female")
        wrong, given = labels != self.truth, labels != REJECTED
        shares = [
            wrong[some & given].sum() / max(1, (some & given).sum()) for some in (women, ~women)
        ]
        return float(shares[0] - shares[1])


def fitted(data: str, seed: int) -> Stream:
    """Fit the model of one seed, and put the test rows in order."""
    split = LOADERS[data]().split(public=0.2, test=0.25, random_state=seed)
    model = DPSGDClassifier(
        Budget(epsilon=1.0, delta=1e-5),
        n_steps=600,
        degree=0,
        batch_size=1024,
        noise=FloatNoise(),
        random_state=seed,
    ).fit(split.private.X, split.private.y, X_public=split.public.X)
    groups = encode_groups(split.test.groups)
    said = np.asarray(model.predict(split.test.X)).astype(int)
    return Stream(
        np.asarray(split.test.y).astype(int), said, groups.codes, list(groups.names), seed
    )


class Desk:
    """One run: the reject option, the queue, and the labels that are given."""

    def __init__(self, stream: Stream, way: str, margin: float, errs: np.ndarray) -> None:
        self.stream, self.way = stream, way
        within, cold_start = DemographicParity(margin=margin), default_cold_start(margin)
        self.option = RejectOption(within, stream.names, ["no", "yes"], cold_start=cold_start)
        flipped = stream.luck < errs[stream.groups]
        self.person = np.where(flipped, 1 - stream.truth, stream.truth)
        self.given = np.full(len(stream.truth), REJECTED)
        self.by_model = self.given.copy()
        self.queue: deque[int] = deque()
        self.reached: list[int] = []
        self.waits: list[float] = []
        self.offered = 0

    def come(self, rows: np.ndarray) -> None:
        """Take the requests of an hour: each is answered or goes to the queue."""
        found = self.option.decide(self.stream.said[rows], self.stream.groups[rows])
        self.given[rows] = self.by_model[rows] = found.labels
        for_people = found.reasons == Verdict.OUTSIDE_MARGIN
        if self.way == EAGER:
            for_people = ~found.answered
        self.queue.extend(int(row) for row in rows[for_people])
        self.offered += int(for_people.sum())
        self.hand_out()

    def hand_out(self) -> None:
        """Give what was withheld and fits now; it needs no reviewer any more."""
        late = self.option.deliver()
        self.given[late.ids] = self.by_model[late.ids] = late.labels

    def work(self, hour: int, staff: int) -> None:
        """Let every reviewer decide as many cases as fit into the hour."""
        done = 0
        while self.queue and done < staff * CASES:
            row = self.queue.popleft()
            if self.given[row] != REJECTED:
                self.offered -= 1
                continue
            self.review(row)
            done += 1
            end = hour + (1 + (done - 1) // staff) / CASES
            self.reached.append(row)
            self.waits.append((end - row // AN_HOUR) / HOURS)
        self.hand_out()

    def review(self, row: int) -> None:
        """Decide one case as the way says."""
        stream, label = self.stream, int(self.person[row])
        request = Request(number=row, group=int(stream.groups[row]), said=int(stream.said[row]))
        if self.way in ("apart", EAGER):
            self.option.review(request, REJECTED)
        else:
            try:
                self.option.review(request, label, force=self.way == "forced")
            except PassesMargin:
                self.option.review(request, REJECTED)
                return
        self.given[row] = label


def simulate(
    stream: Stream, way: str, margin: float, error: float, factor: int, staff: int
) -> dict[str, float]:
    """Let all rows of a stream come, and measure what became of them."""
    errs = np.array([error * (factor if name == "Female" else 1) for name in stream.names])
    desk, n = Desk(stream, way, margin, errs), len(stream.truth)
    hours = -(-n // AN_HOUR)
    for hour in range(hours + HOURS):
        if hour < hours:
            desk.come(np.arange(hour * AN_HOUR, min(n, (hour + 1) * AN_HOUR)))
        desk.work(hour, staff)
    given, unlabelled = desk.given, desk.given == REJECTED
    # Withheld labels that were given meanwhile need nobody, also where they still stand in line.
    waiting = int((given[list(desk.queue)] == REJECTED).sum())
    desk.offered -= len(desk.queue) - waiting
    not_right = float((given != stream.truth).mean())
    gap = stream.gap_of(given)
    found = {
        "not_right": not_right,
        "wrong": float(((given != stream.truth) & ~unlabelled).mean()),
        "unlabelled": float(unlabelled.mean()),
        "gap": gap,
        "error_gap": stream.error_gap(given),
        "model_gap": stream.gap_of(desk.by_model),
        "coverage": float((desk.by_model != REJECTED).mean()),
        "refused": desk.offered / n,
        "needed": desk.offered / hours / CASES,
        "use": desk.offered / hours / CASES / staff,
        "wait": float(np.mean(desk.waits)) if desk.waits else 0.0,
        "wait_95": float(np.quantile(desk.waits, 0.95)) if desk.waits else 0.0,
        "unreached": waiting / max(desk.offered, 1),
        "more_error": not_right - stream.alone,
        "more_gap": gap - stream.alone_gap,
    }
    return {name: round(found[name], 6) for name in MEASURED}


def of_seed(data: str, seed: int) -> list[dict[str, Any]]:
    """Measure every setting around one model."""
    stream = fitted(data, seed)
    true_gap = stream.gap_of(stream.truth)
    return [
        {
            **{"data": data, "seed": seed, "way": way, "margin": margin},
            **{"error": error, "factor": factor, "staff": staff},
            **{"alone": stream.alone, "alone_gap": stream.alone_gap, "true_gap": true_gap},
            **simulate(stream, way, margin, error, factor, staff),
        }
        for way in (*WAYS, EAGER)
        for margin in MARGINS
        for error, factor, staff in (PEOPLE if way in WAYS else [(MIDDLE, 1, MOST)])
    ]


def over_seeds(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each setting: means with intervals, and whether the claim holds."""
    keys = ("data", "way", "margin", "error", "factor", "staff")
    settings = dict.fromkeys(tuple(run[key] for key in keys) for run in runs)
    rows = []
    for setting in settings:
        own = [run for run in runs if tuple(run[key] for key in keys) == setting]
        told = {
            name: [round(x, 5) for x in interval([run[name] for run in own])]
            for name in ("alone", "alone_gap", "true_gap", *MEASURED)
        }
        lower = all(sum(told[name]) < 0 for name in ("more_error", "more_gap"))
        rows.append(
            {
                **dict(zip(keys, setting, strict=True)),
                "seeds": len(own),
                **told,
                "expected": expected(setting[1], setting[3] * setting[4], told["use"][0]),
                "agrees": "yes" if lower else "no",
            }
        )
    return rows


def expected(way: str, largest_error: float, use: float) -> str:
    """Return the verdict that was expected of a row before the first run."""
    return "yes" if way != "within" and largest_error <= MIDDLE and use <= 1 else "no"


def people(row: dict[str, Any]) -> str:
    """Say how often the reviewers of a row err."""
    more = f", women {row['error'] * row['factor']:g}" if row["factor"] > 1 else ""
    return f"{row['error']:g}{more}"


def as_line(row: dict[str, Any]) -> str:
    """One line of the table."""
    cells = [
        *(row["data"], row["way"], f"{row['margin']:g}", people(row), str(row["staff"])),
        *(f"{Mean(*row[name]):.3f}" for name in ("not_right", "wrong", "gap")),
        *(f"{row[name][0]:.3f}" for name in ("model_gap", "error_gap", "coverage")),
        *(f"{row[name][0]:.2f}" for name in ("use", "wait", "wait_95", "unreached")),
        *(f"{Mean(*row[name]):+.3f}" for name in ("more_error", "more_gap")),
        *(row["expected"], row["agrees"]),
    ]
    return f"| {' | '.join(cells)} |"


def picture(rows: list[dict[str, Any]]) -> str:
    """Draw what a margin costs in people, and what it gives."""
    panels = []
    for data in dict.fromkeys(row["data"] for row in rows):
        own = select(rows, data=data, factor=1)
        usual = [row for row in own if (row["error"], row["staff"]) == (MIDDLE, MOST)]
        tight = [row for row in own if row["margin"] == 0.02]
        by_staff = [row for row in tight if row["error"] == MIDDLE]
        by_error = sorted(
            (row for row in tight if row["staff"] == MOST), key=lambda row: float(row["error"])
        )
        margins = Axis(title="margin", low=0.008, high=0.12, ticks=MARGINS, log=True)
        staff = Axis(title="staff, margin .02, error .1", low=0.9, high=9, ticks=STAFF, log=True)
        errors = Axis(
            title="error of people, staff 8, margin .02",
            low=0.0,
            high=0.32,
            ticks=(0.05, 0.1, 0.2, 0.3),
        )
        panels += [
            panel(f"{data}: reviewers needed", margins, usual, "margin", "needed"),
            panel(f"{data}: gap of all labels", margins, usual, "margin", "gap", "alone_gap"),
            panel(f"{data}: not right, by staff", staff, by_staff, "staff", "not_right", "alone"),
            panel(f"{data}: not right, by error", errors, by_error, "error", "not_right", "alone"),
            panel(f"{data}: wait, mean", staff, by_staff, "staff", "wait"),
            panel(f"{data}: cases never reached", staff, by_staff, "staff", "unreached"),
        ]
    return draw(
        "reviewers",
        "Figure of what a margin costs in people: reviewers needed, gap end to end, rows that are "
        "not right (wrong or without a label), and waiting time, by margin, staff "
        "and error of the reviewers.",
        panels,
        3,
    )


def panel(
    title: str, x: Axis, rows: list[dict[str, Any]], along: str, name: str, alone: str = ""
) -> Panel:
    """One number along one setting, a line for each way, and the model alone."""
    words = {"needed": "full-time reviewers", "wait": "working days"}
    series, ends = [], []
    for way in WAYS:
        own = [row for row in rows if row["way"] == way]
        y, widths = [row[name][0] for row in own], [row[name][1] for row in own]
        series.append(Series(name=way, x=[row[along] for row in own], y=y, y_pm=widths))
        ends += around(y, widths)
    if alone:
        xs = sorted({float(row[along]) for row in rows})
        series.append(Series(name="model alone", x=xs, y=[rows[0][alone][0]] * len(xs)))
        ends.append(rows[0][alone][0])
    return Panel(title=title, x=x, y=axis(words.get(name, "share"), ends), series=series)


def save(rows: list[dict[str, Any]]) -> None:
    """Write the rows as JSON, as a table and as a picture."""
    at, alone = commit(), {row["data"]: row for row in rows}
    write(
        "reviewers",
        {"commit": at, "rows": rows},
        f"# Reviewers behind a margin, {rows[0]['seeds']} seeds, commit {at}\n",
        "`python reproductions/reviewers.py --save`; how requests, reviewers and ways go, and when "
        "a row agrees, stands in the script.\n",
        *(
            f"The model alone on {data}: error {row['alone'][0]:.4f} ± {row['alone'][1]:.4f}, gap "
            f"{row['alone_gap'][0]:.4f} ± {row['alone_gap'][1]:.4f}; gap of the true classes "
            f"{row['true_gap'][0]:.4f}.\n"
            for data, row in alone.items()
        ),
        f"Verdicts as expected: {sum(row['agrees'] == row['expected'] for row in rows)} of "
        f"{len(rows)}.\n",
        picture(rows) + "\n",
        "| data | way | margin | people err | staff | wrong or no label | wrong | gap, all labels "
        "| gap, model's labels | error, women less men | coverage of the model | use | days, mean "
        "| days, 95 % | never reached | error less model alone | gap less model alone | expected "
        "| agrees? |",
        rule(19),
        *map(as_line, rows),
    )


def main() -> None:
    """Measure every data set and seed that was not measured yet."""
    given = asked(__doc__, seeds=4, data=LOADERS).parse_args()
    runs = Runs(given.kept)
    runs.complete(of_seed, data=given.data, seed=range(given.seeds))
    if given.save:
        save(over_seeds(runs))


if __name__ == "__main__":
    main()
