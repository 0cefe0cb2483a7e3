"""No public rows: noisy counts and answers under one ledger, and what the claim says of it."""

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.datasets import Schema
from evenhand.estimators import fit_many
from evenhand.estimators.counted_decisions import PURPOSE as DECISIONS
from evenhand.estimators.counted_decisions import SHARE
from evenhand.estimators.drawn_rows import PURPOSE, VOTES, RowsToDraw
from evenhand.estimators.synthetic_rows import SyntheticRows, SyntheticRowsWarning
from evenhand.generators.tables import marginal
from evenhand.generators.tables.marginal import CHOICE, ODDS, OWN, PAIRS, MarginalSynthesizer
from evenhand.privacy import BudgetExceeded, GNMax, Ledger, NoisyHistogram, SeededNoise
from evenhand.report import write_report
from evenhand.testing.audit import claimed_mu
from evenhand.testing.door import Transcript, recording

pytestmark = pytest.mark.filterwarnings("ignore::evenhand.estimators.plan.NoiseDrownsAnswers")

BUDGET = Budget(epsilon=8.0, delta=1e-5)
MARGIN = DemographicParity(margin=0.1)
SCHEMA = Schema.declared(
    {
        "age": {"bounds": (0, 100)},
        "hours": {"bounds": (0, 100)},
        "job": ["chef", "clerk", "smith"],
    }
)


def people(n: int = 3000, seed: int = 0) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    age = rng.uniform(20, 70, n).round()
    hours = np.clip(rng.normal(np.where(sex == "M", 44, 36), 8), 1, 90).round()
    X = pd.DataFrame({"age": age, "hours": hours, "job": rng.choice(["chef", "clerk", "smith"], n)})
    rich = hours + (age - 45) / 4 + 6 * (X["job"] == "smith") > 42
    return X, pd.Series(np.where(rich, "yes", "no"), name="rich"), pd.Series(sex, name="sex")


