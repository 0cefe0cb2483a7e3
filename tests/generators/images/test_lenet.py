"""Features of a small network of real pictures: what tells classes apart counts in a distance."""

import numpy as np

from evenhand.generators.images.frechet import frechet_distance
from evenhand.generators.images.lenet import lenet
from evenhand.testing.generators import pictures
from evenhand.typing import Array, FloatArray


def test_what_tells_classes_apart_is_farther_than_what_does_not() -> None:
    # Bars that stand or lie, left or right: the label is which, and the side says nothing of it.
    images, y, side = pictures(1200)
    side = np.asarray(side)
    eyes = lenet(images[:400], y[:400], trained_on="bars", epochs=20)
    assert eyes.dimension == 84

    def features(of: Array) -> FloatArray:
        chosen = images[400:][of][:150]
        return np.asarray(eyes.transform(chosen[:, None]), dtype=np.float64)

    here, label, left = np.asarray(y[400:]), np.unique(y)[0], np.unique(side)[0]
    one, other = ((here == label) & (side[400:] == left)), ((here != label) & (side[400:] == left))
    same = np.flatnonzero(one)
    again = frechet_distance(features(same[::2]), features(same[1::2]))
    assert frechet_distance(features(one), features(other)) > 10 * again


def test_a_network_follows_from_its_pictures_and_its_seed() -> None:
    images, y, _ = pictures(60)
    first, same, other = (
        lenet(images, y, trained_on="bars", epochs=1, seed=seed) for seed in (0, 0, 1)
    )
    assert first.digest == same.digest != other.digest
    np.testing.assert_array_equal(
        first.transform(images[:5, None]), same.transform(images[:5, None])
    )
