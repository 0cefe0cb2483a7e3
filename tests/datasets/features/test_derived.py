"""Extractors made of others: joined, and principal components."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from evenhand.datasets.features.derived import JoinedFeatures, PrincipalComponents
from evenhand.datasets.features.extraction import extract
from evenhand.datasets.features.extractor import ExtractorRecord, as_floats
from evenhand.testing.extractors import FeatureExtractorContract, pictures
from evenhand.typing import Array

PUBLIC = pictures(40, seed=7)


@dataclass
class Means:
    """Mean of each channel, or of each quarter."""

    name: str = "means"
    version: str = "1"
    dimension: int = 3
    trained_on: str = "nothing"
    licence: str = "none needed"
    digest: str = "means of channels"
    asked: int = 0

    def transform(self, pictures: Array) -> Array:
        self.asked += len(pictures)
        return as_floats(pictures).mean(axis=(2, 3))


class Quarters(Means):
    """Mean of each channel in each quarter."""

    def transform(self, pictures: Array) -> Array:
        self.asked += len(pictures)
        x = as_floats(pictures).reshape(len(pictures), 3, 2, 12, 2, 12)
        return x.mean(axis=(3, 5)).reshape(len(pictures), 12)


def quarters() -> Quarters:
    return Quarters(name="quarters", dimension=12, digest="means of quarters", licence="CC0")


def joined() -> JoinedFeatures:
    return JoinedFeatures.of(Means(), quarters())


def components(n: int = 4) -> PrincipalComponents:
    public = extract(PUBLIC, joined(), cache=False)
    return PrincipalComponents.of(joined(), public, n)


class TestJoinedFeatures(FeatureExtractorContract):
    def extractor(self) -> JoinedFeatures:
        return joined()


class TestPrincipalComponents(FeatureExtractorContract):
    def extractor(self) -> PrincipalComponents:
        return components()


class TestJoinedComponents(FeatureExtractorContract):
    def extractor(self) -> JoinedFeatures:
        return JoinedFeatures.of(components(), quarters())


def test_joined_are_the_columns_of_all_and_say_all_of_them() -> None:
    made = joined().transform(PUBLIC)
    assert np.array_equal(made[:, :3], Means().transform(PUBLIC))
    assert np.array_equal(made[:, 3:], quarters().transform(PUBLIC))
    words = str(ExtractorRecord.of(joined()))
    assert "means + quarters" in words
    assert "none needed + CC0" in words
    assert joined().digest != JoinedFeatures.of(quarters(), Means()).digest


@pytest.mark.parametrize("given", [(), (Means(),), (Means(), quarters(), Means())])
def test_fewer_than_two_and_the_same_twice_are_not_joined(given: tuple[Means, ...]) -> None:
    with pytest.raises(ValueError, match="two extractors or more, all different, got"):
        JoinedFeatures.of(*given)


def test_components_are_those_of_the_public_pictures_up_to_their_sign() -> None:
    public, new = (joined().transform(some).astype(np.float64) for some in (PUBLIC, pictures()))
    theirs = PCA(4, svd_solver="full").fit(public).transform(new)
    ours = components().transform(pictures())
    apart = [np.abs(theirs - sign * ours).max(axis=0) for sign in (1, -1)]
    assert np.min(apart, axis=0).max() < 1e-5


def test_a_claim_names_the_extractor_and_the_components() -> None:
    words = str(ExtractorRecord.of(components(2)))
    assert "means + quarters, 2 principal components" in words
    assert "the components on 40 public pictures" in words
    assert len({components(2).digest, components(3).digest, joined().digest}) == 3


def test_components_of_features_by_another_and_too_many_are_refused() -> None:
    public = extract(PUBLIC, joined(), cache=False)
    with pytest.raises(ValueError, match=r"found in features by it, and these are of .*quarters"):
        PrincipalComponents.of(Means(), public, 2)
    with pytest.raises(ValueError, match="at most 15 principal components, got n_components=16"):
        components(16)
    with pytest.raises(ValueError, match="n_components must be at least 1"):
        components(0)


def test_features_of_the_parts_are_kept_and_not_computed_again(tmp_path: Path) -> None:
    first, second = Means(), quarters()
    extract(PUBLIC[:10], first, cache=tmp_path)
    both, seen = JoinedFeatures.of(first, second), []
    once = extract(PUBLIC, both, cache=tmp_path, progress=lambda done, n: seen.append((done, n)))
    assert (first.asked, second.asked) == (40, 40)
    turned = PrincipalComponents.of(both, once, 3)
    again = extract(PUBLIC, turned, cache=tmp_path)
    assert (first.asked, second.asked) == (40, 40)
    assert np.array_equal(again.values, turned.transform(PUBLIC))
    assert seen == [(20, 40), (40, 40)]
