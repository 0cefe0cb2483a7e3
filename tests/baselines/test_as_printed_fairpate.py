"""FairPATE with its own accounting: that it says what it is, and why it is none to use."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.estimators.conftest import Parts
from tests.frontier.conftest import make_run

import evenhand
from evenhand import Budget, DemographicParity
from evenhand.baselines.as_printed_fairpate import AsPrintedFairPATEClassifier
from evenhand.baselines.printed_answers import answer_as_printed, cost_of_all
from evenhand.cli.frontier import _show as show_frontier
from evenhand.cli.results import run_parts
from evenhand.estimators import fit_many
from evenhand.fairness.gate.published import PublishedGate
from evenhand.frontier.cost import ReleaseCost
from evenhand.frontier.page.write import render
from evenhand.frontier.store import RunStore
from evenhand.privacy import ConfidentGNMax, GNMax, Ledger, SeededNoise
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.guarantee import NOT_AS_CLAIMED, Guarantee
from evenhand.report.content import ModelReport
from evenhand.report.page import render as page_of
from evenhand.report.summary import summary_lines
from evenhand.voting import Answers, Votes
from evenhand.voting.answers import Reason

CLAIMED = Budget(epsilon=2.0, delta=1e-5)
CAUTIOUS = ConfidentGNMax(threshold=8.0, sigma_check=11.0, sigma=4.0)


@pytest.fixture
def printed(settings: dict[str, Any]) -> dict[str, Any]:
    return settings | {"mechanism": CAUTIOUS, "budget": Budget(epsilon=20.0, delta=1e-5)}


def ask(counts: Any, *, margin: float = 1.0, seed: int = 0, **gate: Any) -> tuple[Answers, Ledger]:
    """Ask about rows of two groups in turn, with noise of a seed."""
    votes = Votes(counts=np.asarray(counts), n_teachers=int(np.sum(counts[0])))
    groups = np.arange(len(counts)) % 2
    noise = SeededNoise(seed)
    mechanism = ConfidentGNMax(threshold=-1e9, sigma_check=150.0, sigma=40.0)
    ledger = Ledger(cost_of_all(mechanism, noise, len(counts), CLAIMED.delta), noise=noise)
    open_gate = PublishedGate(margin, 2, 2, **gate)
    return answer_as_printed(votes, mechanism, CLAIMED, ledger, open_gate, groups), ledger


def test_the_moment_of_stopping_tells_neighbors_apart_with_certainty() -> None:
    # One teacher's vote on every row: a record was replaced. The noise has no say in the number of
    # answers, for the gate is open and no check can fail: another seed gives the same numbers.
    many = 3000
    for seed in range(3):
        one, other = (
            ask([votes] * many, seed=seed)[0].n_answered for votes in ([190, 60], [191, 59])
        )
        assert 0 < one < other < many
        assert (one, other) == tuple(
            ask([votes] * many, seed=seed + 10)[0].n_answered for votes in ([190, 60], [191, 59])
        )


def test_a_refusal_by_the_gate_is_free_as_printed_and_charged_in_the_ledger() -> None:
    # Every winner is class 0, first of group 0 alone, then of group 1 whose rate may not differ:
    # no refusals; with a margin of 0 all answers after the cold start are refused, for < 0 is
    # never so.
    counts = [[250, 0]] * 400
    free, ledger = ask(counts, margin=0.0, cold_start=5)
    assert free.n_answered == 10
    assert free.count(Reason.OUTSIDE_MARGIN) == 390
    # Only ten answers were paid for by the paper's accounting, so it went on to the end ...
    assert free.n_draws == 400
    # ... and the ledger knows 400 checks and 400 winners.
    paid = 400 / 150.0**2 + 400 * 2 / 40.0**2
    assert ledger.spent == pytest.approx(paid, rel=1e-9)
    assert ledger.spent_epsilon(1e-5) == pytest.approx(epsilon_from_mu(math.sqrt(paid), 1e-5))
    assert ledger.spent_epsilon(1e-5) > CLAIMED.epsilon


def test_it_stops_where_the_papers_sum_reaches_the_budget() -> None:
    # A tie costs alpha / sigma^2, whatever Theorem 6 says elsewhere: all costs are those of
    # Gaussian noise here, so the sum is known in closed form.
    answers, _ = ask([[125, 125]] * 3000)
    n = answers.n_answered
    mu = [k * (1 / 150.0**2 + 2 / 40.0**2) for k in (n, n + 1)]

    def classic(mu_squared: float) -> float:
        """Mironov's conversion at its best order: mu^2 / 2 + mu sqrt(2 ln(1 / delta))."""
        return mu_squared / 2 + math.sqrt(2 * mu_squared * math.log(1 / CLAIMED.delta))

    assert classic(mu[0]) <= CLAIMED.epsilon * (1 + 1e-3)
    assert classic(mu[1]) > CLAIMED.epsilon * (1 - 1e-3)


