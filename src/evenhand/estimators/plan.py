"""What is chosen where the user names nothing: from public numbers alone, before any teacher."""

from __future__ import annotations

import math
import warnings
from typing import Final, TypeAlias

import numpy as np

from evenhand import _checks
from evenhand._words import ANSWERS
from evenhand.privacy import Budget, BudgetExceeded, GNMax, Ledger, NoisyHistogram
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.noise import Noise
from evenhand.voting.blocks import Mechanism, stages
from evenhand.voting.shares import Rounds, histogram_for

LARGEST_NOISE_SHARE: Final = 0.4
"""Largest default noise per teacher; ``benchmarks/default_mechanism.py`` compares shares."""

N_ROUNDS: Final = 3
ASKED_AGAIN: Final = 0.2
"""Share of the public rows that every round after the first asks again."""

TEACHERS_SCALE: Final = 5.0
"""See :func:`default_n_teachers`."""

TEACHERS_OF_UNITS: Final = 250
"""Teachers where the number of units is private, and nothing may be computed from it."""

FEWEST_RECORDS: Final = 4
"""Records that a teacher has on average, at the least."""

FEWEST_STEPS: Final = 30
FEWEST_UNDER_A_MARGIN: Final = 300
MOST_STEPS: Final = 1500
"""See :func:`default_steps`."""

DEGREE: Final = 3
ENOUGH_FOR_CURVES: Final = 80
"""See :func:`default_degree`."""

FEWEST_OF_NETWORKS: Final = 100
STEPS_PER_RECORD: Final = 15 / 256
NOISE_IN_A_WEIGHT: Final = 0.3
FASTEST: Final = 2.0
"""See :func:`network_steps`."""

Release: TypeAlias = Mechanism | Rounds
"""What the ledger pays for: labels by a mechanism, or shares in rounds."""


def resolve_answers(
    answers: str | None,
    mechanism: Mechanism | NoisyHistogram | Rounds | None,
    *,
    wants_labels: bool,
) -> str:
    """Return what is released, and refuse a mechanism that releases something else.

    Parameters
    ----------
    answers : {"labels", "shares"} or None
        None: shares, unless the mechanism or another setting is about labels.
    mechanism : as given by the user
    wants_labels : bool
        Whether another setting needs labels: a student of the user's, or the gate.
    """
    if answers is None:
        for_shares = isinstance(mechanism, NoisyHistogram | Rounds)
        about_labels = wants_labels if mechanism is None else not for_shares
        return "labels" if about_labels else "shares"
    _checks.one_of("answers", answers, ANSWERS)
    other = "shares" if answers == "labels" else "labels"
    return refuse_mechanism(mechanism, answers, f"answers={other!r}")


def refuse_mechanism(
    mechanism: Mechanism | NoisyHistogram | Rounds | None, answers: str, way_out: str
) -> str:
    """Return ``answers``, what is released; raise ValueError for a mechanism of something else."""
    for_shares = isinstance(mechanism, NoisyHistogram | Rounds)
    if mechanism is not None and for_shares != (answers == "shares"):
        known = (
            "NoisyHistogram or Rounds" if answers == "shares" else "GNMax, ConfidentGNMax or LNMax"
        )
        raise ValueError(
            f"mechanism={mechanism!r} does not release {answers}. Use {known}, {way_out}, or leave "
            f"it out."
        )
    return answers


def choose_n_teachers(given: int | None, *, n_private: int | None, mu: float) -> tuple[int, str]:
    """Return the number of teachers, and why.

    Parameters
    ----------
    given : int or None
        The user's, which is kept.
    n_private : int or None
        Number of private records where it is public; None where it is not.
    mu : float
        The budget in Gaussian DP.
    """
    if given is not None:
        return given, f"{given:,} teachers were asked for."
    if n_private is None:
        return (
            TEACHERS_OF_UNITS,
            f"{TEACHERS_OF_UNITS} teachers: the number of units is private, so a fixed number.",
        )
    n = default_n_teachers(n_private, mu)
    return n, (
        f"{n:,} teachers: {TEACHERS_SCALE:g} (n / mu^2)^(1/3) for n = {n_private:,} private "
        f"records and mu = {mu:.3f}. More teachers drown the noise, fewer know more."
    )


