"""Grids: what they expand to, and what bad ones are told."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.datasets import Schema
from evenhand.frontier import Grid
from evenhand.frontier.arguments import estimator_of
from evenhand.frontier.material import DataSource
from evenhand.frontier.run import Setting

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "grid.toml"
        path.write_text(text)
        return path

    return write


ADULT = '[data]\nset = "adult"\n'
FILES = """[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
label = "y"
sensitive = "sex"
"""
RUN = '[[runs]]\nmethod = "fairpate"\nepsilon = 1\nmargin = 0.05\n'


def arguments(settings: list[Setting]) -> list[tuple[str, dict[str, object], int]]:
    return [(s.method, dict(s.arguments), s.seed) for s in settings]


def test_a_grid_is_the_product_of_its_lists_in_one_order(write: Write) -> None:
    path = write(
        "seeds = [0, 7]\n" + ADULT + '[[runs]]\nmethod = "fairpate"\nmargin = [0.05, 0.1]\n'
        "epsilon = [1, 2]\nsigma = 40\n"
    )
    expected = [
        ("fairpate", {"epsilon": e, "margin": m, "sigma": 40.0}, seed)
        for seed in (0, 7)
        for e in (1.0, 2.0)
        for m in (0.05, 0.1)
    ]
    assert arguments(Grid.from_toml(path).settings()) == expected
    assert [s.key for s in Grid.from_toml(path).settings()] == [
        s.key for s in Grid.from_toml(path).settings()
    ]


def test_a_method_leaves_out_what_it_does_not_read_and_stands_once(write: Write) -> None:
    path = write(
        ADULT + '[[runs]]\nmethod = ["pate", "non-private", "fair-only"]\nepsilon = 2\n'
        'margin = 0.05\nreference = "pairwise"\n' + RUN + RUN
    )
    assert arguments(Grid.from_toml(path).settings()) == [
        ("pate", {"epsilon": 2.0}, 0),
        ("non-private", {}, 0),
        ("fair-only", {"margin": 0.05, "reference": "pairwise"}, 0),
        ("fairpate", {"epsilon": 1.0, "margin": 0.05}, 0),
    ]


def test_what_is_the_default_is_not_part_of_a_setting(write: Write) -> None:
    plain = Grid.from_toml(write(ADULT + RUN)).settings()
    said = Grid.from_toml(
        write(ADULT + RUN + 'delta = 1e-5\nreference = "rest"\nfairness = "demographic-parity"\n')
    ).settings()
    assert [s.key for s in plain] == [s.key for s in said]


def test_what_is_measured_anyhow_is_not_part_of_a_setting(write: Write) -> None:
    path = write(
        ADULT
        + "calibration_fraction = 0.2\n"
        + RUN
        + 'fairness = "equalized-odds"\ngap_of = "equalized-odds"\n'
        '[[runs]]\nmethod = ["fairpate", "pate"]\nepsilon = 1\nmargin = 0.05\n'
        'gap_of = ["demographic-parity", "equalized-odds"]\n'
    )
    within = {"epsilon": 1.0, "margin": 0.05}
    assert arguments(Grid.from_toml(path).settings()) == [
        ("fairpate", {**within, "fairness": "equalized-odds"}, 0),
        ("fairpate", within, 0),
        ("fairpate", {**within, "gap_of": "equalized-odds"}, 0),
        ("pate", {"epsilon": 1.0}, 0),
        ("pate", {"epsilon": 1.0, "gap_of": "equalized-odds"}, 0),
    ]


def test_a_gate_is_left_out_by_answer_margin_and_then_needs_no_calibration_rows(
    write: Write,
) -> None:
    path = write(ADULT + RUN + "answer_margin = [true, false]\n")
    settings = Grid.from_toml(path).settings()
    within = {"epsilon": 1.0, "margin": 0.05}
    assert arguments(settings) == [
        ("fairpate", within, 0),
        ("fairpate", {**within, "answer_margin": False}, 0),
    ]
    assert [estimator_of(one).answer_margin for one in settings] == [True, False]
    odds = 'fairness = "equalized-odds"\nanswer_margin = false\n'
    (setting,) = Grid.from_toml(write(ADULT + RUN + odds)).settings()
    assert setting.arguments["fairness"] == "equalized-odds"


def test_a_range_is_written_by_its_ends(write: Write) -> None:
    path = write(
        ADULT + '[[runs]]\nmethod = "fairpate"\nmargin = { from = 0.05, to = 0.15, n = 3 }\n'
        'epsilon = { from = 1, to = 8, n = 4, spacing = "log" }\n'
        "n_teachers = { from = 100, to = 201, n = 3 }\n"
    )
    settings = Grid.from_toml(path).settings()
    assert sorted({s.arguments["margin"] for s in settings}) == [0.05, 0.1, 0.15]  # type: ignore[type-var]
    assert sorted({s.arguments["epsilon"] for s in settings}) == [1.0, 2.0, 4.0, 8.0]  # type: ignore[type-var]
    assert {s.arguments["n_teachers"] for s in settings} == {100, 150, 201}
    path = write(
        ADULT + '[[runs]]\nmethod = "marginal"\nepsilon = 1\n'
        "n_rows = { from = 100, to = 900, n = 3 }\n"
    )
    drawn = [s.arguments["n_rows"] for s in Grid.from_toml(path).settings()]
    assert drawn == [100, 500, 900]
    assert all(isinstance(n, int) for n in drawn)


OF_DPSGD = '[[runs]]\nmethod = "dpsgd"\nepsilon = 1\n'
OF_GRADIENTS = '[[runs]]\nmethod = ["dpsgd", "dp-fermi"]\nepsilon = 1\n'


@pytest.mark.parametrize(
    ("hidden", "of_dpsgd", "of_dp_fermi"),
    [
        ("[]", [()], [()]),
        ("0", [()], [()]),
        ("16", [(16,)], [(16,)]),
        ("[0, 16, [64, 32], []]", [(), (16,), (64, 32)], [(), (16,), (64, 32)]),
        ("[[64, 32]]", [(64, 32)], [(64, 32)]),
        ("{ from = 8, to = 32, n = 3, spacing = 'log' }", [(8,), (16,), (32,)], None),
    ],
)
def test_hidden_layers_are_a_width_or_a_list_of_widths(
    write: Write,
    hidden: str,
    of_dpsgd: list[tuple[int, ...]],
    of_dp_fermi: list[tuple[int, ...]] | None,
) -> None:
    grid = Grid.from_toml(write(f"{ADULT}{OF_GRADIENTS}hidden = {hidden}\n"))
    made: dict[str, list[tuple[int, ...]]] = {"dpsgd": [], "dp-fermi": []}
    for setting in replace(grid, seeds=(3,)).settings():
        made[setting.method].append(estimator_of(setting).hidden)
        assert Setting.from_dict(json.loads(json.dumps(setting.to_dict()))) == setting
    assert made == {"dpsgd": of_dpsgd, "dp-fermi": of_dp_fermi or of_dpsgd}


def test_no_hidden_layer_is_the_default(write: Write) -> None:
    plain = Grid.from_toml(write(ADULT + OF_GRADIENTS)).settings()
    linear = Grid.from_toml(write(f"{ADULT}{OF_GRADIENTS}hidden = []\n")).settings()
    assert [estimator_of(setting).hidden for setting in plain] == [(), ()]
    assert [a.key == b.key for a, b in zip(plain, linear, strict=True)] == [True, True]


def test_a_degree_is_a_whole_number_from_0_on_and_by_default_the_method_chooses(
    write: Write,
) -> None:
    def degrees(line: str) -> list[int | None]:
        settings = Grid.from_toml(write(f"{ADULT}{OF_DPSGD}{line}\n")).settings()
        return [estimator_of(setting).degree for setting in settings]

    assert degrees("") == [None]
    assert degrees("degree = 0") == [0]
    assert degrees("degree = [3, 0]") == [3, 0]
    assert degrees("degree = { from = 0, to = 3, n = 4 }") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ADULT + OF_DPSGD + "degree = -1\n", "degree must be at least 0, got degree=-1"),
        (ADULT + OF_DPSGD + "degree = 1.5\n", "degree must be a whole number, got 1.5"),
        (
            ADULT + RUN + "degree = 2\n",
            "degree = 2 is not read by method = 'fairpate' beside it, but by 'dpsgd'",
        ),
        (
            '[data]\nset = "color-mnist"\nextractor = "none"\n' + OF_DPSGD + "degree = 2\n",
            "hands out pixels, and degree bends columns of numbers. Name an extractor",
        ),
        (ADULT + OF_GRADIENTS + "hidden = [-4]\n", "hidden must be at least 0, got hidden=-4"),
        (
            ADULT + OF_GRADIENTS + "hidden = [[16, 1.5]]\n",
            r"hidden must be a whole number, got 1.5 \(float\). One layer is a width such as 16",
        ),
        (ADULT + OF_GRADIENTS + 'hidden = "wide"\n', "hidden must be a whole number, got 'wide'"),
        (ADULT + OF_GRADIENTS + "hidden = true\n", "hidden must be a whole number, got True"),
        (
            ADULT + RUN + "hidden = [[64, 32]]\n",
            "hidden = '64,32' is not read by method = 'fairpate' beside it, but by 'dpsgd', 'dp-",
        ),
        (
            '[data]\nset = "color-mnist"\nextractor = "none"\n' + OF_GRADIENTS + "hidden = 16\n",
            "hands out pixels, and hidden makes layers of features",
        ),
        (ADULT + RUN + "sigma = [[4, 9]]\n", r"sigma must be a number, got \[4, 9\]"),
        ("seedz = [1]\n" + ADULT + RUN, r"does not know the key 'seedz'. Did you mean 'seeds'\?"),
        (ADULT + RUN + "margn = 0.1\n", r"does not know the key 'margn'. Did you mean 'margin'\?"),
        (ADULT + RUN.replace("fairpate", "fairpat"), r"got 'fairpat'. Did you mean 'fairpate'\?"),
        (ADULT + RUN.replace("fairpate", "atuo"), r"'auto', got 'atuo'. Did you mean 'auto'\?"),
        (ADULT.replace("adult", "adlt") + RUN, r"got 'adlt'. Did you mean 'adult'\?"),
        (ADULT + RUN + 'notion = "error-parity"\n', "'notion'. It is now called 'fairness'"),
        (ADULT + "colour = 1\n" + RUN, r"\[data\] does not know the key 'colour'"),
        (ADULT + RUN + 'answers = "lables"\n', r"got 'lables'. Did you mean 'labels'\?"),
        (
            ADULT + RUN + 'rule = "published"\n',
            r"'rule'. The published rule is now a method: method = 'fairpate-published'",
        ),
        (ADULT, r"nothing to run: add a table \[\[runs\]\]"),
        (ADULT + "[[runs]]\nepsilon = 1\n", r"nothing to run: \[\[runs\]\] names no method"),
        (ADULT + RUN + "sigma = []\n", "nothing to run: sigma is an empty list"),
        ("seeds = []\n" + ADULT + RUN, "nothing to run: seeds is empty"),
        (ADULT + RUN + "sigma = { from = 9, to = 3, n = 4 }\n", "from = 9, to = 3, n = 4 } is imp"),
        (ADULT + RUN + "sigma = { from = 1, to = 3, n = 0 }\n", "n of the range sigma must be at"),
        (ADULT + RUN + "sigma = { from = 1, to = 3 }\n", "The range sigma misses n"),
        (
            ADULT + RUN + 'sigma = { from = 0, to = 3, n = 2, spacing = "log" }\n',
            "starts at 0, and a spacing of 'log' needs from > 0",
        ),
        (ADULT + RUN.replace("0.05", "1.5"), r"margin must lie in \[0, 1\], got margin=1.5"),
        (ADULT + RUN.replace("epsilon = 1", "epsilon = -1"), "epsilon must be finite and > 0"),
        (ADULT + RUN.replace("epsilon = 1\n", ""), "'fairpate' needs epsilon, and the grid gives"),
        (ADULT + RUN + "threshold = 90\n", "needs threshold, sigma_check and sigma together"),
        (
            ADULT + '[[runs]]\nmethod = "pate"\nepsilon = 1\nsigma = 3\nanswers = "shares"\n',
            "sigma is the noise of labels",
        ),
        (ADULT + RUN + 'sigma = "much"\n', "sigma must be a number, got 'much'"),
        (
            ADULT + '[[runs]]\nmethod = ["pate", "non-private"]\nepsilon = 2\nmargin = [0, 0.1]\n',
            r"margin = \[0.0, 0.1\] is not read by method = \['pate', 'non-private'\] beside it, "
            "but by 'fair-shares', 'fairpate', 'fairpate-published', 'fairpate-as-printed', "
            "'intervention', 'dpsgd', "
            "'dp-post-processing', 'dp-decoupled', 'dp2dp', 'dp-barycenter', 'fairdp', "
            "'sf-student', 'sf-teachers', 'randomized-response', 'pf-ld', 'pf-ld-as-printed', "
            "'fair-only'",
        ),
        (
            ADULT + '[[runs]]\nmethod = "dpsgd"\nepsilon = 2\nn_teachers = 50\n',
            "n_teachers = 50 is not read by method = 'dpsgd' .* by 'fair-shares', 'fairpate', 'pa",
        ),
        (
            ADULT + RUN + "fairness_weight = 2\n",
            "fairness_weight = 2.0 is not read by method = 'fairpate' beside it, but by 'dp-fermi'",
        ),
        (
            ADULT + '[[runs]]\nmethod = "dp-fermi"\nepsilon = 2\nfairness_weight = -1\n',
            "fairness_weight must be finite and >= 0",
        ),
        (
            ADULT + '[[runs]]\nmethod = "dp-fermi"\nepsilon = 2\nfairness = "error-parity"\n',
            "'dp-fermi' holds 'demographic-parity' or 'equalized-odds' alone, got fairness = '",
        ),
        (
            ADULT
            + RUN.replace('"fairpate"', '["fair-shares", "dpsgd"]')
            + 'fairness = "error-parity"\n',
            "'dpsgd' holds 'demographic-parity' alone, got fairness = 'error-parity'",
        ),
        (
            ADULT + RUN + 'fairness = "error-parity"\n',
            "about true classes.*calibration_fraction = 0.2.*answer_margin = false, or 'fair-sha",
        ),
        (ADULT + RUN + 'admit_by = "limits"\n', r"Did you mean 'limit'\?"),
        (
            ADULT + RUN + "synthetic_share = 1\n",
            "synthetic_share must lie strictly between 0 and 1",
        ),
        (
            ADULT + RUN.replace('"fairpate"', '"dpsgd"') + "synthetic_share = 0.5\n",
            "synthetic_share = 0.5 is not read by method = 'dpsgd'",
        ),
        (ADULT + RUN + "gate_level = 1\n", "gate_level must lie strictly between 0 and 1"),
        (ADULT + RUN + 'answer_margin = "no"\n', "answer_margin must be true or false, got 'no'"),
        (ADULT + RUN + "answer_margin = 0\n", "answer_margin must be true or false, got 0"),
        (
            ADULT + RUN.replace('"fairpate"', '"fair-shares"') + "answer_margin = false\n",
            "answer_margin = False is not read by method = 'fair-shares' .* but by 'fairpate'",
        ),
        (
            ADULT + RUN + "answer_margin = [true, false]\ngate_level = 0.9\n",
            "gate_level is about the gate, and answer_margin = false opens none",
        ),
        (ADULT + '[[runs]]\nmethod = "dp-post-procesing"\n', "mean 'dp-post-processing'"),
        (ADULT + RUN + 'fairness = "equalised-odds"\n', r"Did you mean 'equalized-odds'\?"),
        (
            ADULT + RUN.replace("fairpate", "fairpate-published") + 'fairness = "equalized-odds"\n',
            "'equalized-odds' is not read by method = 'fairpate-published' beside it",
        ),
        (ADULT + 'unit = "person"\n' + RUN, r"\[data\] unit = 'person' is about files of your own"),
        (
            ADULT + 'schema = "s.json"\n' + RUN,
            "is about files of your own, and set = 'adult' is bui",
        ),
        (ADULT + 'calibration = "c.csv"\n' + RUN, "calibration = .* is about files of your own"),
        (ADULT + "calibration_fraction = 1.0\n" + RUN, "calibration_fraction must lie strictly"),
        (
            FILES + "calibration_fraction = 0.1\n" + RUN,
            "file of labelled public rows instead: cali",
        ),
        (
            FILES + 'unit = "id"\n' + RUN.replace("fairpate", "dpsgd"),
            "'dpsgd' promises something for",
        ),
        ("[data\n", "is not TOML"),
        (RUN, r"The table \[data\] is missing"),
        (ADULT + "[runs]\n", r"head each of them with \[\[runs\]\]"),
        (ADULT.replace('set = "adult"', 'private = "a.csv"') + RUN, "public and test is missing"),
        (ADULT + 'kind = "secret"\n' + RUN, "kind must be one of 'private', 'public stand-in'"),
    ],
)
def test_a_bad_grid_is_told_what_is_wrong(write: Write, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        Grid.from_toml(write(text))
    assert "grid.toml" in str(error.value)


def test_a_grid_beyond_reason_is_refused() -> None:
    many = [i / 2000 for i in range(1, 1500)]
    with pytest.raises(ValueError, match="stands for 2,247,001 settings, above 1,000,000"):
        Grid(
            data=DataSource(name="adult"),
            runs=({"method": ["fairpate"], "epsilon": many, "margin": many[:1499]},),
        )


def test_a_fingerprint_changes_with_the_roles_and_not_with_the_rows(tmp_path: Path) -> None:
    def source(rows: str, sensitive: str = "sex", **more: str) -> str:
        for part in ("private", "public", "test"):
            (tmp_path / f"{part}.csv").write_text("age,sex,race,y\n" + rows)
        return DataSource(
            name="town",
            private=str(tmp_path / "private.csv"),
            public=str(tmp_path / "public.csv"),
            test=str(tmp_path / "test.csv"),
            label="y",
            sensitive=(sensitive,),
            **more,  # type: ignore[arg-type]  # text alone
        ).fingerprint

    schema = tmp_path / "schema.json"
    Schema.declared({"age": {"bounds": (17, 90)}}).save(schema)
    rows = "1,F,A,0\n2,M,B,1\n"
    first = source(rows)
    assert source("5,F,A,1\n2,M,B,0\n") == first
    others = [
        source(rows, "race"),
        source(rows, unit="race"),
        source(rows, unit="race", unit_name="race"),
        source(rows, calibration="labelled.csv"),
        source(rows, schema=str(schema)),
    ]
    Schema.declared({"age": {"bounds": (18, 90)}}).save(other := tmp_path / "other.json")
    others.append(source(rows, schema=str(other)))
    assert len({first, *others}) == 7
    # regression: stores of earlier sweeps hold keys that are made of these
    assert DataSource(name="adult").fingerprint == "62655ce32fcf25d7"


@pytest.mark.parametrize("together", [True, False])
def test_privacy_of_the_record_and_of_an_attribute_do_not_stand_on_one_frontier(
    write: Write, together: bool
) -> None:
    rest = "epsilon = 1\nmargin = 0.05\n"
    tables = (
        '[[runs]]\nmethod = ["dpsgd", "pf-ld"]\n' + rest
        if together
        else f'[[runs]]\nmethod = "pf-ld"\n{rest}[[runs]]\nmethod = "fairpate"\n{rest}'
    )
    with pytest.raises(ValueError, match="an epsilon of the one says nothing of the other"):
        Grid.from_toml(write(ADULT + tables))
    # A reference that promises nothing stands beside either.
    alone = '[[runs]]\nmethod = ["randomized-response", "pf-ld", "fair-only"]\n' + rest
    assert len(Grid.from_toml(write(ADULT + alone)).settings()) == 3


@pytest.mark.parametrize(
    ("more", "unit", "methods"),
    [
        ("margin = 0.1", "", ["dpsgd"]),
        ("", "", ["dpsgd"]),
        (
            'margin = 0.1\nfairness = ["demographic-parity", "equalized-odds"]',
            "",
            ["dpsgd", "fair-shares"],
        ),
        ("margin = 0.1\nn_teachers = 50", "", ["fair-shares"]),
        ("margin = 0.1", 'unit = "person"', ["fair-shares"]),
        ("", 'unit = "person"', ["pate"]),
        ("blind_margin = 0.1\nconfidence = 0.9", "", ["dpsgd"]),
        ('neighbors = "add or remove one"', "", ["dpsgd"]),
        ('neighbors = "replace one"', "", ["pate"]),
    ],
)
def test_auto_stands_for_the_method_that_fits_the_case(
    write: Write, tmp_path: Path, more: str, unit: str, methods: list[str]
) -> None:
    for name in ("private", "public", "test"):
        (tmp_path / f"{name}.csv").write_text("x,sex,person,y\n1,a,p,0\n2,b,q,1\n")
    run = f'[[runs]]\nmethod = "auto"\nepsilon = 1\n{more}\n'
    grid = Grid.from_toml(write(f"{FILES}{unit}\n{run}"))
    settings = grid.settings()
    assert [setting.method for setting in settings] == methods
    assert all(setting.arguments["epsilon"] == 1.0 for setting in settings)
    said = "Method {}, chosen by public numbers and wishes alone"
    assert [words.split(":")[0] for words in grid.choices] == [said.format(m) for m in methods]


def test_a_change_that_the_claim_is_about_anyway_is_no_argument_that_nothing_reads(
    write: Write,
) -> None:
    run = '[[runs]]\nmethod = "dpsgd"\nepsilon = 1\nneighbors = '
    (setting,) = Grid.from_toml(write(f'{ADULT}{run}"add or remove one"\n')).settings()
    assert "neighbors" not in setting.arguments
    with pytest.raises(ValueError, match="is not read by method = 'dpsgd'"):
        Grid.from_toml(write(f'{ADULT}{run}"replace one"\n'))