def fitted(method: Any = FairSharesClassifier, **changes: Any) -> Any:
    X, y, sex = people()
    given = {
        "budget": BUDGET,
        "public": SyntheticRows(n_rows=600),
        "n_teachers": 60,
        "noise": SeededNoise(1),
        "random_state": 0,
    }
    more: dict[str, Any] = {}
    if method is not PATEClassifier:
        given["fairness"] = MARGIN
        more["sensitive_features"] = sex
    model = method(**(given | changes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntheticRowsWarning)
        return model.fit(X, y, **more)


@pytest.mark.parametrize("method", [FairSharesClassifier, FairPATEClassifier, PATEClassifier])
def test_every_teacher_ensemble_learns_without_public_rows_within_one_budget(method: Any) -> None:
    transcript = Transcript()
    with recording(transcript):
        model = fitted(method)
    # What was really drawn, counts and answers together, is worth no more than the budget.
    assert claimed_mu(transcript) <= model.ledger_.budget.mu
    purposes = [entry.purpose for entry in model.ledger_.entries]
    first_vote = next(i for i, p in enumerate(purposes) if p.startswith(("shares", "labels", "an")))
    assert 0 < first_vote < len(purposes)
    assert model.ledger_.spent <= model.ledger_.budget.mu_squared <= BUDGET.mu_squared
    X, y, _ = people(2000, seed=1)
    assert (model.predict(X) == y).mean() > (y == "no").mean() + 0.1
    assert model.answers_.n_answered <= 600


def test_a_share_of_the_budget_pays_for_the_counts_and_the_rest_for_answers() -> None:
    for share in (0.1, 0.5):
        model = fitted(public=SyntheticRows(share=share, n_rows=600))
        whole = model.ledger_.budget.mu_squared
        spent = {PURPOSE: 0.0, DECISIONS: 0.0, VOTES: 0.0}
        for entry in model.ledger_.entries:
            purpose = next(name for name in spent if name in entry.account)
            spent[purpose] += entry.mu_squared
        assert spent[DECISIONS] == pytest.approx(SHARE * share * whole, rel=1e-6)
        assert spent[PURPOSE] == pytest.approx((1 - SHARE) * share * whole, rel=1e-6)
        assert spent[VOTES] == pytest.approx((1 - share) * whole, rel=1e-6)
        assert f"{share:.0%} of the budget" in model.choices_[0]


@pytest.mark.parametrize(("weight", "share"), [(16.0, 0.5), (0.0, 0.2)])
def test_of_counts_whose_labels_are_learnt_half_goes_to_the_odds_of_these(
    weight: float, share: float
) -> None:
    model = fitted(public=SyntheticRows(label_weight=weight, n_rows=600), schema=SCHEMA)
    learnt = (OWN, CHOICE, PAIRS, *ODDS)
    counts = [e for e in model.ledger_.entries if PURPOSE in e.account and e.purpose in learnt]
    odds = sum(e.mu_squared for e in counts if e.purpose in ODDS)
    assert odds == pytest.approx(share * sum(e.mu_squared for e in counts), rel=1e-6)


def test_chances_by_the_counts_have_the_codes_of_the_classes() -> None:
    # As text 10 comes before 9, as a class after it; the counts of a large budget know both.
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"kind": rng.choice(["a", "b", "c"], 5000, p=[0.5, 0.3, 0.2])})
    y = np.array([9, 10, 100])[X["kind"].map({"a": 1, "b": 0, "c": 2})]
    y = np.where(rng.random(5000) < 0.1, 9, y)
    classes, codes = np.unique(y, return_inverse=True)
    schema = Schema.declared({"kind": ["a", "b", "c"]})
    settings = SyntheticRows().decided("shares")
    rows = RowsToDraw.of(settings, X, codes, classes, None, None, schema)
    ledger = Ledger(Budget(epsilon=20.0, delta=1e-5), noise=SeededNoise(0))
    drawn = rows.draw(ledger, 1e-5, np.random.default_rng(1))
    assert drawn.chances is not None
    of_kind = pd.DataFrame(drawn.chances).groupby(np.asarray(drawn.natural["kind"])).mean()
    assert of_kind.idxmax(axis=1).to_dict() == {"a": 1, "b": 0, "c": 2}
    assert np.abs(drawn.chances.mean(axis=0) - np.bincount(codes) / len(codes)).max() < 0.05


@pytest.mark.parametrize(("least", "weight"), [(marginal.LEAST_SIGNAL, 64.0), (1e9, 16.0)])
def test_chances_without_the_odds_of_labels_weigh_a_quarter(
    least: float, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marginal, "LEAST_SIGNAL", least)
    X, y, _ = people(2000, seed=1)
    classes, codes = np.unique(y, return_inverse=True)
    settings = SyntheticRows().decided("shares")
    rows = RowsToDraw.of(settings, X, codes, classes, None, None, SCHEMA)
    ledger = Ledger(Budget(epsilon=4.0, delta=1e-5), noise=SeededNoise(0))
    drawn = rows.draw(ledger, 1e-5, np.random.default_rng(0))
    assert drawn.weight == weight
    # Whether odds were released follows from released counts, so it may be said.
    said = [words for words in drawn.notes if "odds of labels" in words]
    assert len(said) == (weight < 64.0)
    assert all("weigh 16 times as much as the answers, 0.25 of label_weight=64" in s for s in said)


@pytest.mark.slow
def test_a_student_of_drowned_answers_learns_what_the_counts_know() -> None:
    # Nearly the whole budget for counts: answers alone bring .57 of test rows right (.47 to .68
    # over six fits), with labels by the counts .96 (.94 to .97).
    X, y, _ = people(2000, seed=1)
    right: dict[float, list[float]] = {0.0: [], 16.0: []}
    for weight, found in right.items():
        settings = SyntheticRows(n_rows=600, share=0.998, label_weight=weight)
        for seed in range(3):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fitted(public=settings, schema=SCHEMA, noise=SeededNoise(seed))
                found.append(float((model.without_margin().predict(X) == y).mean()))
            assert ("counts say of labels" in model.choices_[0]) == (weight > 0)
    assert min(right[16.0]) > 0.85
    assert np.mean(right[16.0]) > np.mean(right[0.0]) + 0.05


