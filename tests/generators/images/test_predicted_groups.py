"""Groups told by public pictures: right where they can be, said in the claim, and local."""

from collections.abc import Callable

import numpy as np
import pytest
from marks import FAINT

from evenhand.generators.images import ClusterReference, GroupReference, TeacherGANImages
from evenhand.privacy import Budget, SeededNoise
from evenhand.testing.generators import pictures

pytestmark = [pytest.mark.torch, FAINT]


def reference() -> GroupReference:
    images, _, side = pictures(200, seed=1)
    return GroupReference(images, side)


def test_groups_are_told_and_the_accuracy_is_that_of_pictures_not_seen() -> None:
    images, _, side = pictures(300, seed=2)
    known = reference()
    assert known.accuracy > 0.95
    assert (known.predict(images) == side).mean() > 0.95
    rng = np.random.default_rng(0)
    noise = GroupReference(rng.random((200, 4, 4)), rng.choice(["a", "b"], 200))
    assert abs(noise.accuracy - 0.5) < 0.2  # the model fits these perfectly


def clusters() -> ClusterReference:
    return ClusterReference(pictures(200, seed=1)[0], 3)


@pytest.mark.parametrize("make", [reference, clusters])
def test_a_private_picture_has_the_same_group_whatever_the_others_are(
    make: Callable[[], GroupReference],
) -> None:
    images, _, _ = pictures(50, seed=3)
    known = make()
    assert len(set(known.predict(images))) > 1
    alone = [known.predict(images[i : i + 1])[0] for i in range(50)]
    assert known.predict(images).tolist() == alone


def test_the_claim_names_the_reference_and_the_notes_its_accuracy() -> None:
    images, y, _ = pictures(300)
    made = TeacherGANImages(
        n_teachers=6, n_steps=2, hidden=(4,), width=8, noise=SeededNoise(0), random_state=0
    ).fit(images, y, sensitive_features=reference(), budget=Budget(epsilon=9.0, delta=1e-5))
    assert "the reference pictures with their groups" in made.guarantee_.public
    assert any("public reference pictures, right for" in note for note in made.notes_)
    assert set(made.sample(8).sensitive_features) == {"left", "right"}


def test_clusters_are_what_pictures_differ_in_most_be_that_the_groups_or_not() -> None:
    rng = np.random.default_rng(0)
    light, side = rng.random(300) < 0.3, rng.random(300) < 0.5
    images = rng.random((300, 4, 4)) * 0.2 + 0.6 * light[:, None, None]
    images[:, :, 0] += 0.1 * side[:, None]  # ten times less than the light
    found = ClusterReference(images[:200], 2).predict(images[200:])
    of_light = (found == light[200:]).mean()
    assert max(of_light, 1.0 - of_light) == 1.0  # their numbers mean nothing
    assert 0.2 < (found == side[200:]).mean() < 0.8


def test_the_claim_takes_the_pictures_of_clusters_for_public_and_no_groups_of_theirs() -> None:
    images, y, _ = pictures(300)
    small = {"n_teachers": 6, "n_steps": 2, "hidden": (4,), "width": 8}
    made = TeacherGANImages(condition="label", noise=SeededNoise(0), random_state=0, **small).fit(
        images, y, sensitive_features=clusters(), budget=Budget(epsilon=9.0, delta=1e-5)
    )
    assert "the reference pictures, and the number of their clusters" in made.guarantee_.public
    assert any("which need not be the groups" in note for note in made.notes_)
    assert made.codec_.sensitive[0].values == (0, 1, 2)
    assert np.isnan(clusters().accuracy)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GroupReference(np.zeros((12, 4, 4)), ["a"] * 12), "of two groups, got a: 12"),
        (
            lambda: GroupReference(np.zeros((12, 4, 4)), ["a"] * 9 + ["b"] * 3),
            "at least 10 pictures of each of two groups, got a: 9, b: 3",
        ),
        (lambda: GroupReference(np.zeros((12, 4, 4)), ["a"] * 3), "images has 12, groups has 3"),
        (lambda: ClusterReference(np.zeros((19, 4, 4)), 2), "need at least 20 public pictures"),
        (lambda: ClusterReference(np.zeros((19, 4, 4)), 1), "n_groups must be at least 2"),
        (lambda: clusters().predict(np.zeros((2, 4, 4))), r"have shape \(8, 8\), these \(4, 4\)"),
        (lambda: reference().predict(np.zeros((2, 4, 4))), r"have shape \(8, 8\), these \(4, 4\)"),
    ],
)
def test_a_reference_that_tells_nothing_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_groups_of_mixed_types_are_told_by_their_texts() -> None:
    images, _, side = pictures(200, seed=1)
    one = side == side[0]
    mixed = np.array([int(o) if i % 2 else str(int(o)) for i, o in enumerate(one)], dtype=object)
    known = GroupReference(images, mixed)
    assert set(known.predict(images).tolist()) == {"0", "1"}
    mixed[3] = None
    with pytest.raises(ValueError, match=r"group 'groups' is missing in row 4"):
        GroupReference(images, mixed)
