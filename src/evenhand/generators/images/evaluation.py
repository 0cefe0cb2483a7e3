"""One call that measures synthetic pictures: balance, utility, fairness, and nearness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._numerals import text_of
from evenhand.datasets.features.extractor import FeatureExtractor
from evenhand.datasets.images import ImageData
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.report import unit_codes
from evenhand.generators.balance import Balance, balance_of
from evenhand.generators.evaluation import Evaluation
from evenhand.generators.images.classifiers import IMAGE_MODELS, classify
from evenhand.generators.images.codec import LABEL, SENSITIVE, ImageSample, as_pixels
from evenhand.generators.images.frechet import Distance, distances
from evenhand.generators.utility import measure
from evenhand.typing import Array, ArrayLike, IntArray

JUDGE: Final = "MLP"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What groups the synthetic pictures show, whatever group they were asked for."""

    balance: Balance
    """By the groups that a classifier sees; it was trained on real pictures of known groups, as
    many of each group.
    """
    accuracy: float
    """Of that classifier on the test pictures. Shares nearer to even than it errs say nothing."""
    agreement: float
    """Share of the pictures that show the group they were asked for; NaN where none was asked."""
    recognised: tuple[tuple[str, float], ...]
    """Share of the test pictures of each group that the classifier says are of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageEvaluation(Evaluation):
    """What was measured of synthetic pictures, beside what ``Evaluation`` holds."""

    judged: Judged | None
    """By the groups that they show; None with too few real pictures to train a classifier on."""
    distances: tuple[Distance, ...]
    """From the test pictures, by features of a network; empty without one."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN stays NaN."""
        return {
            **super().to_dict(),
            "judged": None if self.judged is None else asdict(self.judged),
            "distances": [asdict(distance) for distance in self.distances],
        }