def test_who_learns_labels_reads_none_by_the_counts_and_pays_less_for_them() -> None:
    assert SyntheticRows().decided("labels") == SyntheticRows(label_weight=0.0).decided("shares")
    assert SyntheticRows(share=0.4).decided("labels").share == 0.4
    made = [
        fitted(FairPATEClassifier, public=SyntheticRows(n_rows=600, label_weight=weight))
        for weight in (0.0, 4.0)
    ]
    assert (made[0].student_.coef_ == made[1].student_.coef_).all()


def test_the_claim_lists_no_public_row_and_keeps_its_delta(tmp_path: Path) -> None:
    bought, declared = fitted(), fitted(schema=SCHEMA)
    for model in (bought, declared):
        said = str(model.guarantee_)
        assert "no row: the 600 rows that the teachers are asked about were drawn" in said
        assert "public rows" not in said
        assert (model.guarantee_.epsilon, model.guarantee_.delta) == (8.0, 1e-5)
        assert model.margin_source_ == "counted decisions"
        assert model.public_yardstick_.where == "drawn rows, by the released answers"
        assert model.within_margin_
    # A tenth of delta names categories where no schema does; then the ledger speaks at the rest.
    assert bought.ledger_.budget.delta == pytest.approx(0.9e-5)
    assert "10% of delta" in bought.guarantee_.accounting
    assert bought.guarantee_.mu_squared is None
    assert declared.ledger_.budget.delta == 1e-5
    assert declared.guarantee_.mu_squared == pytest.approx(BUDGET.mu_squared)
    assert any("'hours' from" in words for words in bought.choices_)
    assert not any("released" in words for words in declared.choices_)
    for number, model in enumerate((bought, declared)):
        path = model.save(tmp_path / f"model{number}")
        loaded = evenhand.load(path)
        assert loaded.guarantee_ == model.guarantee_
        assert loaded.public == model.public
        assert loaded.margin_source_ == "counted decisions"
        assert loaded.choices_ == model.choices_
        X, _, _ = people(50, seed=2)
        assert list(loaded.predict(X)) == list(model.predict(X))
        page = tmp_path / f"report{number}.html"
        write_report(loaded, page)
        text = page.read_text()
        assert "were drawn from noisy counts" in text
        assert "noisy counts of the private rows" in text


def test_what_chances_weigh_without_odds_is_kept_and_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marginal, "LEAST_SIGNAL", 1e9)
    model = fitted(schema=SCHEMA)
    loaded = evenhand.load(model.save(tmp_path / "model"))
    (said,) = [words for words in loaded.fitted_.of_drawn_rows if "odds of labels" in words]
    assert said.startswith("Of the drawn rows: ")
    write_report(loaded, tmp_path / "report.html")
    assert "weigh 16 times as much" in (tmp_path / "report.html").read_text()
    alone = fitted(public=SyntheticRows(n_rows=600, label_weight=0.0), schema=SCHEMA)
    assert not any("odds of labels" in words for words in alone.choices_)


def test_the_word_is_the_default_settings_and_a_seed_repeats_the_fit() -> None:
    X, y, sex = people()
    made = [
        FairSharesClassifier(
            BUDGET, MARGIN, public=public, random_state=3, noise=SeededNoise(0), n_teachers=50
        ).fit(X, y, sensitive_features=sex)
        for public in ("synthetic", SyntheticRows())
    ]
    assert (made[0].student_.coef_ == made[1].student_.coef_).all()
    assert len(made[0].answers_.shares) == SyntheticRows().n_rows


