"""What the papers claim, what holds, and a number for each: under a minute, no data set.

    python reproductions/theory.py [--save]

Every row computes its number here, from the library's functions or from the definition. A row
agrees if the claim as printed survives its own measurement; "no" rows stay. The only randomness is
in the streams of the second row (seeds 0 to 9): they are ours, so their numbers are an example.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from _table import asked, commit, write
from scipy.stats import binom, norm

from evenhand.fairness import DemographicParityGate
from evenhand.fairness.bounds import alpha_from_eta, vote_rates
from evenhand.fairness.calibration import CalibratedJoint, published_rates
from evenhand.fairness.gate.published import PublishedGate
from evenhand.fairness.preprocessor import cap_majority, filter_in_turn, k_gamma
from evenhand.fairness.tally import JointTally
from evenhand.privacy import ConfidentGNMax
from evenhand.privacy.local import exact_local_rdp
from evenhand.privacy.local.cost import theorem6
from evenhand.privacy.renyi import ORDERS, RenyiCurve
from evenhand.privacy.two_stage import two_stage_rdp

DELTA = 1e-5
Rows = list[tuple[int, int]]


def row(source: str, claim: str, holds: str, measured: str, agrees: bool, **numbers: Any) -> Any:
    """One line of the table, with its numbers for the JSON file."""
    verdict = "yes" if agrees else "no"
    return {
        "source": source,
        "claim": claim,
        "holds": holds,
        "measured": measured,
        "agrees": verdict,
        "numbers": numbers,
    }


# ---- FairPATE, Theorem 1 -------------------------------------------------------------------


def k_gamma_for_its_proof() -> Any:
    """Largest change over every table of up to 8 records of one label, every place and record."""
    found = {}
    for margin in (0.0, 0.2, 0.5):
        worst = 0
        for n in range(9):
            for groups in itertools.product((0, 1), repeat=n):
                before = cap_majority(groups, [0] * n, margin=margin)
                for at, group in itertools.product(range(n + 1), (0, 1)):
                    more = [*groups[:at], group, *groups[at:]]
                    after = cap_majority(more, [0] * (n + 1), margin=margin)
                    changed = int(after[at]) + int((np.delete(after, at) != before).sum())
                    worst = max(worst, changed)
        found[margin] = (worst, k_gamma(margin))
    said = ", ".join(f"{worst} at margin {margin:g}" for margin, (worst, _) in found.items())
    bounds = ", ".join(str(k) for _, k in found.values())
    return row(
        "FairPATE, Theorem 1",
        f"one record more changes at most K records of the pre-processed set; K = {bounds}",
        "for the pre-processor of its proof (`cap_majority`), and no smaller number does",
        f"most over all tables of up to 8 records: {said}",
        all(worst <= k for worst, k in found.values()),
        worst_and_k=[[m, *pair] for m, pair in found.items()],
    )


def algorithm_3() -> Any:
    """Decisions about others that one record more, put first, changes."""
    built, random = [], []
    for n in (500, 2000, 8000):
        rows = [(1, 0), (1, 1)] + [(0, int(i % 5 == 0)) for i in range(n - 2)]
        built.append(max(changed(rows, [(1, 0)], margin=0.1, cold_start=2)))
        found: list[int] = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            z = rng.integers(0, 2, n)
            y = (rng.random(n) < np.where(z == 1, 0.7, 0.3)).astype(int)
            records = list(itertools.product((0, 1), (0, 1)))
            table = list(zip(z.tolist(), y.tolist(), strict=True))
            found += changed(table, records, margin=0.05, cold_start=50)
        random.append(max(found))
    return row(
        "FairPATE, Theorem 1 with Algorithm 3",
        f"the same for Algorithm 3; K = {k_gamma(0.05)} at margin .05, {k_gamma(0.1)} at .1",
        "no constant does: each decision reads the running rates",
        f"tables of 500 / 2000 / 8000 records, decisions changed: {shown(built)} in one built for "
        f"it, up to {shown(random)} in random ones (rates .3 and .7, margin .05, M = 50)",
        max(built) <= k_gamma(0.1),
        built=built,
        random=random,
    )


def changed(rows: Rows, records: Iterable[tuple[int, int]], **settings: Any) -> list[int]:
    """Decisions about ``rows`` that each record, put first, changes."""
    before = kept(rows, **settings)
    return [int((kept([r, *rows], **settings)[1:] != before).sum()) for r in records]


def kept(rows: Rows, **settings: Any) -> Any:
    """Algorithm 3 on rows of (group, label)."""
    groups, labels = zip(*rows, strict=True)
    return filter_in_turn(groups, labels, **settings)


# ---- FairPATE, Algorithm 1 -----------------------------------------------------------------


def gate() -> Any:
    """Largest gap that the published and the sound rule reach on the same two streams."""
    margin = 0.05
    three_classes = [(0, k % 2) for k in range(2000)]
    five_groups: Rows = []
    for _ in range(1500):
        five_groups += [(0, 1)] + [(z, 0) for z in range(1, 5)]
    cases = {
        "2 groups x 3 classes": ([[200, 200, 600]] * 2, three_classes),
        "5 groups x 2 classes": ([[300, 700]] * 5, five_groups),
    }
    found = {
        name: [
            largest_gap(start, stream, margin, kind) / margin
            for kind in (PublishedGate, DemographicParityGate)
        ]
        for name, (start, stream) in cases.items()
    }
    said = "; ".join(f"{name} {p:.2f}, sound rule {s:.2f}" for name, (p, s) in found.items())
    return row(
        "FairPATE, Algorithm 1",
        "the answered set keeps the margin",
        "only for 2 groups x 2 classes from a feasible start; the sound rule tests all pairs",
        f"largest gap over margin, feasible starts: {said}",
        all(p <= 1.0 for p, _ in found.values()),
        gap_over_margin=found,
    )


def largest_gap(
    start: list[list[int]], stream: Rows, margin: float, kind: type[DemographicParityGate]
) -> float:
    """Largest gap after a start in equal shares that neither rule refuses."""
    n_groups, n_classes, cold_start = len(start), len(start[0]), sum(start[0])
    gate = kind(margin, n_groups, n_classes, cold_start=cold_start)
    for z, counts in enumerate(start):
        for k, times in enumerate(counts):
            for _ in range(times):
                gate.offer(z, k)
    worst = gate.gap
    for group, label in stream:
        if gate.offer(group, label).given:
            worst = max(worst, gate.gap)
    return float(worst)


# ---- privacy -------------------------------------------------------------------------------


def fair_rejection() -> Any:
    """Exact epsilon of 1000 refusals that publish the noisy winner, at votes 126 : 124."""
    sigma, n = 40.0, 1000
    here, there = (norm.cdf(gap / (sigma * 2**0.5)) for gap in (2.0, 0.0))  # 126:124, 125:125
    k = np.arange(n + 1)
    p, q = binom.pmf(k, n, here), binom.pmf(k, n, there)
    epsilon = root(lambda e: max(beyond(p, q, e), beyond(q, p, e)) - DELTA)
    return row(
        "FairPATE, Section 4.1",
        "rejecting queries on the basis of fairness does not incur additional privacy cost: 0",
        "with two classes a refusal of the winner publishes the winner",
        f"250 teachers, sigma 40, votes 126:124, 1000 refusals: epsilon {epsilon:.2f} (delta 1e-5)",
        epsilon == 0,
        epsilon=epsilon,
    )


def beyond(p: Any, q: Any, epsilon: float) -> float:
    """Smallest delta at ``epsilon``, in one direction."""
    return float(np.maximum(0.0, p - np.exp(epsilon) * q).sum())


def root(falling: Any) -> float:
    """Bisection between 0 and 50, from above."""
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


def stopping() -> Any:
    """First answer at which the data-dependent epsilon passes 2, on neighbors."""
    costs = theorem6([[190, 60], [191, 59]], sigma=40.0).reveal_to_curator()
    stops = []
    for cost in costs:
        curve = RenyiCurve(ORDERS, cost)
        stops.append(next(n for n in range(1, 2000) if (curve * n).epsilon(delta=DELTA) > 2.0))
    return row(
        "PATE: answer until the data-dependent budget is gone",
        "the answers are (2, 1e-5)-private",
        "the moment of stopping tells neighbors apart with certainty: not private at any epsilon",
        f"sigma 40, votes [190, 60]: stops at answer {stops[0]}; neighbor [191, 59]: {stops[1]}",
        stops[0] == stops[1],
        stops=stops,
    )


def expected_cost() -> Any:
    """Cost of check and answer times the probability of an answer, against the exact divergence."""
    order, teachers = 8.0, 7
    m = ConfidentGNMax(threshold=12.0, sigma_check=4.0, sigma=0.7)
    here, *moved = (outcomes(n, teachers, m) for n in (4, 3, 5))
    expected = order / (2 * m.sigma_check**2) + (1 - here[0]) * order / m.sigma**2
    pairs = [pair for there in moved for pair in ((here, there), (there, here))]
    exact = max(float(np.log((p**order * q ** (1 - order)).sum()) / (order - 1)) for p, q in pairs)
    answer = exact_local_rdp([[3, 4]], m.sigma, [order])
    bound = float(two_stage_rdp([[3, 4]], m, [order], answer=answer).reveal_to_curator()[0, 0])
    return row(
        "PATE and FairPATE: expected cost of two stages",
        f"Pr[answered] x cost: {expected:.2f} (order 8)",
        "an expectation is no bound (Jensen); `two_stage_rdp` is",
        f"7 teachers, votes 3:4, largest divergence to a neighbor {exact:.2f}, bound {bound:.2f}",
        exact <= expected,
        expected=expected,
        exact=exact,
        bound=bound,
    )


def outcomes(ones: int, teachers: int, m: ConfidentGNMax) -> Any:
    """Probabilities of no answer, class 0, class 1."""
    passed = norm.cdf((max(ones, teachers - ones) - m.threshold) / m.sigma_check)
    one = norm.cdf((2 * ones - teachers) / (m.sigma * 2**0.5))
    return np.array([1 - passed, passed * (1 - one), passed * one])


# ---- metrics that need labels, and SF-PATE -------------------------------------------------


def equalized_odds_decomposition() -> Any:
    """Rates of a perfect classifier of two equally frequent classes."""
    perfect = JointTally(counts=[[[500, 0], [0, 500]]] * 2)
    sound = CalibratedJoint(answered=perfect.predicted, labelled=perfect).rates[0]
    published = published_rates(perfect.predicted, perfect)[0][0]
    return row(
        "FairPATE, Section 4.2",
        "P(Yhat=k' | Y=k, z) by the printed decomposition",
        "J_z(k,k') / sum_j J_z(k,j) with J_z(k,k') = P_D(Yhat=k'|z) P_C(Y=k|Yhat=k',z)",
        f"a perfect classifier, true / false positive rate: printed {published[1, 1]:.0f} / "
        f"{published[0, 1]:.0f}, corrected {sound[1, 1]:.0f} / {sound[0, 1]:.0f}",
        bool(np.allclose(sound, published)),
        published=published.tolist(),
        sound=sound.tolist(),
    )


def error_decomposition() -> Any:
    """Error rate of a classifier that is always wrong, and of one that never is."""
    wrong = JointTally(counts=[[[0, 500], [500, 0]]])
    sound = float(CalibratedJoint(answered=wrong.predicted, labelled=wrong).error_rates[0])
    published = float(published_rates(wrong.predicted, wrong)[1][0])
    return row(
        "FairPATE, Appendix C",
        "P(Y!=Yhat | z) by the printed decomposition",
        "1 - sum_k J_z(k,k): the printed factor P(Y=k) is one too many",
        f"a classifier that is always wrong: printed {published:.2f}, corrected {sound:.2f}",
        sound == published,
        published=published,
        sound=sound,
    )


def noisy_attributes() -> Any:
    """Compare the two factors of SF-PATE's Theorem 1 in one setting."""
    eta, p, q = 0.05, 0.3, 0.25
    printed, tight = 2 * eta / (p * q), alpha_from_eta(0.0, eta, p, q)
    return row(
        "SF-PATE, Theorem 1",
        f"alpha' - alpha = 2 eta B / (p p~): {printed:.2f} (eta .05, p .3, p~ .25, B 1)",
        "true, and eta B / max(p, p~) for h in [0, B] is, too; eta cannot be observed, a confusion "
        "table can (`attribute_certificate`)",
        f"{tight:.2f}, {printed / tight:.0f} times smaller",
        printed >= tight,
        printed=printed,
        tight=tight,
    )


