"""Image generators by teachers: the contract, the ledger, and what is refused before it is used."""

import re
import runpy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from marks import FAINT

from evenhand.baselines.gs_wgan import PublishedGSWGANImages
from evenhand.baselines.pfguard import (
    GlobalSharesTeacherGANImages,
    Stratified,
    StratifiedTeacherGANImages,
)
from evenhand.generators import GroupBalancedSampler, load
from evenhand.generators.images import (
    DataLensImages,
    DPWGANImages,
    GPATEImages,
    GSWGANImages,
    PlainGANImages,
    TeacherGANImages,
)
from evenhand.generators.images.adversarial import STEPS
from evenhand.generators.images.codec import read_images
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.generators.images.teacher_gan import TeacherGAN
from evenhand.generators.registry import REGISTERED
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import ImageSynthesizerContract, pictures

REPRODUCTIONS = Path(__file__).parents[3] / "reproductions"
PUBLISHED = runpy.run_path(str(REPRODUCTIONS / "_published_sizes.py"))
pytestmark = [pytest.mark.torch, FAINT]

SMALL: dict[str, Any] = {
    "n_teachers": 20,
    "n_steps": 10,
    "n_rows": 8,
    "critic_rows": 8,
    "hidden": (8,),
    "width": 8,
}


CONVOLUTIONAL: dict[str, Any] = {"network": "convolutional"}
WARM: Any = partial(PublishedGSWGANImages, schedule="all")


def stratified(method: type[TeacherGAN]) -> Any:
    """The method with teachers of one group each."""
    return type(f"Stratified{method.__name__}", (Stratified, method), {})