def evaluate_images(
    synthetic: ImageSample,
    test: ImageData,
    *,
    train: ImageData | None = None,
    models: Sequence[str] = tuple(IMAGE_MODELS),
    train_real: bool = False,
    epochs: int = 10,
    extractor: FeatureExtractor | None = None,
    n_per_group: int = 100,
    random_state: int = 0,
    units: ArrayLike | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> ImageEvaluation:
    """Measure synthetic pictures on real ones that the generator has not seen.

    Parameters
    ----------
    synthetic, test, train, progress
        See ``evenhand.generators.evaluate``. The customary number of synthetic pictures is 20,000;
        test pictures are spread evenly over labels and groups, if the numbers are to be compared
        with published ones.
        The classifier that judges which groups are shown learns from ``train`` if it is given, and
        else from one half of the test pictures; it is tried on the other half. Of what it says of
        *private* pictures no claim knows: leave ``train`` out of what is to be published.
    models : sequence of str
        Names of ``IMAGE_MODELS``.
    train_real : bool
        Whether the models are trained on ``train`` too, to compare with.
    epochs : int
        Of every model.
    extractor : FeatureExtractor, optional
        Such as ``EfficientNetLite0.load()``, for distances.
    n_per_group : int
        Pictures of each label and group for these, on either side.
    random_state : int
        Seeds models, choices and bootstrap.
    units : array-like of ids, shape (n_test,), optional
        Whose picture each of ``test`` is; see ``fairness_report``.
    """
    test, train = test.decoded(), None if train is None else train.decoded()
    require_measurable(test, synthetic, "synthetic")
    classes = sorted({text_of(value) for value in test.y})
    groups = encode_groups(_known(test, "test"))
    asked = as_pixels(test.images)
    sources = {
        "synthetic": (as_pixels(synthetic.images), _codes(synthetic.y, classes, "synthetic"))
    }
    if train_real:
        if train is None:
            raise ValueError("train_real=True trains models on train=, which is missing.")
        sources["real"] = (as_pixels(train.images), _codes(train.y, classes, "train"))
    truth = _codes(test.y, classes, "test")
    whose = None if units is None else unit_codes(units, test=test)
    found = []
    for at, (source, (images, labels)) in enumerate(sources.items()):
        for number, name in enumerate(models):
            if progress:
                progress("models", at * len(models) + number, len(sources) * len(models))
            probabilities = classify(
                *(name, images, labels, asked),
                n_classes=len(classes),
                epochs=epochs,
                seed=random_state,
            )
            found.append(
                measure(
                    *(name, source, truth, probabilities, groups.codes, groups.names),
                    seed=random_state,
                    units=whose,
                )
            )
    if progress:
        progress("models", len(sources) * len(models), len(sources) * len(models))
    shown = groups_shown(synthetic, test, train=train, random_state=random_state)
    near: tuple[Distance, ...] = ()
    if extractor is not None:
        cells = synthetic.sensitive_features
        if cells is None and shown is not None:
            cells = shown[1]
        near = distances(
            _cells(test.images, test.y, test.sensitive_features),
            {} if cells is None else _cells(synthetic.images, synthetic.y, cells),
            extractor,
            n=n_per_group,
            rng=np.random.default_rng(random_state),
        )
    own = synthetic.sensitive_features
    return ImageEvaluation(
        n_synthetic=len(synthetic),
        n_test=len(test),
        balance=None if own is None else _balance(synthetic.y, own, groups.names),
        judged=None if shown is None else shown[0],
        real_balance=_balance(test.y, test.sensitive_features, groups.names),
        utility=tuple(found),
        distances=near,
    )


def require_measurable(test: ImageData, shown: ImageData | ImageSample, where: str) -> None:
    """Raise ValueError for test pictures on which pictures like those shown cannot be measured.

    They must have groups, the same size, and every label and group of those.
    """
    groups = _known(test, "test")
    if not len(test):
        raise ValueError("There are no test pictures, so there is nothing to measure.")
    sizes = [" x ".join(map(str, pictures.images.shape[1:])) for pictures in (test, shown)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"The test pictures are {sizes[0]}, and the {where} ones {sizes[1]}. Bring the test "
            f"pictures to this size, grey or in colour as these."
        )
    _codes(shown.y, sorted({text_of(value) for value in test.y}), where)
    own = shown.sensitive_features
    known = encode_groups(groups).names
    absent = [] if own is None else sorted({*encode_groups(own).names} - {*known})
    if absent:
        raise ValueError(
            f"The {where} pictures have a group that no test picture has, "
            f"{_values.quoted(absent[0])}; they have {_values.listed(known, 20)}."
        )


def groups_shown(
    synthetic: ImageSample, test: ImageData, *, train: ImageData | None, random_state: int
) -> tuple[Judged, Array] | None:
    """Return what groups pictures show to a classifier of real ones, and the group of each.

    None if there are too few real pictures to train it on; see ``evaluate_images``.
    """
    real = _halves(synthetic, test, random_state) if train is None else (train, test)
    return None if real is None else _judge(synthetic, *real, random_state)


def _halves(
    synthetic: ImageSample, test: ImageData, seed: int
) -> tuple[ImageData, ImageData] | None:
    """Return test pictures to train the judge on, and the others; None if a group is missing."""
    order = np.random.default_rng(seed).permutation(len(test))
    learnt, tried = (test.take(rows) for rows in np.split(order, [len(test) // 2]))
    own = synthetic.sensitive_features
    shown = [test.sensitive_features, *([] if own is None else [own])]
    groups = {name for features in shown for name in encode_groups(features).names}
    if not len(learnt) or groups - set(encode_groups(learnt.sensitive_features).names):
        return None
    return learnt, tried


def _judge(
    synthetic: ImageSample, train: ImageData, test: ImageData, seed: int
) -> tuple[Judged, Array]:
    """Train a classifier of groups on real pictures, and ask it about the synthetic ones."""
    groups = encode_groups(_known(train, "train"))
    truth = encode_groups(_known(test, "test"), names=groups.names).codes
    rng = np.random.default_rng(seed)
    held = [np.flatnonzero(groups.codes == g) for g in range(groups.n_groups)]
    n = min(map(len, held))
    rows = np.concatenate([rng.choice(mine, n, replace=False) for mine in held])
    asked = np.concatenate([as_pixels(test.images), as_pixels(synthetic.images)])
    probabilities = classify(
        *(JUDGE, as_pixels(train.images[rows]), groups.codes[rows], asked),
        n_classes=groups.n_groups,
        seed=seed,
    )
    said = probabilities.argmax(axis=1)
    shown = np.array(groups.names)[said[len(test) :]]
    own = synthetic.sensitive_features
    meant = None if own is None else encode_groups(own, names=groups.names).codes
    right, n_tried = said[: len(test)] == truth, np.bincount(truth, minlength=groups.n_groups)
    with np.errstate(invalid="ignore"):  # NaN of a group that was not tried
        recognised = np.bincount(truth[right], minlength=groups.n_groups) / n_tried
    judged = Judged(
        balance=_balance(synthetic.y, shown, groups.names),
        accuracy=float(right.mean()),
        agreement=float("nan") if meant is None else float((said[len(test) :] == meant).mean()),
        recognised=tuple(zip(groups.names, recognised.tolist(), strict=True)),
    )
    return judged, shown


def _balance(y: Array, groups: Array | pd.DataFrame | None, names: Sequence[str]) -> Balance:
    frame = pd.DataFrame({LABEL: [text_of(value) for value in y]})
    coded = encode_groups(groups, names=tuple(names))
    frame[SENSITIVE] = np.array(coded.names)[coded.codes]
    return balance_of(frame, label=LABEL, sensitive=[SENSITIVE], groups=tuple(names))


def _cells(images: Array, y: Array, groups: Array | pd.DataFrame | None) -> dict[str, Array]:
    """Return the pictures of every combination of label and group, floats in [0, 1]."""
    coded = encode_groups(groups)
    labels = np.array([text_of(value) for value in y])
    scale = 255.0 if images.dtype == np.uint8 else 1.0
    return {
        f"{label}, {name}": images[rows] / scale
        for label in np.unique(labels)
        for g, name in enumerate(coded.names)
        if (rows := (labels == label) & (coded.codes == g)).any()
    }


def _known(data: ImageData, where: str) -> Array | pd.DataFrame:
    if data.sensitive_features is None:
        raise ValueError(f"{where}= needs sensitive_features: gaps are between groups.")
    return data.sensitive_features


def _codes(y: Array, classes: Sequence[str], where: str) -> IntArray:
    place = {name: code for code, name in enumerate(classes)}
    strange = sorted({text_of(value) for value in y} - set(place))
    if strange:
        raise ValueError(
            f"The {where} pictures have a label that no test picture has, "
            f"{_values.quoted(strange[0])}; they have {_values.listed(classes, 20)}."
        )
    return np.array([place[text_of(value)] for value in y], dtype=np.int64)
