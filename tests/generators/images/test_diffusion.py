"""Pictures by a denoiser: what is charged and drawn, what is known, what is refused."""

from typing import Any

import numpy as np
import pytest
from marks import FAINT

from evenhand.generators.images.diffusion import DiffusionImages, solve
from evenhand.generators.images.gaussian import GaussianImages
from evenhand.generators.images.mixture import BESIDE, MixtureExpectation
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.generators.joint_plan import JointPlan
from evenhand.learners.nets.denoiser import Denoiser
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import ImageSynthesizerContract, pictures

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, FAINT]
SMALL: dict[str, Any] = {"n_steps": 8, "width": 6, "sampling_rate": 0.1, "n_levels": 5}
BUDGET = Budget(epsilon=5.0, delta=1e-5)


def new(**settings: Any) -> DiffusionImages:
    given = {**SMALL, "noise": SeededNoise(0), "random_state": 0, **settings}
    return DiffusionImages(**given)


class TestDiffusion(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        return new()


def mixture(seed: int = 0) -> MixtureExpectation:
    """Of two labels, three components in all, over two of four pixels."""
    rng = np.random.default_rng(seed)
    frame, _ = np.linalg.qr(rng.normal(size=(4, 2)))
    arrays = {
        "frame": frame,
        "middle": rng.uniform(size=4),
        "means": rng.normal(size=(3, 2)),
        "roots": 0.5 * rng.normal(size=(3, 2, 2)),
        "weights": np.array([1.0, 0.3, 0.7]),
        "of": np.array([0, 1, 1]),
    }
    return MixtureExpectation.of_arrays(arrays, np.array([0.4, 0.6]))


def drawn_of(known: MixtureExpectation, n: int, rng: np.random.Generator) -> Any:
    """Pictures of the mixture with what lies beside its directions, and their heads."""
    heads = rng.choice(2, n, p=known.shares)
    cell = np.where(heads == 0, 0, 1 + (rng.uniform(size=n) < 0.7))
    along = rng.normal(size=(n, 2)) * known.values[cell] ** 0.5
    z = known.means[cell] + np.einsum("kmj,kj->km", known.vectors[cell], along)
    beside = BESIDE**0.5 * rng.normal(size=(n, 4))
    beside -= beside @ known.frame @ known.frame.T
    return known.middle + z @ known.frame.T + beside, heads


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.2, 0.7, 4.0])
def test_the_expectation_is_that_of_weighted_draws(sigma: float) -> None:
    # Bayes by brute force: draws of the mixture, weighted by the density of the noise between.
    known, rng = mixture(), np.random.default_rng(1)
    clean, heads = drawn_of(known, 4, rng)
    noisy = clean + sigma * rng.normal(size=clean.shape)
    found = known.mean(
        torch.as_tensor(noisy), torch.full((4,), sigma).double(), torch.as_tensor(heads)
    ).numpy()
    many, of_many = drawn_of(known, 2_000_000, rng)
    for i in range(4):
        own = many[of_many == heads[i]]
        fit = -((noisy[i] - own) ** 2).sum(axis=1) / (2 * sigma**2)
        weight = np.exp(fit - fit.max())
        wanted = weight @ own / weight.sum()
        effective = weight.sum() ** 2 / (weight**2).sum()
        # Six standard errors of the weighted mean; at least thirty draws count.
        assert effective > 30
        assert found[i] == pytest.approx(wanted, abs=6 * min(sigma, 2.0) / effective**0.5)


@pytest.mark.parametrize("sigma", [0.05, 0.7, 4.0])
def test_the_spread_is_at_least_what_is_left_unknown(sigma: float) -> None:
    # Of components alone: which of them it is adds to what is unknown, where noise is large.
    known, rng = mixture(), np.random.default_rng(2)
    clean, heads = drawn_of(known, 200_000, rng)
    noisy = clean + sigma * rng.normal(size=clean.shape)
    levels = torch.full((len(clean),), sigma).double()
    found = known.mean(torch.as_tensor(noisy), levels, torch.as_tensor(heads)).numpy()
    left = float(((found - clean) ** 2).mean()) ** 0.5
    said = float(known.spread(levels[:1]))
    # Little noise tells components apart, and then it is what is left, but for the mean over
    # components and directions in place of each.
    assert 0.5 * said < left < 2.0 * said
    centre, variance = known.level
    assert centre == pytest.approx(known.middle.mean())
    assert variance == pytest.approx(clean.var(axis=0).mean(), rel=0.2, abs=BESIDE)


