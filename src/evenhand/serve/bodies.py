"""What goes over the wire: the bodies of requests and answers, and their limits."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from evenhand.serve.cases import MOST_ROWS, is_text

Cell = str | bool | int | float | None
MOST_REVIEWS: Final = 1000
"""Reviews of one request."""
LARGEST_ID: Final = 2**63 - 1
KEY: Final = "^[!-~]{1,200}$"
"""An idempotency key."""


def _text(value: str) -> str:
    if not is_text(value):
        raise ValueError("holds characters that are not text")
    return value


Text = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_text)]
"""What a person writes; the store can keep it."""


class RepeatedKey(ValueError):
    """A key stands twice in one object, and who reads it last decides which value counts."""


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON whose keys all differ: an ``object_pairs_hook``."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKey("a key stands twice in one object")
    return found


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DecideBody(_Body):
    """Rows to decide on, in the order in which they are decided."""

    rows: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_ROWS)]


class Decided(BaseModel):
    """What became of one row."""

    id: int
    rejected: bool
    label: Cell
    reason: str
    unknown: Annotated[
        list[str],
        Field(description="Columns whose value the model does not know: read as no category."),
    ]


class DecideAnswer(BaseModel):
    """What became of the rows, in their order."""

    decisions: list[Decided]


class ReviewBody(_Body):
    """What a reviewer decides."""

    action: Literal["deliver", "overrule", "withdraw"]
    label: Annotated[
        Cell,
        Field(description="The class that is given instead; for overrule alone."),
    ] = None
    force: Annotated[
        bool, Field(description="Take it although it leaves the margin; needs a reason.")
    ] = False
    reason: Text = ""


class ReviewEntry(ReviewBody):
    """What a reviewer decides about one of several decisions."""

    id: Annotated[int, Field(ge=0, le=LARGEST_ID)]


class ReviewsBody(_Body):
    """What a reviewer decides, one after the other."""

    reviews: Annotated[list[ReviewEntry], Field(min_length=1, max_length=MOST_REVIEWS)]


class Margin(BaseModel):
    """One margin, and how the given labels stand to it."""

    notion: str
    reference: Annotated[str, Field(description="What a group is compared with.")]
    margin: float
    gap: float
    gap_is: Annotated[
        Literal["exact", "upper limit", "estimate"],
        Field(description="What the gap is: about true classes a limit, or an estimate."),
    ]
    within_margin: bool
    n_compared: Annotated[
        int,
        Field(description="Groups with given labels; with fewer than two the gap is none, and 0."),
    ]


class Outcome(BaseModel):
    """What a decision of a person would do."""

    action: str
    label: Cell
    gap: float
    within_margin: bool
    needs_force: Annotated[
        bool, Field(description="Whether it leaves a margin, or leads further out.")
    ]
    margins: list[Margin]


class Case(BaseModel):
    """A decision that waits for a person."""

    id: int
    group: str
    said: Cell
    reason: str
    asked_by: str
    asked_at: float
    features: dict[str, Any]
    outcomes: list[Outcome]


_N_WITHHELD: Final = "Labels that wait for the first block of their group: for the model."


class QueueAnswer(BaseModel):
    """The oldest decisions that wait for a person."""

    n_waiting: Annotated[int, Field(description="Of those that were asked for, listed or not.")]
    n_withheld: Annotated[int, Field(description=_N_WITHHELD)]
    gap: float
    margin: float
    margins: list[Margin]
    cases: list[Case]


class Review(BaseModel):
    """What a person decided."""

    action: str
    given_before: Cell
    given: Cell
    forced: bool
    reason: str
    gap_before: float
    gap_after: float
    by: str
    at: float


class Standing(BaseModel):
    """A decision as it stands now."""

    id: int
    rejected: bool
    label: Cell
    reason: str
    by_person: bool
    reviews: list[Review]


class Cells(BaseModel):
    """Counts of one group and class."""

    group: str
    label: Cell
    said: int
    given: int
    given_by_model: int
    given_by_people: int
    taken_back: int
    coverage: float | None


class StateAnswer(BaseModel):
    """How the given labels stand to the margin."""

    notion: str
    margin: Annotated[float, Field(description="Of several that which the gap is nearest to.")]
    gap: Annotated[float, Field(description="Of several that which is nearest to its margin.")]
    within_margin: bool
    margins: list[Margin]
    left_by_people: Annotated[
        bool, Field(description="Whether people have left the margin; the model never does.")
    ]
    n_decisions: int
    n_given: int
    n_waiting: int
    n_withheld: Annotated[int, Field(description=_N_WITHHELD)]
    n_unknown_group: int
    n_reviews: dict[str, int]
    n_forced: int
    coverage: float | None
    cells: list[Cells]
    promise: str
    claim: str


class Health(BaseModel):
    """Whether the server can answer."""

    status: Literal["ok", "store away"]


class Problem(BaseModel):
    """Why there is no answer, and what to do."""

    error: str
    message: str
    where: list[dict[str, Any]] = []
    gap: float | None = None
    margin: float | None = None


class Reviewed(BaseModel):
    """What became of one review: how the decision stands, or why it was not taken."""

    id: int
    standing: Standing | None
    problem: Problem | None


class ReviewsAnswer(BaseModel):
    """What became of the reviews, in their order; each was taken whole or not at all."""

    n_taken: int
    results: list[Reviewed]