def default_n_teachers(n_private: int, mu: float) -> int:
    """Return ``5 (n / mu^2)^(1/3)``, and at most one teacher for 4 records.

    The noise that reaches a student falls with the number N of teachers, as ``1 / (mu sqrt(n N))``;
    what a teacher misses because it sees ``n / N`` records only rises with ``N / n``. The sum of
    their squares is least at ``N`` proportional to ``(n / mu^2)^(1/3)``. The factor was chosen on
    Bank, ACS-Income and German credit (``reproductions/choices.py``).

    Examples
    --------
    >>> [default_n_teachers(27_000, Budget(epsilon=e, delta=1e-5).mu) for e in (1.0, 3.0)]
    [360, 186]
    """
    wanted = TEACHERS_SCALE * float(np.cbrt(n_private / mu**2))
    return max(1, min(math.floor(wanted), n_private // FEWEST_RECORDS))


def default_steps(
    n_records: int, n_columns: int, mu: float, *, margin: bool = False
) -> tuple[int, float]:
    """Return the steps of DP-SGD for logistic regression, and the part of its rate to take.

    Noise moves a weight by ``rate * steps / (mu n)`` in all, and d of them together by ``sqrt(d)``
    times that; a descent of that length finds what ``rate * steps`` allows, as a ridge of its
    inverse would. So both go with ``s = n mu / sqrt(d)``: ``s`` steps, at least 30, with the rate
    times ``s / 30`` below that, and at most 1,500. The factor 1 was chosen on training rows of
    Bank, ACS-Income, Credit, German and Parkinsons (``reproductions/dpsgd_steps.py``). A margin
    needs 300 at the least, in which its multipliers find their place.

    Parameters
    ----------
    n_records, n_columns : int
        A public number of records, and of encoded columns.
    mu : float
        The budget in Gaussian DP.
    margin : bool
        Whether training keeps one.

    Examples
    --------
    >>> [default_steps(n, 60, Budget(epsilon=1.0, delta=1e-5).mu)[0] for n in (600, 3000, 27_000)]
    [30, 104, 934]
    """
    signal = n_records * mu / math.sqrt(n_columns)
    fewest = FEWEST_UNDER_A_MARGIN if margin else FEWEST_STEPS
    steps = min(MOST_STEPS, max(fewest, round(signal)))
    return steps, min(1.0, signal / FEWEST_STEPS)


def default_degree(n_records: int, n_columns: int, mu: float) -> int:
    """Return the degree of the curves beside numbers that DP-SGD can pay for: 3, or 0 for none.

    More columns bring more noise, and a line misses what bends. The bound is on ``n mu / sqrt(d)``,
    the number of steps that :func:`default_steps` takes; 80 was chosen on training rows of Bank,
    ACS-Income, Credit, Parkinsons, German and STAR, of which the last two lost below it
    (``reproductions/dpsgd_curves.py``).

    Parameters
    ----------
    n_records, n_columns : int
        A public number of records, and of encoded columns without curves.
    mu : float
        The budget in Gaussian DP.
    """
    return DEGREE if n_records * mu / math.sqrt(n_columns) >= ENOUGH_FOR_CURVES else 0


def network_steps(
    n_records: int,
    mu: float,
    clip_norm: float,
    *,
    n_steps: int | None = None,
    margin: bool = False,
) -> tuple[int, float]:
    """Return the steps of DP-SGD for a network with hidden layers, and their rate.

    ``steps`` at ``rate`` move every weight by noise of a standard deviation of about ``rate steps
    clip_norm / (mu n)`` in all, whatever the batch (the central limit of Poisson samples). The rate
    is that which makes this .3, and at most 2: a longer descent learns more, and drowns in it. What
    the number of steps is matters little beside: ``15 n / 256``, within 100 and 1,500. Chosen on
    training rows of Bank, ACS-Income, Credit, German, Parkinsons, STAR and COMPAS.

    Parameters
    ----------
    n_records : int
        A public number of records.
    mu : float
        The budget in Gaussian DP.
    clip_norm : float
    n_steps : int, optional
        The user's, which is kept.
    margin : bool
        Whether training keeps one.

    Examples
    --------
    >>> mu = Budget(epsilon=1.0, delta=1e-5).mu
    >>> [network_steps(n, mu, 2.0)[0] for n in (600, 8_000, 27_000)]
    [100, 469, 1500]
    >>> [round(network_steps(n, mu, 2.0)[1], 2) for n in (600, 8_000, 27_000)]
    [0.24, 0.69, 0.72]
    """
    fewest = FEWEST_UNDER_A_MARGIN if margin else FEWEST_OF_NETWORKS
    steps = n_steps or min(MOST_STEPS, max(fewest, round(STEPS_PER_RECORD * n_records)))
    return steps, min(FASTEST, NOISE_IN_A_WEIGHT * mu * n_records / (clip_norm * steps))


def choose_mechanism(
    given: Mechanism | NoisyHistogram | Rounds | None,
    answers: str,
    ledger: Ledger,
    *,
    n_teachers: int,
    n_queries: int,
    n_classes: int,
    moves: int = 1,
) -> tuple[Release, str]:
    """Return the mechanism to use, and why; refuse one that the ledger cannot pay for.

    ``moves`` is by how much one unit moves one count of ``n_teachers`` votes.

    Raises
    ------
    BudgetExceeded
        If the budget does not cover one label, or the shares of all rows.
    """
    if answers == "shares":
        assert given is None or isinstance(given, NoisyHistogram | Rounds)
        rounds, why = _choose_rounds(given, ledger, n_queries=n_queries, n_classes=n_classes)
        if rounds.mu_squared(ledger.noise) > ledger.remaining:
            raise BudgetExceeded(
                f"{given!r} on all {n_queries} public rows costs more than the budget has left "
                f"(mu^2 = {rounds.mu_squared(ledger.noise):.4g} of {ledger.remaining:.4g}). Raise "
                f"epsilon or sigma, or leave mechanism=None for the sigma that fits."
            )
        return rounds, why
    mechanism = given
    if mechanism is None:
        mechanism = default_mechanism(
            ledger.budget, n_teachers=n_teachers, n_queries=n_queries, moves=moves
        )
    assert not isinstance(mechanism, NoisyHistogram | Rounds)
    require_one_answer(mechanism, ledger, n_teachers=n_teachers, chosen_by_default=given is None)
    if given is not None:
        return mechanism, f"{mechanism!r} was asked for."
    return mechanism, (
        f"{mechanism!r}: all {n_queries:,} rows are asked if that needs noise of at most "
        f"{LARGEST_NOISE_SHARE:g} votes per teacher, otherwise as many as the budget pays for."
    )


def _choose_rounds(
    given: NoisyHistogram | Rounds | None, ledger: Ledger, *, n_queries: int, n_classes: int
) -> tuple[Rounds, str]:
    if isinstance(given, NoisyHistogram):
        return Rounds.once(given, n_queries), f"{given!r} was asked for, once for every public row."
    if given is not None:
        return given, f"{len(given.n_rows)} rounds were asked for."
    rounds = default_rounds(ledger, n_queries=n_queries, n_classes=n_classes)
    sigmas = ", ".join(f"{histogram.sigma:.3g}" for histogram in rounds.histograms)
    return rounds, (
        f"{len(rounds.n_rows)} rounds of noisy shares, an equal part of the budget for each: first "
        f"all {n_queries:,} rows, then twice the {rounds.n_rows[1]:,} where the student so "
        f"far is least sure. Noise of {sigmas} votes: what the budget pays for."
    )


def default_rounds(ledger: Ledger, *, n_queries: int, n_classes: int) -> Rounds:
    """Return the rounds that spend what is left: all rows once, then those near the boundary.

    Each round has a third of the budget, so ``sigma = sqrt(3 n_rows) / mu`` for two classes and
    ``sqrt(2)`` times that for more. Rows where the student is sure say little about where its
    boundary should lie; asking the fifth that it is least sure about costs no more noise than
    asking all, and each answer has less of it. Chosen on Bank, ACS-Income and German credit
    (``reproductions/choices.py``).
    """
    again = max(1, math.ceil(ASKED_AGAIN * n_queries))
    n_rows = (n_queries,) + (again,) * (N_ROUNDS - 1)
    # A hair less: three thirds must not add up to more than the whole in the last digit.
    each = max(ledger.remaining, 1e-300) / N_ROUNDS * (1 - 1e-12)
    return Rounds(
        histograms=tuple(histogram_for(ledger, n, n_classes, each) for n in n_rows), n_rows=n_rows
    )


class NoiseDrownsAnswers(UserWarning):
    """The budget pays for so little that the model learns little, or nothing."""


def warn_of_drowning(rounds: Rounds, noise: Noise, *, n_teachers: int, n_columns: int) -> None:
    """Warn where the noise is larger than all that the teachers can say.

    A student of ``n_columns`` coefficients learns from noisy shares in proportion to
    ``n_teachers mu / sqrt(n_columns)``. On ACS-Income, where a guess errs on .46, the error was
    above .29 below 1 and no better than the guess below .5 (``reproductions/choices.py``, third
    table). All of it is public.
    """
    mu = math.sqrt(rounds.mu_squared(noise))
    signal = n_teachers * mu / math.sqrt(n_columns)
    if signal < 1:
        warnings.warn(
            f"The noise drowns the answers: {n_teachers} teachers x mu {mu:.3g} / "
            f"sqrt({n_columns} columns) = {signal:.2g}. Below 1 a model learns little, below .5 "
            f"nothing. Raise epsilon, or train on more records.",
            NoiseDrownsAnswers,
            stacklevel=5,
        )


def default_mechanism(budget: Budget, *, n_teachers: int, n_queries: int, moves: int = 1) -> GNMax:
    """Return the noisy maximum that this package uses where the user names none.

    All public rows are asked if the noise that this needs stays below 0.4 times the number of
    teachers; otherwise the noise is that much, and the budget ends the asking earlier:
    ``sigma = min(sqrt(2 n_queries) / mu, 0.4 n_teachers)``. There is no noisy threshold: measured
    on Adult (``benchmarks/default_mechanism.py``), what a threshold costs is better spent on
    further answers, because a regularised student averages the noise of many labels.

    Parameters
    ----------
    budget : Budget
        What may be spent.
    n_teachers, n_queries : int
        Number of teachers and of public rows. Both public.
    moves : int
        Votes that one unit moves; they widen the noise as many times.

    Examples
    --------
    >>> default_mechanism(Budget(epsilon=3.0, delta=1e-5), n_teachers=250, n_queries=6783)
    GNMax(sigma=100.0)
    """
    wanted = moves * math.sqrt(2.0 * max(1, n_queries)) / budget.mu
    most = round(LARGEST_NOISE_SHARE * n_teachers, 1)  # 42.4, and not 42.400000000000006
    return GNMax(sigma=min(wanted, most))


def require_one_answer(
    mechanism: Mechanism, ledger: Ledger, *, n_teachers: int, chosen_by_default: bool
) -> None:
    """Refuse a budget that does not cover one answer, before any teacher is trained.

    Raises
    ------
    BudgetExceeded
        With the epsilon, and for the default noise the number of teachers, that would do.
    """
    check, answer = stages(mechanism)
    uses = (answer,) if check is None else (check, answer)
    if ledger.affordable(*uses):
        return
    cost = sum(use.mu_squared(ledger.noise) for use in uses)
    delta = ledger.budget.delta
    enough = epsilon_from_mu(math.sqrt(cost + ledger.spent), delta)
    way_out = f"Raise epsilon to at least {math.ceil(enough * 1000) / 1000:g}"
    if chosen_by_default:
        left = max(ledger.remaining, 1e-12)
        teachers = math.ceil(math.sqrt(2.0 / left) / LARGEST_NOISE_SHARE) + 1
        way_out += f", or use at least {teachers} teachers (now {n_teachers})"
    else:
        way_out += ", or raise sigma"
    raise BudgetExceeded(
        f"{mechanism!r} costs more for one answer than the budget has left: epsilon="
        f"{ledger.budget.epsilon:g} at delta={delta:g} affords "
        f"mu={math.sqrt(ledger.remaining):.3g}, one answer needs mu={math.sqrt(cost):.3g}. "
        f"{way_out}."
    )
