"""Where a margin sits in a model, and so whether a prediction needs the group."""

from __future__ import annotations

from enum import StrEnum


class FairnessKind(StrEnum):
    """The kinds of fairness that a model can have; every fitted one says which is its own.

    They are not to be compared as if they were one: a model that needs the group of a person to
    decide treats two people with the same features differently, which may be unlawful.

    Examples
    --------
    >>> FairnessKind.THRESHOLDS.needs_group, FairnessKind.WEIGHTS.needs_group
    (True, False)
    >>> print(FairnessKind.WEIGHTS)
    in the weights, no group needed
    """

    NONE = "none, no group needed"
    ANSWERS = "in the answers it learned from, no group needed"
    WEIGHTS = "in the weights, no group needed"
    BLIND_RULE = "in a rule on inferred groups, no group needed"
    THRESHOLDS = "group-aware thresholds, group needed"
    DERIVED = "group-aware probabilities, group needed"
    REJECT_OPTION = "reject option, group needed"
    DRAWN_ROWS = "in the rows it learned from, no group needed"
    DRAWN_ROWS_BY_GROUP = "in the rows it learned from, group needed"

    @property
    def needs_group(self) -> bool:
        """Whether a prediction reads the group of the person it is about."""
        return self in (
            FairnessKind.THRESHOLDS,
            FairnessKind.DERIVED,
            FairnessKind.REJECT_OPTION,
            FairnessKind.DRAWN_ROWS_BY_GROUP,
        )

    @property
    def words(self) -> str:
        """What this kind means for whoever uses the model."""
        return _WORDS[self]


_WORDS = {
    FairnessKind.NONE: "Nothing holds the groups’ rates together. A prediction reads no group.",
    FairnessKind.ANSWERS: "A margin was kept among the answers that the model learned from, and "
    "the model itself was held to none. A prediction reads no group.",
    FairnessKind.WEIGHTS: "A margin was a part of training. A prediction reads no group: two "
    "people with the same features get the same answer.",
    FairnessKind.BLIND_RULE: "The model’s probabilities are moved by how probable each group is, "
    "as a second model infers it from the same features. A prediction reads no group: two people "
    "with the same features get the same answer.",
    FairnessKind.THRESHOLDS: "The score from which a class is given differs from group to group. "
    "A prediction needs the group of each person and treats groups differently; whether that is "
    "lawful is not for this page to say.",
    FairnessKind.DERIVED: "The model’s own decision is kept or changed at random, with "
    "probabilities that differ from group to group. A prediction needs the group of each person "
    "and treats groups differently; whether that is lawful is not for this page to say.",
    FairnessKind.REJECT_OPTION: "Some predictions are refused, depending on the group, so that the "
    "given ones stay within a margin. A prediction needs the group of each person.",
    FairnessKind.DRAWN_ROWS: "How labels and groups are spread over the drawn rows that the model "
    "learned from is all that holds the groups’ rates together. A prediction reads no group.",
    FairnessKind.DRAWN_ROWS_BY_GROUP: "How labels and groups are spread over the drawn rows that "
    "the model learned from is all that holds the groups’ rates together. A prediction needs the "
    "group of each person, as one column among others.",
}