def test_what_is_solved_without_a_network_has_the_distribution_of_the_mixture() -> None:
    # The exact expectation, many levels down to little noise: means and variances come back.
    known, rng = mixture(), np.random.default_rng(3)

    class Exact:
        def denoise(self, layers: Any, noisy: Any, sigma: Any, heads: Any) -> Any:
            return known.mean(noisy, sigma, heads)

    clean, heads = drawn_of(known, 20_000, rng)
    noisy = torch.as_tensor(clean + 5.0 * rng.normal(size=clean.shape))
    levels = np.geomspace(5.0, 0.005, 60)
    found = solve(Exact(), [], noisy, torch.as_tensor(heads), levels, rng).numpy()  # type: ignore[arg-type]
    for head in (0, 1):
        own, other = found[heads == head], clean[heads == head]
        assert own.mean(axis=0) == pytest.approx(other.mean(axis=0), abs=0.04)
        assert np.cov(own.T) == pytest.approx(np.cov(other.T), abs=0.06)


def test_one_charge_pays_for_all_and_holds_the_mixtures_beside_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    images, y, side = pictures(300)
    opened: list[Any] = []
    part = JointPlan.part

    def noted(self: JointPlan, name: str) -> Any:
        opened.append(self)
        return part(self, name)

    monkeypatch.setattr(JointPlan, "part", noted)
    made = new(mixture_share=0.25).fit(images, y, sensitive_features=side, budget=BUDGET)
    (entry,) = made.ledger_.entries
    (plan,) = opened
    assert entry.mechanism == repr(plan.steps)
    assert plan.steps.beside == pytest.approx(0.25 * BUDGET.mu_squared)
    assert plan.steps.epsilon(BUDGET.delta) <= BUDGET.epsilon
    spent = {e.purpose: e.mu_squared / BUDGET.mu_squared for e in plan.ledger.entries}
    shares = GaussianImages()._shares()
    assert spent == pytest.approx({f"mixture: {p}": 0.25 * s for p, s in shares.items()})
    # The whole account is taken, with the sums or without.
    assert made.ledger_.remaining == 0
    assert made.guarantee_.mu_squared is None
    assert "Gaussian releases beside" in made.guarantee_.accounting


