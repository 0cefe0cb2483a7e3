"""Pictures on the command line: tables that list files, and models that know how to read them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from evenhand import load
from evenhand._words import PIXEL_NETWORKS
from evenhand.cli import app
from evenhand.datasets import DataNotAvailable
from evenhand.datasets.features import extraction
from evenhand.datasets.features.extraction import extract
from evenhand.datasets.features.networks import OnnxFeatures
from evenhand.datasets.features.reading import PictureReading
from evenhand.datasets.images import ImageData, load_color_mnist
from evenhand.frontier import Grid, RunStore, loaded_rows
from evenhand.frontier.material import DataSource
from evenhand.learners.nets.architectures import architecture_typed
from evenhand.methods import METHODS

image = pytest.importorskip("PIL.Image", reason="the extra images is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

SIDE = 12
SIZES = {"private": 300, "public": 120, "test": 80, "new": 20}
EXTRACTOR = "--extractor halves.onnx --trained-on nothing --licence CC0"
ROLES = "--label colour --sensitive place"
# Little noise, so that what is measured hardly depends on it.
FAIR = f"{ROLES} --epsilon 50 --delta 1e-4 --margin 0.1 --teachers 15 --seed 0"
TRAIN = f"train private.csv --images {EXTRACTOR} --public public.csv {FAIR} --out model"


def squares(name: str, n: int, seed: int, *, side: int = SIDE) -> pd.DataFrame:
    """Write n pictures of a square, red or not, on the left or the right; return their table."""
    rng = np.random.default_rng(seed)
    Path(name).mkdir()
    table = pd.DataFrame({"path": [f"{name}/{i}.png" for i in range(n)]})
    table["colour"] = rng.choice(["other", "red"], n)
    table["place"] = rng.choice(["left", "right"], n)
    for path, colour, place in table.itertuples(index=False):
        pixels = rng.integers(0, 60, (side, side, 3), dtype=np.uint8)
        left = 1 if place == "left" else 7
        pixels[3:9, left : left + 5, 0 if colour == "red" else rng.integers(1, 3)] = 220
        image.fromarray(pixels).save(path)
    return table


def network(path: str, scale: float = 1.0) -> None:
    """Write a network that gives the mean of each colour in each quarter of a picture."""
    make, numpy_helper = onnx.helper, onnx.numpy_helper
    floats = onnx.TensorProto.FLOAT
    graph = make.make_graph(
        [
            make.make_node("Mul", ["x", "scale"], ["scaled"]),
            make.make_node("AveragePool", ["scaled"], ["p"], kernel_shape=[6, 6], strides=[6, 6]),
            make.make_node("Flatten", ["p"], ["out"], axis=1),
        ],
        "halves",
        [make.make_tensor_value_info("x", floats, ["b", 3, SIDE, SIDE])],
        [make.make_tensor_value_info("out", floats, ["b", 12])],
        [numpy_helper.from_array(np.float32([scale]), "scale")],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of four tables of pictures, a network, and a model."""
    folder = tmp_path_factory.mktemp("pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        for seed, (name, n) in enumerate(SIZES.items()):
            table = squares(name, n, seed)
            table.to_csv(f"{name}-whole.csv", index=False)
            hidden = [] if name in ("private", "test") else ["colour"]
            table.drop(columns=hidden).to_csv(f"{name}.csv", index=False)
        network("halves.onnx")
        result = CliRunner().invoke(app, TRAIN.split())
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def gallery(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of that folder, entered."""
    folder = Path(shutil.copytree(made, tmp_path / "gallery"))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    return folder


def again(*more: str, out: str = "second") -> list[str]:
    return [*TRAIN.replace("--out model", f"--out {out}").split(), *more]


def extractor() -> OnnxFeatures:
    return OnnxFeatures.load("halves.onnx", trained_on="nothing", licence="CC0")


def test_a_model_of_pictures_is_trained_and_predicts_as_in_python(
    gallery: Path, run: Callable[..., Any]
) -> None:
    run("predict", "model", "new.csv", "--extractor", "halves.onnx", "--out", "said.csv")
    said = pd.read_csv("said.csv")["prediction"].tolist()
    model = load("model")
    table = pd.read_csv("new.csv").assign(label="a", group="b")
    table.loc[0, ["label", "group"]] = "c"
    table.to_csv("labelled.csv", index=False)
    pictures = ImageData.from_csv("labelled.csv").X
    features = extract(pictures, extractor(), cache=False)
    assert said == model.predict(features).tolist()
    assert model.extractor_ == features.extractor
    assert any("digest" in words and "halves" in words for words in model.guarantee_.public)
    assert np.mean(pd.read_csv("new-whole.csv")["colour"] == said) > 0.7
    result = run("evaluate", "model", "test.csv", "--extractor", "halves.onnx", "--json")
    found = json.loads(result.stdout)
    assert found["n_rows"] == SIZES["test"]
    assert found["error"] < 0.3
    page = Path("model/report.html").read_text(encoding="utf-8")
    assert features.made_by in page
    assert "<img" not in page
    assert "evenhand predict model NEW_PICTURES.csv" in page


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_every_method_learns_from_features(
    gallery: Path, run: Callable[..., Any], method: str
) -> None:
    spec = METHODS[method]
    words = ["train", "private.csv", "--images", *EXTRACTOR.split(), *ROLES.split()]
    words += ["--method", method, "--out", "second", "--json", "--seed", "0"]
    given = {"--epsilon": "8", "--delta": "1e-4"} if spec.private else {}
    if "public" in spec.reads:
        given["--public"] = "public.csv"
    if spec.protects == "attribute":
        given["--protect"] = "attribute"
    if "n_teachers" in spec.reads:
        given["--teachers"] = "15"
    if spec.margin != "none" and spec.margin != "weight":
        given["--margin"] = "0.2"
    words += [word for pair in given.items() for word in pair]
    said = json.loads(run(*words).stdout)
    made_by = str(load("second").extractor_)
    assert made_by in said["public"]
    if load("second").needs_group_at_prediction_:
        return
    result = run("predict", "second", "new.csv", "--extractor", "halves.onnx", "--json")
    assert set(json.loads(result.stdout)["predictions"]) <= {"red", "other"}


@pytest.fixture
def features_made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pictures an extractor reads at each call from here on."""
    made: list[int] = []

    def counted(extractor: Any, pictures: Any, rows: Any) -> Any:
        made.append(len(rows))
        return transformed(extractor, pictures, rows)

    transformed = extraction._transformed
    monkeypatch.setattr(extraction, "_transformed", counted)
    return made


def test_features_are_made_once(
    gallery: Path, run: Callable[..., Any], features_made: list[int]
) -> None:
    result = run(*again())
    assert features_made == [], "the run of the fixture made them"
    assert f"Features are kept in {gallery}/cache/evenhand/features" in result.stderr
    run("predict", "second", "new.csv", "--extractor", "halves.onnx", "--features", "none")
    run(*again("--features", "mine", out="third"))
    assert sum(features_made) == SIZES["new"] + SIZES["private"] + SIZES["public"]
    assert list(Path("mine").rglob("*.safetensors"))
    assert not any("features" in path.name for path in Path("third").iterdir())


def test_the_report_shows_public_pictures_if_it_is_asked_to(
    gallery: Path, run: Callable[..., Any]
) -> None:
    run(*again("--show-pictures", "5", "--test", "test.csv"))
    page = Path("second/report.html").read_text(encoding="utf-8")
    shown = re.findall(r'<img alt="Public row (\d+) of the group (\w+), predicted (\w+)"', page)
    assert len(shown) == 5
    table = pd.read_csv("public.csv")
    assert [group for _, group, _ in shown] == ["left", "right", "left", "right", "left"]
    assert [table["place"][int(row) - 1] for row, _, _ in shown] == [g for _, g, _ in shown]
    assert len(page.encode()) < 200_000


@pytest.mark.parametrize("name", PIXEL_NETWORKS)
def test_every_network_has_its_word(name: str) -> None:
    assert hasattr(architecture_typed(name), "build")


@pytest.mark.torch
@pytest.mark.slow
def test_teachers_may_read_the_pixels(gallery: Path, run: Callable[..., Any]) -> None:
    """About 15 seconds."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    words = TRAIN.replace(EXTRACTOR, "--extractor none").replace("--teachers 15", "--teachers 3")
    run(*words.replace("--out model", "--out pixels").split())
    model = load("pixels")
    assert model.extractor_ is None
    assert model.encoder_.shape == (3, SIDE, SIDE)
    said = json.loads(run("predict", "pixels", "new.csv", "--json").stdout)["predictions"]
    table = pd.read_csv("new.csv")
    pixels = np.stack([np.moveaxis(np.asarray(image.open(p)), -1, 0) for p in table["path"]])
    assert said == model.predict(pixels).tolist()


@pytest.mark.parametrize("method", ["dpsgd", "dp-fermi"])
def test_gradients_may_be_of_a_network_on_pixels(
    gallery: Path, refuse: Callable[..., str], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    seen = []

    def fit(self: Any, X: Any, *_: Any, **__: Any) -> None:
        seen.append((self.architecture, X.shape[1:]))
        raise ValueError("seen")

    monkeypatch.setattr(METHODS[method].estimator, "fit", fit)
    words = TRAIN.replace("--teachers 15", f"--method {method}").replace("--margin 0.1 ", "")
    words = words.replace(f"{EXTRACTOR} --public public.csv", "--extractor none")
    words = words.replace("--out model", "--out second")
    refuse(*words.split())
    refuse(*words.split(), "--architecture", "small-resnet")
    words = ("convolutional", "small-resnet")
    assert seen == [(architecture_typed(word), (3, SIDE, SIDE)) for word in words]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--label color", "no column 'color', which --label names. Did you mean 'colour'?"),
        ("--sensitive plac", "no column 'plac', which --sensitive names. Did you mean 'place'?"),
        ("--extractor dlib", "extractor must be one of dlib-face, efficientnet-lite0"),
        ("--extractor gone.onnx", "There is no file gone.onnx"),
        ("--extractor resnet50=gone.pth", "There is no file gone.pth"),
        ("--extractor resnet=gone.pth", "resnet50=FILE or densenet121=FILE with weights"),
        ("--extractor halves.onnx+halves.onnx", "extractor joins different networks"),
        ("--extractor halves.onnx+resnet50=x.pth", "one of them in a file at most"),
        ("--extractor none --method pf-ld", "--method pf-ld reads features of pictures"),
        ("--extractor none --teacher tree", "--teacher tree reads features"),
        ("--method dpsgd --architecture small-resnet", "--architecture small-resnet reads pixels"),
        ("--method dpsgd --hidden 4 --extractor none", "--hidden is about networks on features"),
        ("--architecture small-resnet", "--method fair-shares does not read it"),
        ("--teacher small-resnet", "--teacher small-resnet reads pixels. Add --extractor none"),
        ("--drop path", "--drop is about the columns of a table"),
        ("--mean a,b", "--mean must be numbers, got 'a,b'"),
        ("--mode CMYK", "--mode must be one of"),
        ("--public private/0.png", "private/0.png"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_written(
    gallery: Path, refuse: Callable[..., str], words: str, message: str
) -> None:
    option, _ = words.split()[:2]
    asked = again()
    if option in asked:  # the last one counts, but for options that may be repeated
        at = asked.index(option)
        del asked[at : at + 2]
    if "pf-ld" in words:
        for gone in ("--public", "--teachers"):
            at = asked.index(gone)
            del asked[at : at + 2]
        asked += ["--protect", "attribute"]
    if "dpsgd" in words:
        at = asked.index("--teachers")
        del asked[at : at + 2]
    if "none" in words or "dlib" in words:
        for gone in ("--trained-on", "--licence"):
            at = asked.index(gone)
            del asked[at : at + 2]
    assert message in refuse(*asked, *words.split())
    assert not Path("second").exists()


def test_what_a_network_in_a_file_is_must_be_said(
    gallery: Path, refuse: Callable[..., str]
) -> None:
    asked = [word for word in again() if word not in ("--licence", "CC0")]
    assert "only you know: --trained-on 'ImageNet' --licence" in refuse(*asked)


def test_all_bad_pictures_of_all_tables_are_named_at_once(
    gallery: Path, refuse: Callable[..., str]
) -> None:
    Path("private/3.png").write_bytes(Path("private/3.png").read_bytes()[:50])
    image.new("CMYK", (SIDE, SIDE)).save("private/4.jpg")
    image.new("RGB", (9, 9)).save("public/2.png")
    table = pd.read_csv("private.csv")
    table.loc[[4, 5, 6, 7], "path"] = ["private/4.jpg", "../halves.png", None, "private/none.png"]
    table.to_csv("private.csv", index=False)
    line = refuse(*again())
    for words in (
        "Cut, or no picture: row 4.",
        "mode CMYK, which is neither 8-bit grey nor RGB: convert it: row 5.",
        "leaves the folder of the table: row 6.",
        "No path: row 7.",
        "No such file: row 8.",
        "public.csv cannot be used",
        "Another size than 12 x 12",
        "row 3.",
    ):
        assert words in line
    assert "none.png" not in line  # names of private files may tell something
    assert not Path("second").exists()


def test_tables_and_pictures_are_told_apart(gallery: Path, refuse: Callable[..., str]) -> None:
    bare = [word for word in again() if word != "--images"]
    assert "--extractor is about pictures. Add --images if private.csv lists them" in refuse(*bare)
    bare = ["train", "private.csv", "--public", "public.csv", *FAIR.split(), "--out", "second"]
    line = refuse(*bare)
    assert "the column 'path' names files of pictures. To learn from the pictures add" in line
    frame = pd.read_csv("private.csv").rename(columns={"path": "file"})
    frame.to_csv("private.csv", index=False)
    frame.to_csv("public.csv", index=False)
    assert "--images, after calling the column 'path'" in refuse(*bare)
    numbers = frame.assign(file=np.arange(len(frame)) % 7).rename(columns={"file": "size"})
    numbers.to_csv("private.csv", index=False)
    line = refuse(*again())
    assert "private.csv needs a column 'path' with files of pictures" in line
    assert "'size'" in line
    assert not Path("second").exists()


def test_one_group_alone_has_nothing_to_be_compared_with(
    gallery: Path, refuse: Callable[..., str]
) -> None:
    table = pd.read_csv("public.csv")
    table[table["place"] == "left"].to_csv("public.csv", index=False)
    assert "one group" in refuse(*again())


def test_private_pictures_are_never_shown(gallery: Path, refuse: Callable[..., str]) -> None:
    asked = f"train private.csv --images --public-fraction 0.3 --show-pictures 3 {EXTRACTOR} {FAIR}"
    line = refuse(*asked.split(), "--out", "second")
    assert "--show-pictures shows public pictures, and --public is missing" in line


def test_a_model_wants_the_extractor_and_the_size_of_its_training(
    gallery: Path, refuse: Callable[..., str], run: Callable[..., Any]
) -> None:
    network("other.onnx", scale=2.0)
    line = refuse("predict", "model", "new.csv", "--extractor", "other.onnx")
    assert re.search(r"reads the feature extractor halves 1 .* other\.onnx is the feature", line)
    Path("renamed.onnx").write_bytes(Path("halves.onnx").read_bytes())
    run("predict", "model", "new.csv", "--extractor", "renamed.onnx", "--out", "said.csv")
    line = refuse("predict", "model", "said.csv", "--extractor", "halves.onnx")
    assert "said.csv needs a column 'path'" in line
    squares("large", 10, 5, side=16).to_csv("large.csv", index=False)
    line = refuse("predict", "model", "large.csv", "--extractor", "halves.onnx")
    assert "large.csv are 16 x 16, and those of training are 12 x 12. Resize" in line
    run("predict", "model", "large.csv", "--extractor", "halves.onnx", "--size", "12")
    line = refuse("evaluate", "model", "new.csv", "--extractor", "halves.onnx")
    assert "no column 'colour'" in line


def test_a_network_in_a_file_is_kept_with_the_model(
    gallery: Path, refuse: Callable[..., str], run: Callable[..., Any]
) -> None:
    named = run("predict", "model", "new.csv", "--extractor", "halves.onnx").stdout
    kept = Path("model/extractor.onnx")
    assert kept.read_bytes() == Path("halves.onnx").read_bytes()
    Path("halves.onnx").unlink()
    assert run("predict", "model", "new.csv").stdout == named
    network(str(kept), scale=2.0)
    assert "extractor.onnx" in refuse("predict", "model", "new.csv")


def test_a_model_without_its_network_asks_for_the_file(
    gallery: Path, refuse: Callable[..., str], run: Callable[..., Any]
) -> None:
    load("model").save("saved")  # as from Python: of how pictures were read nothing is known
    line = refuse("predict", "saved", "new.csv")
    assert "'halves' 1 (digest" in line
    assert "not in its folder. Name its file: --extractor halves.onnx" in line
    run("predict", "saved", "new.csv", "--extractor", "halves.onnx", "--size", "12")


@pytest.mark.torch
def test_published_weights_and_joined_networks_have_words(
    gallery: Path, run: Callable[..., Any]
) -> None:
    pytest.importorskip("torch", reason="the extra torch is not installed")
    reading = PictureReading(
        extractor="halves.onnx", trained_on="nothing", licence="CC0", mean=(0.5,), sd=(0.25,)
    )
    assert (reading.file, reading.is_onnx) == (Path("halves.onnx"), True)
    joined = replace(reading, extractor="dlib-face+halves.onnx")
    assert (joined.file, joined.is_onnx) == (Path("halves.onnx"), True)
    with pytest.raises(ValueError, match="mean and sd are said of a network in a file of ONNX"):
        replace(reading, extractor="resnet50=weights.pth")
    weights = PictureReading(extractor="resnet50=a.pth", trained_on="nothing", licence="CC0")
    moved = replace(weights, extractor="resnet50=elsewhere/a.pth")
    assert weights.fingerprint == moved.fingerprint


def test_a_model_of_a_table_takes_no_options_about_pictures(
    model: Path, refuse: Callable[..., str]
) -> None:
    line = refuse("predict", "model", "test.csv", "--extractor", "dlib-face")
    assert "--extractor is about pictures, and this model reads the columns of a table" in line


def test_a_missing_extra_is_said_with_the_way_out(
    gallery: Path, refuse: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.datasets.features import dlib_face, networks

    monkeypatch.setattr(networks, "installed", lambda name: name != "onnxruntime")
    monkeypatch.setattr(dlib_face, "installed", lambda name: name != "dlib")
    line = refuse("predict", "model", "new.csv", "--extractor", "halves.onnx")
    assert 'pip install "evenhand[onnx]"' in line
    line = refuse(
        *["train", "private.csv", "--images", "--extractor", "dlib-face", "--public", "public.csv"],
        *f"{FAIR} --out second".split(),
    )
    assert 'pip install "evenhand[faces]"' in line


def test_the_options_stand_in_a_file_too(gallery: Path, run: Callable[..., Any]) -> None:
    Path("spec.toml").write_text(
        'private = "private.csv"\npublic = "public.csv"\nimages = true\nlabel = "colour"\n'
        'sensitive = ["place"]\nextractor = "halves.onnx"\ntrained_on = "nothing"\n'
        'licence = "CC0"\nepsilon = 8\ndelta = 1e-4\nmargin = 0.1\nn_teachers = 15\n'
        'out = "second"\n'
    )
    run("train", "spec.toml")
    assert load("second").extractor_ == load("model").extractor_


GRID = """
[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
label = "colour"
sensitive = "place"
images = true
extractor = "halves.onnx"
trained_on = "nothing"
licence = "CC0"

[[runs]]
method = ["fair-shares", "pate", "non-private"]
epsilon = 50
margin = 0.1
n_teachers = 15
"""


def test_a_frontier_makes_features_once(
    gallery: Path, run: Callable[..., Any], features_made: list[int]
) -> None:
    Path("grid.toml").write_text(GRID.replace("[[runs]]", 'features = "mine"\n[[runs]]'))
    said = json.loads(run("frontier", "grid.toml", "--out", "front", "--json").stdout)
    assert (said["n_new"], said["skipped"]) == (3, {})
    assert sum(features_made) == SIZES["private"] + SIZES["public"] + SIZES["test"]
    with RunStore("front/runs.db") as store:
        runs = store.runs()
    assert all(one.error < 0.35 for one in runs)
    (key,) = (one.key for one in runs if one.setting.method == "pate")
    run("frontier", "grid.toml", "--out", "chosen", "--train", key)
    run("predict", "chosen", "new.csv", "--extractor", "halves.onnx")
    network("halves.onnx", scale=2.0)
    again = json.loads(run("frontier", "grid.toml", "--out", "front", "--json").stdout)
    assert again["n_new"] == 3, "another network under the same name is another setting"


@pytest.mark.torch
@pytest.mark.slow
def test_a_frontier_on_pixels_is_one_of_networks(
    gallery: Path, run: Callable[..., Any], features_made: list[int]
) -> None:
    """About 8 seconds."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    for name, n in (("private", 60), ("public", 40)):  # that the networks are soon trained
        pd.read_csv(f"{name}.csv").head(n).to_csv(f"{name}.csv", index=False)
    grid = GRID.replace("halves.onnx", "none").replace(', "non-private"]', "]")
    grid = grid.replace('trained_on = "nothing"\nlicence = "CC0"\n', "")
    grid = grid.replace("n_teachers = 15", 'n_teachers = 2\nanswers = "labels"')
    Path("grid.toml").write_text(grid)
    said = json.loads(run("frontier", "grid.toml", "--out", "front", "--json").stdout)
    assert (said["n_new"], said["skipped"], features_made) == (2, {}, [])
    with RunStore("front/runs.db") as store:
        keys = {one.setting.method: one.key for one in store.runs()}
    run("frontier", "grid.toml", "--out", "chosen", "--train", keys["pate"])
    model = load("chosen")
    assert (model.extractor_, model.encoder_.shape) == (None, (3, SIDE, SIDE))
    assert model.predict(np.zeros((5, 3, SIDE, SIDE), dtype=np.uint8)).shape == (5,)
    Path("grid.toml").write_text(grid.replace("[[runs]]", 'network = "small-resnet"\n[[runs]]'))
    other = Grid.from_toml("grid.toml").settings()
    assert not {setting.key for setting in other} & set(keys.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images = true": "images = 3"}, "images must be true or false, got 3"),
        ({"images = true\n": ""}, "extractor, trained_on, licence is about pictures. Add images"),
        ({'"halves.onnx"': '"dlib-fac"'}, "extractor must be one of dlib-face"),
        (
            {'"halves.onnx"': '"none"', 'trained_on = "nothing"\nlicence = "CC0"': ""},
            "hands out pixels, and method = 'non-private' reads features. Name an extractor, or",
        ),
        (
            {
                '"halves.onnx"': '"none"',
                'trained_on = "nothing"\nlicence = "CC0"': "",
                ', "non-private"]': "]\nblind_margin = 0.1",
            },
            "the rule of blind_margin infers groups from features",
        ),
        (
            {"images = true": 'images = true\nnetwork = "small-resnet"'},
            "network = 'small-resnet' reads the pixels of pictures. Add extractor = 'none'",
        ),
        (
            {
                '"halves.onnx"': '"none"',
                'trained_on = "nothing"\nlicence = "CC0"': 'network = "small-resne"',
            },
            "network must be one of 'convolutional', 'small-resnet'",
        ),
        ({"images = true": 'images = true\ndrop = ["place"]'}, "drop are about tables"),
        ({"images = true": "images = true\nsize = 0"}, "size must be at least 1"),
        ({"images = true": "images = true\nsizes = 9"}, "Did you mean 'size'?"),
    ],
)
def test_a_grid_of_pictures_is_checked(
    gallery: Path, refuse: Callable[..., str], changes: dict[str, str], message: str
) -> None:
    text = GRID
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    Path("grid.toml").write_text(text)
    assert message in refuse("frontier", "grid.toml", "--out", "front")
    assert not Path("front").exists()


def test_a_set_of_pictures_needs_an_extractor(gallery: Path, refuse: Callable[..., str]) -> None:
    runs = '[[runs]]\nmethod = "pate"\nepsilon = 8\n'
    Path("grid.toml").write_text(f'[data]\nset = "utkface"\n{runs}')
    assert "Say which extractor makes their features" in refuse(
        "frontier", "grid.toml", "--out", "front"
    )
    Path("grid.toml").write_text(f'[data]\nset = "adult"\nextractor = "dlib-face"\n{runs}')
    assert "is about pictures" in refuse("frontier", "grid.toml", "--out", "front")


@pytest.mark.data
def test_real_pictures_are_split_by_a_seed_and_their_features_are_those_of_python(
    gallery: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        digits = load_color_mnist("test")
    except (DataNotAvailable, OSError) as error:
        pytest.skip(f"MNIST cannot be had: {error}")
    some = digits.take(np.arange(400))
    some = ImageData.of(some.X[:, :, 8:20, 8:20], some.y, some.sensitive_features)
    monkeypatch.setitem(loaded_rows.PICTURE_SETS, "color-mnist", lambda source: some)
    reading = PictureReading(
        extractor="halves.onnx", trained_on="nothing", licence="CC0", features="mine"
    )
    source = DataSource(name="color-mnist", pictures=reading)
    found = source.load(3)
    split = some.split(public=0.2, test=0.25, random_state=3)
    for rows, part in ((found.X, split.private), (found.X_public, split.public)):
        features = extract(part.X, extractor(), cache=False)
        assert np.array_equal(rows.values, features.values)
        assert rows.extractor == features.extractor
    assert found.y.tolist() == split.private.y.tolist()
    assert found.groups_public.tolist() == split.public.sensitive_features.tolist()
    assert found.groups_test.tolist() == split.test.sensitive_features.tolist()