def test_arrays_and_units_are_taken(tmp_path: Path) -> None:
    X, y, sex = people()
    numbers = X[["age", "hours"]].to_numpy()
    model = FairSharesClassifier(
        BUDGET, MARGIN, public=SyntheticRows(n_rows=500), noise=SeededNoise(0), random_state=0
    ).fit(numbers, y, sensitive_features=sex, unit_ids=np.arange(3000) // 2)
    assert model.guarantee_.neighbors == "add or remove one"
    assert model.predict(numbers[:5]).shape == (5,)
    loaded = evenhand.load(model.save(tmp_path / "model"))
    assert loaded.guarantee_ == model.guarantee_


@pytest.mark.parametrize("balance", ["group", "label", "both"])
def test_a_margin_is_read_on_rows_as_they_are_whatever_is_balanced(balance: str) -> None:
    # A student that follows the label has the gap of the labels; on rows with as many of each
    # class in each group it would have none.
    model = fitted(
        fairness=DemographicParity(margin=0.6), public=SyntheticRows(n_rows=2000, balance=balance)
    )
    X, _, sex = people(4000, seed=5)
    decided = model.predict(X) == "yes"
    real = abs(decided[sex == "M"].mean() - decided[sex == "F"].mean())
    assert real > 0.15
    assert model.public_gap_ == pytest.approx(real, abs=0.1)


def test_a_refused_fit_spends_nothing() -> None:
    X, y, sex = people()
    account = Ledger(
        Budget(epsilon=10.0, delta=1e-5), noise=SeededNoise(0), neighbors="add or remove one"
    )

    def fit(X: Any = X, y: Any = y, **changes: Any) -> Any:
        more = {"sensitive_features": changes.pop("sensitive_features", sex)}
        given = {"public": "synthetic", "schema": SCHEMA, "fairness": MARGIN, "random_state": 0}
        return FairSharesClassifier(BUDGET, **(given | changes)).fit(X, y, ledger=account, **more)

    too_costly = NoisyHistogram(sigma=1.0, n_classes=2)
    many = np.random.default_rng(0).integers(0, 40, (len(X), 2))
    identifiers = X.assign(id=[f"person {i}" for i in range(len(X))])
    for error, words, changes in (
        (BudgetExceeded, "costs more than the budget has left", {"mechanism": too_costly}),
        (ValueError, "naming the categories and bounds of", {"schema": None}),
        (ValueError, "public_fraction= gives rows of X away", {"public_fraction": 0.2}),
        (ValueError, "sensitive_features is missing", {"sensitive_features": None}),
        (ValueError, "one group only", {"sensitive_features": np.full(len(X), "F")}),
        (ValueError, "than 200 combinations", {"sensitive_features": many}),
        (ValueError, "public must be None, 'synthetic'", {"public": "real"}),
        (ValueError, "public must be None", {"public": X}),
        (ValueError, "from nowhere", {"fairness": DemographicParity(margin=0.1, confidence=0.9)}),
        (ValueError, "age", {"X": X.assign(age="old")}),
        (ValueError, "without unit_ids= each row", {"public": SyntheticRows(per_unit=3)}),
    ):
        with pytest.raises(error, match=words):
            fit(**changes)
        assert account.spent == 0, words
    with pytest.raises(ValueError, match="'id'"):
        FairSharesClassifier(BUDGET, MARGIN, public="synthetic").fit(
            identifiers, y, sensitive_features=sex
        )
    # Not vacuous: the same account pays for a fit that is in order.
    fit(n_teachers=40)
    assert account.spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)


@pytest.mark.parametrize(
    ("n", "n_rich", "n_men", "alone"),
    [(3, 1, 1, "one class and one group"), (300, 3, 150, "one class"), (300, 150, 3, "one group")],
)
@pytest.mark.parametrize("method", [FairSharesClassifier, FairPATEClassifier])
def test_records_that_the_noise_will_hide_are_refused_before_anything_is_charged(
    method: Any, n: int, n_rich: int, n_men: int, alone: str
) -> None:
    X, _, _ = people(n)
    y, sex = np.arange(n) < n_rich, np.where(np.arange(n) < n_men, "M", "F")
    account = Ledger(BUDGET, noise=SeededNoise(0), neighbors="add or remove one")
    given = {"public": "synthetic", "schema": SCHEMA, "n_teachers": min(n, 30)}
    if n == 3 and method is FairPATEClassifier:
        given["mechanism"] = GNMax(sigma=10.0)
    with pytest.raises(ValueError, match=f"likely than not show {alone} alone.*Nothing was ch"):
        method(BUDGET, MARGIN, **given).fit(X, y, sensitive_features=sex, ledger=account)
    assert account.entries == ()