@pytest.mark.slow
def test_drawn_pictures_are_nearer_to_private_ones_than_those_of_the_mixture_alone() -> None:
    # A square anywhere: one Gaussian of a label blurs it, and with little noise in the steps the
    # network sharpens it.
    clean = np.zeros((49, 8, 8))
    for k in range(49):
        clean[k, k // 7 : k // 7 + 2, k % 7 : k % 7 + 2] = 1.0
    rng = np.random.default_rng(0)
    which = rng.integers(0, 49, 2000)
    y = np.where(which % 7 > 3, "right", "left")
    more: dict[str, Any] = {"width": 16, "patch": 2, "n_levels": 10, "learning_rate": 1e-2}
    more["n_components"] = 1
    much = Budget(epsilon=500.0, delta=1e-5)
    made = new(n_steps=150, **more).fit(clean[which], y, budget=much)

    def apart(images: Any) -> float:
        return float(((images[:, None] - clean) ** 2).sum(axis=(2, 3)).min(axis=1).mean())

    codes = rng.integers(0, 2, 300)
    blurred = np.clip(made.mixture_._draw(codes, rng)[:, 0], 0.0, 1.0)
    drawn = made.sample(300, balance=(), random_state=1)
    assert apart(drawn.images) < 0.9 * apart(blurred)
    # Squares of the left side are on the left.
    left = drawn.images[drawn.y == "left"].mean(axis=0)
    assert left[:, :4].sum() > 3 * left[:, 5:].sum()


class Noted(SeededNoise):
    """Notes what is asked of it, and gives a part of it."""

    def __init__(self, part: float = 1.0) -> None:
        super().__init__(0)
        self.part, self.drawn = part, []

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> Any:
        drawn = self.part * super().gaussian(sigma, shape)
        self.drawn.append((sigma, drawn))
        return drawn


@pytest.mark.parametrize("part", [1.0, 0.5])
def test_every_step_has_the_noise_that_was_charged(
    part: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The gradient that is followed, times the expected batch, less the clipped sum, is the noise:
    # of n numbers its root mean square is within 6 / sqrt(2 n) of the scale. Half of it is found.
    from evenhand.learners.nets.denoiser import NoisyAdam

    sums: list[Any] = []
    followed: list[Any] = []
    clipped, follow = Denoiser.clipped_sum, NoisyAdam.follow

    def summed(self: Denoiser, *given: Any, **more: Any) -> Any:
        sums.append(clipped(self, *given, **more))
        return sums[-1]

    monkeypatch.setattr(Denoiser, "clipped_sum", summed)
    monkeypatch.setattr(
        NoisyAdam, "follow", lambda self, g: (followed.append(g), follow(self, g))[1]
    )
    images, y, side = pictures(300)
    made = new(noise=Noted(part)).fit(images, y, sensitive_features=side, budget=BUDGET)
    (entry,) = made.ledger_.entries
    multiplier = float(entry.mechanism.split("noise_multiplier=")[1].split(",")[0])
    expected = made.sampling_rate * float(made.counts_.sum())
    apart = np.concatenate([g * expected - s for g, s in zip(followed, sums, strict=True)])
    ratio = float((apart**2).mean()) ** 0.5 / (multiplier * made.clip_norm)
    assert len(followed) == made.n_steps
    assert (abs(ratio - 1.0) < 6 / (2 * len(apart)) ** 0.5) == (part == 1.0)
    assert ratio == pytest.approx(part, rel=0.05)


def test_a_fit_is_a_function_of_its_seeds() -> None:
    images, y, _ = pictures(200)
    one, same, other = (
        new(noise=SeededNoise(s)).fit(images, y, budget=BUDGET).weights_ for s in (0, 0, 1)
    )
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)


def test_more_pictures_are_drawn_than_pass_together() -> None:
    images, y, _ = pictures(200)
    made = new().fit(images, y, budget=BUDGET)
    drawn = made.sample(501, balance=("label",), random_state=0)
    assert drawn.images.shape == (501, 8, 8)
    assert drawn.images[-1].any()


def refused(store: MemoryStore, message: str, **given: Any) -> None:
    images, y, side = pictures(60)
    fit = {name: given.pop(name) for name in ("unit_ids", "per_unit") if name in given}
    with pytest.raises(ValueError, match=message):
        new(**given).fit(images, y, sensitive_features=side, budget=BUDGET, store=store, **fit)
    assert store.entries("default") == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"neighbors": "replace one"}, "adding or removing one picture.*GaussianImages"),
        (
            {"unit_ids": np.arange(60) // 2, "per_unit": 2},
            "per_unit=2 pictures of one unit.*does not follow from that of one",
        ),
        ({"mixture_share": 0.0}, "mixture_share"),
        ({"mixture_share": 1.0}, "mixture_share"),
        ({"sampling_rate": 0.0}, "sampling_rate"),
        ({"sampling_rate": 1.5}, "sampling_rate"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_draws": 0}, "n_draws"),
        ({"clip_norm": 0.0}, "clip_norm"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"n_directions": 0}, "n_directions"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_spends_nothing(
    given: dict[str, Any], message: str
) -> None:
    refused(MemoryStore(), message, **given)


def test_a_network_that_does_not_fit_into_memory_is_refused_and_spends_nothing() -> None:
    images, y, _ = pictures(60)
    store = MemoryStore()
    with pytest.raises(MemoryError, match=r"numbers need about .*Lower width.*Nothing was spent"):
        new(width=10**9).fit(images, y, budget=BUDGET, store=store)
    assert store.entries("default") == ()


def test_units_of_one_picture_each_are_counted_as_units() -> None:
    images, y, _ = pictures(200)
    ids = np.arange(200) // 2
    made = new().fit(images, y, unit_ids=ids, budget=BUDGET)
    assert made.guarantee_.unit == "person"
    assert made.counts_.sum() == pytest.approx(100, abs=6 * 2 * made.counts_sigma_)


def joint_plan() -> tuple[JointPlan, Ledger]:
    from evenhand.privacy import FloatNoise, SubsampledGaussian

    ledger = Ledger(BUDGET, noise=FloatNoise(), neighbors="add or remove one", single=True)
    steps = SubsampledGaussian.within(
        BUDGET, sampling_rate=0.1, n_steps=2, clip_norm=1.0, beside=0.1
    )
    return JointPlan(ledger=ledger, shares={"sums": 0.01}, steps=steps, purpose="steps"), ledger


def test_noise_of_a_plan_is_drawn_of_what_was_set_aside_alone() -> None:
    plan, ledger = joint_plan()
    with pytest.raises(RuntimeError, match="set aside"):
        plan.noise(3)
    with plan.set_aside() as inner:
        assert [len(one) for one in inner.noise(3)] == [3, 3]
        assert inner.account is ledger
        assert inner.ledger is not ledger
    assert ledger.remaining == 0


@pytest.mark.parametrize("drawn", ["nothing", "sums", "steps"])
def test_a_plan_that_fails_is_given_back_unless_something_was_drawn(drawn: str) -> None:
    from evenhand.privacy.noisy_sum import NoisySum

    plan, ledger = joint_plan()
    before = ledger.remaining

    def stopped() -> None:
        with plan.set_aside() as inner:
            assert ledger.remaining == 0
            if drawn == "sums":
                release = NoisySum(sigma=10.0, l2_sensitivity=1.0)
                inner.ledger.release(release, np.zeros((1, 2), dtype=int), purpose="sums")
            elif drawn == "steps":
                next(inner.noise(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert ledger.remaining == (before if drawn == "nothing" else 0)