class TestTeacherGAN(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        return TeacherGANImages(**SMALL, noise=SeededNoise(0), random_state=0)


class TestGSWGAN(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        return GSWGANImages(**SMALL, critic_steps=2, noise=SeededNoise(0), random_state=0)


class TestConvolutionalGSWGAN(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        small = {**SMALL, **CONVOLUTIONAL, "filters": (4, 8), "critic_steps": 2}
        small |= {"latent": "bernoulli", "n_noise": 10}
        return GSWGANImages(**small, noise=SeededNoise(0), random_state=0)


class TestGSWGANInTurn(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        small = {**SMALL, "n_teachers": 12, "critic_steps": 1}
        return PublishedGSWGANImages(**small, noise=SeededNoise(0), random_state=0)


class StratifiedGSWGANImages(Stratified, PublishedGSWGANImages):
    method: ClassVar[str] = "gs-wgan-strata"


class TestGSWGANWithStrataAndAWarmStart(ImageSynthesizerContract):
    @pytest.fixture(autouse=True)
    def known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(REGISTERED, ("images", "gs-wgan-strata"), StratifiedGSWGANImages)

    def new(self) -> ImageSynthesizer:
        return StratifiedGSWGANImages(
            **SMALL, schedule="all", critic_steps=1, spectral=True, warm_steps=2,
            noise=SeededNoise(0), random_state=0,
        )  # fmt: skip


class TestDataLens(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        return DataLensImages(**SMALL, k=6, noise=SeededNoise(0), random_state=0)


class TestGPATE(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        return GPATEImages(**SMALL, noise=SeededNoise(0), random_state=0)


class TestDPWGAN(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        small = {"n_batches": 10, "n_steps": 10, "n_rows": 8, "critic_rows": 8, "hidden": (8,)}
        return DPWGANImages(**small, width=8, noise=SeededNoise(0), random_state=0)


TINY: dict[str, Any] = {**SMALL, "n_teachers": 6, "n_steps": 4, "critic_steps": 1}


def fitted(method: type[ImageSynthesizer], **settings: Any) -> ImageSynthesizer:
    images, y, side = pictures(300)
    made = method(**{**TINY, **settings}, noise=SeededNoise(0), random_state=0)
    return made.fit(images, y, sensitive_features=side, budget=Budget(epsilon=4.0, delta=1e-5))


@pytest.mark.parametrize("method", [TeacherGANImages, GSWGANImages, GPATEImages, DataLensImages])
def test_every_step_is_one_release_of_the_same_noise_fixed_before_the_first(method: Any) -> None:
    made = fitted(method)
    steps = [e for e in made.ledger_.entries if e.purpose == STEPS]
    assert len(steps) == TINY["n_steps"]
    assert len({(e.mechanism, e.n_uses, e.mu_squared) for e in steps}) == 1
    assert len(made.ledger_.entries) == len(steps) + 1  # and the counts


def test_in_turn_a_pass_over_all_critics_is_one_release_charged_when_it_begins() -> None:
    made = fitted(PublishedGSWGANImages, n_steps=7)  # 6 teachers: two rounds
    steps = [e for e in made.ledger_.entries if e.purpose == STEPS]
    assert [e.n_uses for e in steps] == [1, 1]
    assert sum(e.mu_squared for e in steps) == pytest.approx(
        0.98 * Budget(epsilon=4.0, delta=1e-5).mu_squared, rel=1e-6
    )
    # With as many steps and rounds of all teachers the ratio is that of one teacher to all.
    in_turn = fitted(PublishedGSWGANImages, n_steps=6).snr_.value
    assert fitted(GSWGANImages, n_steps=6).snr_.value == pytest.approx(6 * in_turn)


@pytest.mark.parametrize("method", [TeacherGANImages, GSWGANImages, GPATEImages, DataLensImages])
def test_strata_pay_for_both_teachers_that_a_replaced_picture_moves(method: Any) -> None:
    plain, made = fitted(method), fitted(stratified(method))
    assert made._charged(64).l2_sensitivity("replace one") == 2 * plain._charged(64).l2_sensitivity(
        "replace one"
    )
    assert made.snr_.value == pytest.approx(plain.snr_.value / 4)

    def noise(made: Any) -> set[float]:
        steps = [e for e in made.ledger_.entries if e.purpose == STEPS]
        return {float(re.findall(r"sigma=([\d.e+]+)", e.mechanism)[0]) for e in steps}

    assert noise(made).pop() == pytest.approx(2 * noise(plain).pop())


@pytest.mark.parametrize(("per_unit", "as_noisy"), [(1, 1), (3, 2)])
def test_strata_with_units_pay_for_the_teachers_of_all_their_groups(
    per_unit: int, as_noisy: int
) -> None:
    images, y, side = pictures(300)
    who = np.arange(300) // per_unit
    found = []
    for method in (TeacherGANImages, StratifiedTeacherGANImages):
        made = method(**TINY, noise=SeededNoise(0), random_state=0)
        made.fit(
            images, y, sensitive_features=side, budget=Budget(epsilon=4.0, delta=1e-5),
            unit_ids=who, per_unit=per_unit,
        )  # fmt: skip
        found.append(made._charged(64).l2_sensitivity("add or remove one"))
    assert found[1] == as_noisy * found[0]


def test_without_groups_strata_are_one_and_cost_nothing() -> None:
    images, y, _ = pictures(300)
    made = StratifiedTeacherGANImages(**TINY, noise=SeededNoise(0), random_state=0)
    made.fit(images, y, budget=Budget(epsilon=4.0, delta=1e-5))
    assert made.snr_.value == fitted(TeacherGANImages).snr_.value


def test_a_teacher_of_g_pate_votes_on_the_pictures_of_conditions_that_it_holds_alone() -> None:
    import torch

    made = GPATEImages(n_rows=2, n_directions=1, n_bins=2, reach=1.0)
    gradients = torch.tensor([[[1.0], [1.0]], [[-1.0], [1.0]], [[0.0], [1.0]], [[0.0], [0.0]]])
    said = made._said(gradients, torch.ones(1, 1), None)
    # Of four teachers the third holds no picture of the first row's condition, the last of neither.
    assert said.reshape(2, 2).tolist() == [[1, 1], [0, 3]]


def test_memory_of_a_warm_start_is_foreseen_for_one_stack_at_a_time() -> None:
    data = read_images(
        *pictures(60), classes=None, groups=None, unit_ids=None, per_unit=1, conditioned=True
    )[1]
    needed = [fitted(WARM, warm_steps=n)._memory(data)[1] for n in (0, 1)]
    # 6 generators of 64 x (16 inputs + 4 conditions + 64 pixels) numbers, four of each.
    assert needed[1] - needed[0] == 16 * 6 * 64 * (16 + 4 + 64)


def test_few_pictures_of_the_rarest_group_per_teacher_are_remarked() -> None:
    notes = fitted(TeacherGANImages, n_teachers=60).notes_
    assert any("each of 60 teachers holds" in note for note in notes)
    assert not any(
        "teachers holds" in note for note in fitted(TeacherGANImages, n_teachers=2).notes_
    )


def test_noisy_shares_for_the_sampler_are_paid_from_the_same_budget() -> None:
    made = fitted(TeacherGANImages, sampler=GroupBalancedSampler(scope="noisy"))
    purposes = [e.purpose for e in made.ledger_.entries]
    assert purposes.count("group shares for the sampler") == 1
    assert made.guarantee_.epsilon == 4.0


def test_the_published_sampling_takes_the_claim_back_also_in_a_file(tmp_path: Any) -> None:
    made = fitted(GlobalSharesTeacherGANImages)
    assert str(made.guarantee_).startswith("NOT PRIVATE: every teacher's minibatches")
    assert '"teacher-gan-global-shares"' in (made.save(tmp_path / "g") / "model.json").read_text()


def test_units_keep_all_their_pictures_with_one_teacher_and_are_added_or_removed() -> None:
    images, y, side = pictures(300)
    who = np.arange(300) // 3
    made = TeacherGANImages(**TINY, noise=SeededNoise(0), random_state=0)
    made.fit(
        images,
        y,
        sensitive_features=side,
        budget=Budget(epsilon=4.0, delta=1e-5),
        unit_ids=who,
        per_unit=3,
    )
    assert (made.guarantee_.unit, made.guarantee_.neighbors) == ("person", "add or remove one")
    assert "the number of records" not in made.guarantee_.public


def test_a_generator_of_labels_alone_knows_no_groups() -> None:
    made = fitted(TeacherGANImages, condition="label")
    rows = made.sample(10, random_state=0)
    assert rows.sensitive_features is None
    assert sorted(rows.y) == ["lies"] * 5 + ["stands"] * 5


@pytest.mark.parametrize("shape", [(28, 28), (32, 32, 3)])
@pytest.mark.parametrize(
    "method", [DataLensImages, DPWGANImages, GPATEImages, GSWGANImages, PlainGANImages]
)
def test_convolutional_networks_draw_and_come_back_from_a_file(
    method: Any, shape: tuple[int, ...], tmp_path: Path
) -> None:
    images, y, side = pictures(60)
    images = np.kron(images, np.ones((4, 4), dtype=np.uint8))[:, : shape[0], : shape[1]]
    images = images.reshape(*images.shape, *(1 for _ in shape[2:])) * np.ones(shape[2:], np.uint8)
    sizes = {"n_steps": 2, "n_rows": 4, "critic_rows": 4, "critic_steps": 1, "width": 16}
    sizes |= {"n_batches": 3} if method is DPWGANImages else {}
    sizes |= {"n_teachers": 3} if method not in (DPWGANImages, PlainGANImages) else {}
    made = method(**sizes, **CONVOLUTIONAL, noise=SeededNoise(0), random_state=0)
    made.fit(images, y, sensitive_features=side, budget=Budget(epsilon=10.0, delta=1e-5))
    again = load(made.save(tmp_path / "generator"))
    drawn = [m.sample(4, balance=(), random_state=0).images for m in (made, again)]
    assert drawn[0].shape == (4, *shape)
    assert np.array_equal(*drawn)
    assert "skip0.weight" in again.weights_  # residual blocks


@pytest.mark.parametrize(
    "made",
    [PUBLISHED["GS_WGAN"], PUBLISHED["G_PATE"], PUBLISHED["DATALENS"]],
    ids=lambda made: made.method,
)
def test_the_papers_sizes_are_settings_that_a_few_teachers_can_run(made: Any) -> None:
    settings = {**made.settings(), "n_teachers": 3, "n_steps": 2, "critic_steps": 1}
    settings |= {"critic_rows": 4, "n_rows": 4, "width": 16, "sampler": None}
    settings |= {"k": 30} if "k" in settings else {}
    settings |= {"filters": (8, 8)}
    settings |= {"warm_steps": 2} if "warm_steps" in settings else {}
    images, y, _ = pictures(60)
    small = type(made)(**settings, noise=SeededNoise(0), random_state=0)
    small.fit(images, y, budget=Budget(epsilon=10.0, delta=1e-5))
    assert np.isfinite(small.sample(4).images).all()
    with pytest.raises(TypeError, match="unexpected keyword argument 'teachers'"):
        type(made)(teachers=3)


@pytest.mark.parametrize("sampler", [None, GroupBalancedSampler()])
def test_without_privacy_nothing_is_promised_and_nothing_spent(sampler: Any, tmp_path: Any) -> None:
    images, y, side = pictures(100)
    made = PlainGANImages(n_steps=3, n_rows=8, critic_rows=8, width=8, sampler=sampler)
    made.fit(images, y, sensitive_features=side, budget=Budget(epsilon=1.0, delta=1e-5))
    assert str(made.guarantee_).startswith("NOT PRIVATE: the critic was trained on the private")
    assert made.guarantee_.epsilon == float("inf")
    assert made.ledger_.entries == ()
    assert made.notes_ == ()
    cells = pd.Series(zip(y, side, strict=True)).value_counts().sort_index()
    assert made.counts_.tolist() == cells.tolist()
    again = load(made.save(tmp_path / "g"))
    assert np.array_equal(*(m.sample(8, random_state=0).images for m in (made, again)))


def test_the_published_noises_cost_what_the_docs_say() -> None:
    # A second derivation of docs/teacher-gans.md, from the published settings and Gaussian DP.
    mu_squared = Budget(epsilon=10.0, delta=1e-5).mu_squared
    # GS-WGAN: 20 rounds over 1,000 critics, 32 pictures each, noise multiplier 1.07 per picture.
    assert epsilon_from_mu((20 * 32 / 1.07**2) ** 0.5, 1e-5) == pytest.approx(379, abs=1)
    assert int(mu_squared / (4 * 300 / 800**2)) == pytest.approx(2130, abs=10)  # DataLens
    assert int(mu_squared / (2 * 10 / 100**2)) == pytest.approx(2000, abs=10)  # G-PATE
    assert PUBLISHED["GS_WGAN"]._snr(mu_squared**0.5, 28 * 28).value < 0.05
    for made in (PUBLISHED["G_PATE"], PUBLISHED["DATALENS"]):
        assert 1900 < made.n_rows * made.n_steps < 2150


BAD = {
    "more critics than memory": (
        {"n_teachers": 10**7, "hidden": (500,)},
        MemoryError,
        r"10000000 critics of 34,504 numbers need .*Lower n_teachers or hidden. Nothing was spent",
    ),
    "more convolutional critics than memory": (
        {"n_teachers": 10**7, **CONVOLUTIONAL, "filters": (64,)},
        MemoryError,
        r"10000000 critics of 6,789 numbers need .*Lower n_teachers or filters. Nothing was spent",
    ),
    "more teachers than pictures": ({"n_teachers": 301}, ValueError, "n_teachers must be at most"),
    "no steps": ({"n_steps": 0}, ValueError, "n_steps must be at least 1"),
    "strata of unequal size": (
        {"n_teachers": 7, "method": StratifiedTeacherGANImages},
        ValueError,
        "Each of 2 groups has as many teachers: n_teachers must be a multiple of 2",
    ),
    "one rate": ({"rates": (1e-3,)}, ValueError, "rates are the first and the last one"),
    "shares of other groups": (
        {"sampler": GroupBalancedSampler(scope="public", shares=(0.5, 0.5))},
        ValueError,
        "has 2 shares, and there are 4 combinations of 2 labels and 2 groups",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_what_cannot_run_is_refused_before_anything_is_spent(case: str) -> None:
    settings, error, message = BAD[case]
    images, y, side = pictures(300)
    store = MemoryStore()
    method = {"method": TeacherGANImages, **settings}["method"]
    chosen = {name: value for name, value in settings.items() if name != "method"}
    made = method(**{**TINY, **chosen}, noise=SeededNoise(0))
    with pytest.raises(error, match=message):
        made.fit(
            images,
            y,
            sensitive_features=side,
            budget=Budget(epsilon=4.0, delta=1e-5),
            store=store,
        )
    assert all(entry.n_uses == 0 for entry in store.entries("default"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fitted(PublishedGSWGANImages, schedule="in turns"), "Did you mean 'in turn'"),
        (lambda: fitted(DataLensImages, k=65), "k must be at most the numbers of a row"),
        (lambda: fitted(DataLensImages, threshold=-1.0), "threshold must be finite and >= 0"),
        (lambda: fitted(GPATEImages, reach=0.0), "reach must be finite and > 0"),
        (lambda: fitted(GSWGANImages, latent="coins"), "one of 'normal', 'bernoulli', got"),
        (lambda: fitted(GSWGANImages, network="conv"), "one of 'dense', 'convolutional', got"),
        (lambda: fitted(GSWGANImages, **CONVOLUTIONAL, filters=(0,)), "filters must be at least 1"),
        (lambda: fitted(PublishedGSWGANImages, warm_steps=-1), "warm_steps must be at least 0"),
    ],
)
def test_settings_out_of_range_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