@pytest.mark.parametrize("settings", [{}, {"pairs": False}, {"tilt": True}, {"tilt_share": 0.5}])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_counts_are_as_loud_as_was_said_beforehand_or_louder(
    settings: dict[str, Any], n_columns: int
) -> None:
    X, y, sex = people(1500)
    frame = X[["age", "hours", "job"][:n_columns]].assign(rich=y, sex=sex)
    maker = MarginalSynthesizer(noise=SeededNoise(0), random_state=0, **settings)
    payload = maker.read(frame, label="rich", sensitive="sex")
    ledger = Ledger(BUDGET, noise=SeededNoise(0), neighbors=maker.neighbors)
    said = maker.least_sigma(payload, ledger)
    made = maker.fit_within(payload, ledger, delta=BUDGET.delta)
    assert 0.2 * made.counts_sigma_ < said <= made.counts_sigma_


def test_an_account_with_little_room_pays_for_counts_and_answers_in_proportion() -> None:
    X, y, sex = people(1500)
    account = Ledger(
        Budget(epsilon=9.0, delta=1e-5), noise=SeededNoise(0), neighbors="add or remove one"
    )
    given = {"schema": SCHEMA, "n_teachers": 60, "random_state": 0}
    drawn = SyntheticRows(n_rows=300, share=0.2)
    for room in (BUDGET.mu_squared, account.budget.mu_squared - BUDGET.mu_squared):
        before = account.spent
        model = FairSharesClassifier(BUDGET, MARGIN, public=drawn, **given)
        model.fit(X, y, sensitive_features=sex, ledger=account)
        counts = sum(e.mu_squared for e in model.ledger_.entries if VOTES not in e.account)
        assert counts == pytest.approx(0.2 * room, rel=1e-5)
        assert account.spent - before == pytest.approx(room, rel=1e-5)
    with pytest.raises(BudgetExceeded, match="Nothing"):
        model.fit(X, y, sensitive_features=sex, ledger=account)


def test_models_of_one_training_cannot_draw_rows_of_their_own() -> None:
    X, y, sex = people(300)
    models = [
        FairSharesClassifier(BUDGET, MARGIN, public="synthetic", random_state=0) for _ in range(2)
    ]
    with pytest.raises(ValueError, match="draws them from the budget of each"):
        fit_many(models, X, y, sensitive_features=sex)


def test_what_the_noise_hides_is_said() -> None:
    X, y, sex = people(1500)
    rare = sex.mask(np.arange(1500) < 4, "X")
    model = FairSharesClassifier(
        Budget(epsilon=1.0, delta=1e-5),
        MARGIN,
        public=SyntheticRows(n_rows=300),
        schema=SCHEMA,
        noise=SeededNoise(0),
        random_state=0,
        n_teachers=60,
    )
    with pytest.warns(SyntheticRowsWarning, match="cannot be told from empty ones"):
        model.fit(X, y, sensitive_features=rare)
    assert any("cannot be told from empty ones" in words for words in model.choices_)
    assert model.groups_ == ("F", "M", "X")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share", 0.0),
        ("share", 1.0),
        ("n_rows", 0),
        ("balance", "sex"),
        ("n_bins", 1),
        ("label_weight", -1.0),
    ],
)
def test_settings_that_cannot_be_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        SyntheticRows(**{name: value})


def test_the_counts_come_before_any_teacher_and_the_votes_learn_of_nothing_else() -> None:
    # The order of charges is public: the domain, the counts, then the answers; and mu adds up.
    model = fitted()
    squares = [entry.mu_squared for entry in model.ledger_.entries]
    accounts = [PURPOSE in entry.account for entry in model.ledger_.entries]
    assert accounts == sorted(accounts, reverse=True)
    assert math.fsum(squares) == pytest.approx(model.ledger_.budget.mu_squared, rel=1e-6)