def fair_teachers() -> Any:
    """Rates of the noisy vote: 300 teachers who all agree, or decide one by one."""
    ones = np.arange(301)
    alone = binom.pmf(ones, 300, 0.607)
    votes = np.stack([300 - ones, ones], axis=1)
    found = {}
    for sigma in (0.0, 10.0, 40.0):
        agreed = vote_rates([[300, 0], [0, 300]], sigma=sigma)[:, 1]
        together = 0.403 * agreed[0] + 0.597 * agreed[1]
        found[sigma] = (float(together), float(alone @ vote_rates(votes, sigma=sigma)[:, 1]))
    said = ", ".join(f"{a:.3f} and {b:.3f} (sigma {s:g})" for s, (a, b) in found.items())
    return row(
        "SF-PATE, Theorem 2",
        "fair teachers transfer fairness to the vote: each teacher's rates differ by .010",
        "the theorem is about the joint distribution of all votes, which no teacher's rate "
        "determines",
        f"300 teachers, rates .597 and .607; rates of the vote: {said}",
        all(abs(a - b) <= 0.01 for a, b in found.values()),
        rates={f"{sigma:g}": pair for sigma, pair in found.items()},
    )


CLAIMS = (
    k_gamma_for_its_proof,
    algorithm_3,
    gate,
    fair_rejection,
    stopping,
    expected_cost,
    equalized_odds_decomposition,
    error_decomposition,
    noisy_attributes,
    fair_teachers,
)
HEAD = "| source | claim | what holds | measured | agrees? |\n" + "| --- " * 5 + "|"


def shown(numbers: list[int]) -> str:
    """Numbers between slashes."""
    return " / ".join(map(str, numbers))


def as_line(found: dict[str, Any]) -> str:
    """One line of the table."""
    keys = ("source", "claim", "holds", "measured", "agrees")
    columns = [found[key].replace("|", "\\|") for key in keys]
    return "| " + " | ".join(columns) + " |"


def main() -> None:
    """Measure every claim and print a row for each."""
    given = asked(__doc__, keeps=False).parse_args()
    start = time.perf_counter()
    print(HEAD)
    rows = []
    for claim in CLAIMS:
        rows.append(claim())
        print(as_line(rows[-1]), flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")
    if given.save:
        save(rows)


def save(rows: list[dict[str, Any]]) -> None:
    """Write the rows as JSON and as a table."""
    at = commit()
    write(
        "theory",
        {"commit": at, "rows": rows},
        f"# What the papers claim and what holds, commit {at}\n",
        "`python reproductions/theory.py --save`; how each number is made stands in the script.\n",
        HEAD,
        *map(as_line, rows),
    )


if __name__ == "__main__":
    main()
