"""The page on synthetic data: what it says, what it leaves out, and hostile names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from marks import FAINT

from evenhand.datasets import Schema
from evenhand.generators import MarginalSynthesizer, evaluate, load
from evenhand.generators.tables.membership import attack_membership
from evenhand.privacy import Budget, SeededNoise
from evenhand.report import figures, write_report
from evenhand.report.columns import column_views
from evenhand.report.generated import GeneratorReport

pytestmark = FAINT
EVIL = "<script>window.hit = 1</script>"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = rng.choice(["</script><b>", "R&D"], 3000, p=[0.4, 0.6])
    x = rng.normal(np.where(group == "R&D", 1.0, 0.0), 1.0, 3000)
    return pd.DataFrame(
        {
            EVIL: x.clip(-4, 5),
            "kind": rng.choice(["<img src=x onerror=alert(1)>", "plain"], 3000),
            "who": group,
            "label": np.where(x + rng.normal(0, 0.7, 3000) > 0.6, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def fitted(frame: pd.DataFrame) -> MarginalSynthesizer:
    return MarginalSynthesizer(random_state=0).fit(
        frame[:2000], label="label", sensitive="who", budget=Budget(epsilon=8.0, delta=1e-6)
    )


@pytest.fixture(scope="module")
def pages(
    frame: pd.DataFrame, fitted: MarginalSynthesizer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("synthetic")
    rows, test = fitted.sample(600, random_state=0), frame[2000:]
    found = evaluate(fitted, rows, test, models=("logistic regression",), random_state=0)
    attacked = attack_membership(fitted, rows, frame[:2000], test).reveal_to_curator()
    return {
        "alone": write_report(fitted, folder / "alone.html"),
        "measured": write_report(
            fitted, folder / "measured.html", measured=found, test=test, dataset={"Table": EVIL}
        ),
        "attacked": write_report(
            fitted, folder / "attacked.html", measured=found, test=test, membership=attacked
        ),
    }


def test_the_claim_and_every_line_of_the_ledger_stand_on_the_page(
    fitted: MarginalSynthesizer, pages: dict[str, Path]
) -> None:
    text = pages["alone"].read_text(encoding="utf-8")
    assert "differentially private for each record" in text
    for entry in fitted.ledger_.entries:
        assert entry.purpose in text
    assert "noisy sum of bounded contributions" in text
    # A tenth of delta is set aside for naming categories: the ledger speaks at the rest.
    assert "epsilon = 8 at delta = 9e-07, affords" in text


def test_without_real_rows_nothing_is_said_to_be_measured(pages: dict[str, Path]) -> None:
    alone, measured = (pages[name].read_text(encoding="utf-8") for name in ("alone", "measured"))
    assert "Not covered by the guarantee. These numbers" not in alone
    assert "Models trained on these rows" not in alone
    assert measured.count("Not covered by the guarantee. These numbers") == 4
    assert "Models trained on these rows" in measured


def test_what_reads_real_rows_is_listed_and_nothing_else(
    frame: pd.DataFrame, fitted: MarginalSynthesizer
) -> None:
    rows, test = fitted.sample(600, random_state=0), frame[2000:]

    def listed(train: pd.DataFrame | None = None, shown: bool = True) -> list[str]:
        found = evaluate(fitted, rows, test, train=train, models=("logistic regression",))
        page = GeneratorReport.of(fitted, measured=found, test=test if shown else None)
        assert not page.private
        return [f"{what}: {reads}" for what, reads, _ in page.real]

    plain = [
        "Real shares of labels and groups, and how even they are: test rows",
        "Models: AUROC, accuracy and gaps: test rows",
        "How near the columns are: test rows",
    ]
    assert listed(shown=False) == plain
    assert listed() == ["The real side of the columns: test rows", *plain]
    trained = "Models trained on real rows: test rows, and the rows that these were trained on"
    assert listed(train=frame[:900]) == [
        "The real side of the columns: test rows",
        *plain[:2],
        trained,
        plain[2],
    ]
    assert GeneratorReport.of(fitted).real == ()
    assert "real" not in [section.anchor for section in GeneratorReport.of(fitted).sections]


def test_a_page_with_membership_inference_is_for_the_curator_alone(
    frame: pd.DataFrame, fitted: MarginalSynthesizer, pages: dict[str, Path]
) -> None:
    shared, own = (pages[name].read_text(encoding="utf-8") for name in ("measured", "attacked"))
    banner = '<div class="banner" role="alert"><strong>For the curator alone</strong>'
    assert banner in own
    assert banner not in shared
    assert "Membership inference" not in shared
    modes = [pages[name].stat().st_mode & 0o777 for name in ("measured", "attacked")]
    assert modes == [0o644, 0o600]
    rows = fitted.sample(600, random_state=0)
    attacked = attack_membership(fitted, rows, frame[:2000], frame[2000:])
    found = attacked.reveal_to_curator()
    for attack in found.attacks:
        for value in (attack.auc.value, found.allowed.auc):
            assert (
                f'<td class="number" data-column="{{}}">{value:.3f}</td>'.format(
                    "Found" if value == attack.auc.value else "Allowed at most"
                )
                in own
            )
        for share, hit in attack.found:
            assert f">{hit.value:.2%}</td>" in own
            assert f">{hit.value - share:.2%}</td>" in own
            assert f">{float(found.allowed.found(share)):.2%}</td>" in own
    with pytest.raises(TypeError, match=r"attack_membership\(...\).reveal_to_curator\(\) gave"):
        GeneratorReport.of(fitted, membership=attacked)  # type: ignore[arg-type]


def test_the_page_says_whether_an_attack_is_above_what_is_allowed(
    frame: pd.DataFrame, fitted: MarginalSynthesizer, pages: dict[str, Path], tmp_path: Path
) -> None:
    below = pages["attacked"].read_text(encoding="utf-8")
    assert "No attack is above what the claim allows" in below
    copies = frame[:2000].sample(frac=1.0, random_state=0)
    attacked = attack_membership(fitted, copies, frame[:2000], frame[2000:]).reveal_to_curator()
    page = write_report(fitted, tmp_path / "copies.html", membership=attacked)
    assert "Above what is allowed" in page.read_text(encoding="utf-8")


def test_names_from_the_table_are_escaped_everywhere(pages: dict[str, Path]) -> None:
    for page in pages.values():
        text = page.read_text(encoding="utf-8")
        assert EVIL not in text
        assert "<img src=x" not in text
        assert "</script><b>" not in text


def test_a_loaded_generator_gives_the_same_page(
    fitted: MarginalSynthesizer, pages: dict[str, Path], tmp_path: Path
) -> None:
    again = load(fitted.save(tmp_path / "generator"))
    page = write_report(again, tmp_path / "again.html")
    assert page.read_bytes() == pages["alone"].read_bytes()


def test_a_seeded_run_is_called_what_it_is(frame: pd.DataFrame, tmp_path: Path) -> None:
    made = MarginalSynthesizer(noise=SeededNoise(0)).fit(
        frame, label="label", sensitive="who", budget=Budget(epsilon=8.0, delta=1e-6)
    )
    text = write_report(made, tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<div class="banner" role="alert"><strong>Not private</strong>' in text
    assert GeneratorReport.of(made).guarantee.holds is False


def test_views_are_shares_of_the_values_that_are_there() -> None:
    real = pd.DataFrame({"x": [0, 1, 1, 3], "z": ["a", "a", "b", None]})
    made = pd.DataFrame({"x": [0, 0, 3, 3], "z": ["a", "b", "b", "b"]})
    x, z = column_views(made, real, Schema.of_public(real))
    assert x.at == (0.0, 1.0, 2.0, 3.0)
    assert x.real == (0.25, 0.5, 0.0, 0.25)
    assert x.synthetic == (0.5, 0.0, 0.0, 0.5)
    assert z.at == ("a", "b")
    assert z.real == pytest.approx((2 / 3, 1 / 3))
    assert z.missing == (0.0, 0.25)
    many = pd.DataFrame({"z": [f"c{i}" for i in range(30)]})
    (view,) = column_views(many, None, Schema.of_public(many))
    assert len(view.at) == 13
    assert view.at[-1] == "all others"
    assert sum(view.synthetic) == pytest.approx(1.0)


def test_what_stands_below_the_bars_has_room_side_by_side() -> None:
    rows = pd.DataFrame({"x": [0, 1, 2], "much": [-3.04019e14, 0.0, 3.34388e14], "one": 7})
    rows["seen"] = pd.to_datetime(["2015-09-05T20:05", "2020-06-12T10:00", "2024-03-30T22:21"])
    rows["today"] = pd.to_datetime(["2015-09-05T08:00", "2015-09-05T12:00", "2015-09-05T20:00"])
    said = dict.fromkeys(rows, "numeric") | dict.fromkeys(("seen", "today"), "datetime")
    below = {
        view.name: re.findall(r'"tick"[^>]*>([^<%]+)<', str(figures.columns([view])))
        for view in column_views(rows, None, Schema.declared(said))
    }
    assert below == {
        "x": ["0", "1", "2"],
        "much": ["-2.90719e+14", "3.21088e+14"],
        "one": ["7"],
        "seen": ["2015-11-10", "2024-01-25"],
        "today": ["08:15:00", "14:15:00", "19:45:00"],
    }


@pytest.mark.browser
def test_it_opens_from_disk_without_complaint_or_request(
    pages: dict[str, Path], visit: Callable[[Path], Any]
) -> None:
    for name, n_charts in (("alone", 3), ("measured", 4), ("attacked", 5)):
        seen = visit(pages[name])
        assert seen.complaints == []
        assert seen.requests == [pages[name].as_uri()]
        charts = seen.page.locator(".chart")
        assert charts.count() == n_charts
        for i in range(n_charts):
            assert charts.nth(i).locator(".bar rect, circle, .trace").first.is_visible()
        assert seen.page.evaluate("window.hit === undefined")


def test_a_model_has_no_rows_that_could_be_attacked(plain: Any, tmp_path: Path) -> None:
    for named in ("test", "membership"):
        with pytest.raises(TypeError, match="test= and membership= are about the records"):
            write_report(plain.model, tmp_path / "page.html", **{named: pd.DataFrame()})
    assert not (tmp_path / "page.html").exists()