def test_it_says_so_wherever_a_claim_is_shown(
    parts: Parts, printed: dict[str, Any], tmp_path: Path
) -> None:
    model = parts.fit(AsPrintedFairPATEClassifier(**printed))
    claim, fitted = model.guarantee_, model.fitted_
    assert claim.epsilon == math.inf
    assert not claim.holds
    sound = model.ledger_.spent_epsilon(1e-5)
    assert fitted.epsilon_spent == pytest.approx(sound)
    assert f"cost epsilon={sound:.4g} at" in str(claim)
    assert "claims (20.0, 1e-05)" in str(claim)
    report = ModelReport.of(model)
    shown = {
        "sentence": str(claim),
        "page": page_of(report),
        "terminal": "\n".join(summary_lines(report)),
        "train": str(run_parts(fitted)[0]),
        "json": fitted.to_dict()["guarantee"],
        "claim.json": (model.save(tmp_path / "model") / "claim.json").read_text(),
    }
    for where, text in shown.items():
        assert NOT_AS_CLAIMED in text or NOT_AS_CLAIMED.capitalize() in text, where
    assert "would be (" not in str(claim)  # nothing that could be read as a bound
    told = json.loads(shown["claim.json"])["guarantee"]
    assert told["epsilon"] is None
    assert told["holds"] is False
    again = evenhand.load(tmp_path / "model")
    assert str(again.guarantee_) == str(claim)
    assert again.guarantee_ == Guarantee.from_dict(claim.to_dict())


def test_the_paper_s_own_cost_is_nowhere(parts: Parts, printed: dict[str, Any]) -> None:
    # It is computed from the votes: what is said may depend on counts of draws, and on nothing else
    # of the run.
    model = parts.fit(AsPrintedFairPATEClassifier(**printed))
    answers = model.answers_
    assert isinstance(answers, Answers)
    mu = answers.n_checks / 11.0**2 + answers.n_draws * 2 / 4.0**2
    assert model.ledger_.spent == pytest.approx(mu, rel=1e-9)
    assert f"{answers.n_checks:,} checks and {answers.n_draws:,} noisy winners" in str(
        model.guarantee_
    )


def test_many_from_one_training_are_what_each_would_be_alone(
    parts: Parts, printed: dict[str, Any]
) -> None:
    def models() -> list[AsPrintedFairPATEClassifier]:
        return [
            AsPrintedFairPATEClassifier(
                **(printed | {"fairness": DemographicParity(margin=m), "noise": SeededNoise(2)})
            )
            for m in (0.05, 0.3)
        ]

    together, alone = models(), [parts.fit(one) for one in models()]
    refused = fit_many(
        together,
        parts.X,
        parts.y,
        X_public=parts.X_public,
        sensitive_features_public=parts.groups_public,
    )
    assert refused == [None, None]
    for one, other in zip(together, alone, strict=True):
        assert np.array_equal(one.answers_.labels, other.answers_.labels)
        assert one.gate_.violations == other.gate_.violations


def test_what_it_cannot_do_is_refused_before_anything_is_drawn(
    parts: Parts, printed: dict[str, Any]
) -> None:
    model = AsPrintedFairPATEClassifier(**printed)
    account = Ledger(Budget(epsilon=9.0, delta=1e-5), noise=SeededNoise(0))
    with pytest.raises(ValueError, match=r"ledger= is an account of costs that hold"):
        parts.fit(model, ledger=account)
    assert account.spent == 0
    other = AsPrintedFairPATEClassifier(**(printed | {"mechanism": GNMax(sigma=3.0)}))
    with pytest.raises(ValueError, match=r"mechanism must be a ConfidentGNMax"):
        parts.fit(other)


def test_a_frontier_keeps_it_marked_and_has_no_price_for_it(
    parts: Parts, printed: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = parts.fit(AsPrintedFairPATEClassifier(**printed))
    one = make_run(
        method="fairpate-as-printed",
        epsilon=math.inf,
        mu_squared=None,
        guarantee=model.guarantee_.to_dict(),
    )
    with RunStore(tmp_path / "runs.db") as store:
        store.add(one)
        (kept,) = store.runs()
    assert kept.as_printed
    assert not make_run().as_printed
    cost = ReleaseCost.of([kept, make_run(seed=1)])
    assert cost.epsilon == math.inf
    page = render([kept, make_run(seed=1)], title="as printed")
    assert "ran a paper’s method as it is printed" in " ".join(page.split())
    assert page.count(NOT_AS_CLAIMED) == 2  # in the notice, and in the claim of the run
    assert NOT_AS_CLAIMED not in render([make_run()], title="sound")
    summary = {"n_new": 1, "n_before": 0, "seconds": 0.0, "n_settings": 1, "folder": "."}
    summary["choices"] = []
    show_frontier(summary, [kept], cost)
    assert NOT_AS_CLAIMED in " ".join(capsys.readouterr().out.split())
