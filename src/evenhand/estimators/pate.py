"""PATE: a private student from a vote of teachers, with no fairness margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.estimators.base import TeacherEnsembleClassifier
from evenhand.estimators.plan import resolve_answers
from evenhand.estimators.spec import ACCOUNT, BUDGET, PUBLIC_ROWS, VOTES, MethodSpec, registered


@registered(
    MethodSpec(
        name="pate",
        words="Teachers vote on public rows, and a student learns from noisy answers; no margin.",
        reads=(*BUDGET, *VOTES, *ACCOUNT, *PUBLIC_ROWS, "answers", "group_thresholds"),
        needs=("epsilon",),
        shares_votes=True,
    )
)
@dataclass(eq=False, repr=False, kw_only=True)
class PATEClassifier(TeacherEnsembleClassifier):
    """Train a differentially private classifier by a noisy vote of teachers on public rows.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    n_teachers : int, optional
        Each is trained on its own part of the private rows. At most the number of records.
        Default: ``n_teachers_``, chosen from public numbers; ``choices_`` says how.
    teachers : Teachers, classifier, torch.nn.Module or callable, optional
        How teachers are trained, or what each of them is; a callable makes it from
        ``(n_features, n_classes)``. Default ``LogisticTeachers()``.
    answers : {"shares", "labels"}, optional
        What is released about a public row. ``"shares"``: the noisy histogram of the votes, for a
        student that knows the noise. ``"labels"``: a noisy winner. Default: shares, which measure
        better (``docs/students.md``), unless another setting is about labels.
    mechanism : NoisyHistogram, Rounds, GNMax, ConfidentGNMax or LNMax, optional
        How it is drawn; the first two release shares, the others labels. Default: chosen from
        public numbers; ``choices_`` says how.
    student : scikit-learn classifier, optional
        Learns from the answered public rows. Default: logistic regression.
    schema : Schema, optional
        Declared kinds, categories and bounds of the columns. Default: read from the public rows.
    classes : array-like, optional
        All classes that can occur. Default: those in ``y``; their names are then public.
    public : {"synthetic"} or SyntheticRows, optional
        Where nobody has public rows: rows to ask about are drawn from noisy counts of the private
        ones, which a share of the budget pays for, under the same ledger and claim. ``fit`` then
        takes no ``X_public``.
    public_fraction : float, optional
        Share of ``X`` to set aside as public rows where ``X_public`` is not given. This gives the
        features and groups of these rows away: the guarantee does not cover them.
    check_drift : bool or DriftCheck, default False
        Whether a small share of the budget pays for noisy counts of the private rows, by which
        the public rows are compared with them; ``drift_`` says how far apart they are.
    unit : str, default "person"
        What a ``unit_ids`` entry stands for, in the words of the guarantee.
    neighbors : {"replace one", "add or remove one"}, optional
        The change of the private data that the claim is about. Default: add or remove one where
        ``unit_ids`` are given, or ``public=`` pays for noisy counts, which have less noise so;
        else replace one. Replacing a record is two steps of the former.
    noise : Noise, optional
        ``DiscreteNoise()`` (default, exact), ``FloatNoise()`` or, for tests, ``SeededNoise(seed)``.
    random_state : int, Generator or None
        Seeds models, and the partition where it is by position or unit. It never seeds the privacy
        noise.

    Attributes
    ----------
    guarantee_ : Guarantee
        The claim; ``str()`` is one sentence.
    answers_ : Answers
        What was asked and answered, and the reasons for the rest.
    ledger_ : Ledger
        What was spent on what.
    classes_, student_, encoder_, mechanism_

    Privacy
    -------
    Neighbors : replace one record (assignment by position); add or remove one record (by a coin of
        its own, which nobody can repeat); or add or remove one unit with all its records
        (``unit_ids`` given: by a keyed hash).
    Cost : at most the budget, whatever the data: each draw is charged before it is made.

    References
    ----------
    Papernot et al. 2018, "Scalable Private Learning with PATE", Section 4.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import Budget
    >>> X, y = make_classification(600, random_state=0)
    >>> clf = PATEClassifier(Budget(epsilon=4.0, delta=1e-5), n_teachers=40, random_state=0)
    >>> clf = clf.fit(X[:400], y[:400], X_public=X[400:])
    >>> clf.guarantee_.epsilon, clf.guarantee_.neighbors
    (4.0, 'replace one')
    """

    answers: str | None = None
    student: Any = None

    def _what_is_released(self) -> str:
        return resolve_answers(self.answers, self.mechanism, wants_labels=self.student is not None)
