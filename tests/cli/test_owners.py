"""Owners at the command line: keys, a model, votes, and one model of all votes."""

import json
import os
import shlex
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner, Result

import evenhand
from evenhand import Budget
from evenhand._signing import PrivateKey
from evenhand.cli import app
from evenhand.cli.owner import TREE
from evenhand.owners.collection import OwnerVotes, VotesRefused
from evenhand.owners.noisy_sums import noisy_share
from evenhand.owners.sum_files import RoundFile, ShareFile
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import DatabaseStore, Ledger

LABELS = "import sys, csv\nfor row in csv.DictReader(sys.stdin):\n    print({})\n"


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "z": rng.normal(size=n).round(3),
            "town": rng.choice(["a", "b"], n),
            "sex": rng.choice(["F", "M"], n),
            "person": [f"p{i // 2}" for i in range(n)],
        }
    )
    frame["repaid"] = np.where(frame["z"] + rng.normal(0, 0.3, n) > 0, "yes", "no")
    return frame


def run(words: str, exit_code: int = 0) -> Result:
    done = CliRunner().invoke(app, shlex.split(words))
    assert done.exit_code == exit_code, done.output
    return done


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve owners, each with its key, its model and its votes."""
    folder = tmp_path_factory.mktemp("house")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        table(300, 100).drop(columns=["repaid", "person"]).to_csv("public.csv", index=False)
        table(200, 101).to_csv("test.csv", index=False)
        Path("keys").mkdir()
        table(60, 0).to_csv("0.csv", index=False)
        for words in (
            "owner keys --owner o0",
            "owner train 0.csv --label repaid --drop sex --drop person --out m0 --seed 0",
            "owner vote public.csv --model m0 --owner o0 --out v0.json",
        ):
            run(words)
        Path("o0.pub.pem").rename("keys/o0.pub.pem")
        rows = pd.read_csv("public.csv")
        for i in range(1, 12):  # as the commands do
            own, key = table(60, i), PrivateKey.make()
            Path(f"keys/o{i}.pub.pem").write_bytes(key.public.pem)
            said = LogisticRegression().fit(own[["z"]], own["repaid"]).predict(rows[["z"]])
            votes = VoteFile.cast(f"o{i}", said, rows, classes=["no", "yes"], key=key)
            votes.write(Path(f"v{i}.json"))
    return folder


@pytest.fixture(autouse=True)
def _there(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(house)


ASKED = "--public public.csv --groups sex --margin .1 --epsilon 4 --delta 1e-3 --seed 0"
ALL = " ".join(f"v{i}.json" for i in range(12))


def test_votes_become_a_model_with_its_claim_and_report(tmp_path: Path) -> None:
    out = tmp_path / "model"
    done = run(
        f"aggregate {ALL} {ASKED} --keys keys --label repaid --test test.csv --out {out} --json"
    )
    said = json.loads(done.stdout)
    assert said["owners"]["unit"] == "owner"
    assert said["owners"]["keys_known"] is True
    assert [owner["owner"] for owner in said["owners"]["owners"]] == [f"o{i}" for i in range(12)]
    assert said["measured"]["error"] < 0.3  # twelve owners right in nine of ten
    run(f"verify {out}")
    assert "(neighbors: replace one owner)" in str(evenhand.load(out).guarantee_)
    assert "moves at most 1 votes on a row" in (out / "report.html").read_text()


def test_a_round_that_is_run_twice_is_charged_twice(tmp_path: Path) -> None:
    account = f"--ledger {tmp_path / 'ledger.db'} --account-epsilon 8"
    spent = []
    for i in range(2):
        done = run(f"aggregate {ALL} {ASKED} {account} --json --out {tmp_path / str(i)}")
        epsilon = json.loads(done.stdout)["account"]["epsilon_spent"]
        spent.append(Budget(epsilon=epsilon, delta=1e-3).mu_squared)
    assert spent[1] == pytest.approx(2 * spent[0], rel=1e-6)


def test_a_test_table_that_does_not_go_with_the_votes_is_refused_before_anything_is_spent(
    tmp_path: Path,
) -> None:
    table = pd.read_csv("test.csv")
    table.rename(columns={"z": "zz"}).to_csv(tmp_path / "wrong.csv", index=False)
    common = (
        f"aggregate {ALL} {ASKED} --keys keys --label repaid --out {tmp_path / 'model'} --json "
        f"--ledger {tmp_path / 'ledger.db'} --account-epsilon 4"
    )
    done = run(f"{common} --test {tmp_path / 'wrong.csv'}", exit_code=2)
    assert "has no column 'z'" in done.stderr
    done = run(f"{common} --test test.csv")
    assert json.loads(done.stdout)["account"]["epsilon_spent"] <= 4.0


def test_bad_votes_are_all_named_and_nothing_is_written(tmp_path: Path) -> None:
    changed = tmp_path / "changed.json"
    changed.write_text(Path("v1.json").read_text().replace('"owner": "o1"', '"owner": "x"'))
    done = run(f"aggregate {ALL} {changed} v3.json {ASKED} --out {tmp_path / 'model'}", exit_code=2)
    assert "changed.json: the signature fails" in done.stderr
    assert "v3.json: the owner 'o3' has voted already" in done.stderr
    assert "2 of them cannot be used" in done.stderr
    assert list(tmp_path.iterdir()) == [changed]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("aggregate v0.json --public public.csv --epsilon 1 --out m", "--groups and --margin"),
        (f"aggregate {ALL} {ASKED} --method pate --out m", "--method pate keeps no margin"),
        (f"aggregate {ALL} {ASKED} --test test.csv --out m", "--test needs --label"),
        (f"aggregate {ALL} {ASKED} --groups nope --out m", "'nope', which --groups names"),
        (f"aggregate {ALL} {ASKED} --unit record --out m", "'record' was asked for"),
        (f"aggregate {ALL} {ASKED} --keys m0 --out m", "no file NAME.pub.pem"),
        ("owner keys --owner o0 --out keys", "exists. A new key"),
        ("owner keys --owner ../o0", "must be a name that a file may have"),
        ("owner keys --owner ''", "must be a name that a file may have"),
        ("owner vote public.csv --owner o0 --out w.json", "Name what votes, in one way"),
        ("owner vote public.csv --owner nobody --model m0 --out w.json", "There is no key at"),
        (
            "owner vote public.csv --owner o0 --model m0 --out v0.json",
            "v0.json exists. Choose another name.",
        ),
        ("owner vote public.csv --owner o0 --model none.skops --out w.json", "no model at"),
        ("owner vote public.csv --owner o0 --command true --out w.json", "--classes is missing"),
        (
            "owner vote public.csv --owner o0 --command true --classes no,yes --out w.json",
            "answered 0 lines for 300 rows",
        ),
        (
            "owner vote public.csv --owner o0 --command ./absent --classes no,yes --out w.json",
            "cannot be run",
        ),
        ("owner vote test.csv --owner o0 --model m0 --drop z --out w.json", "do not have: 'z'"),
        ("owner train 0.csv --label repaid --teachers 20 --out m", "20 teachers cannot be"),
        ("owner train 0.csv --label nothing --out m", "nothing"),
        (
            "owner vote public.csv --owner o0 --model m0/teacher-001.skops --model "
            "./m0/teacher-001.skops --out w.json",
            "One model is named twice",
        ),
        (
            "owner vote public.csv --owner o0 --model m0 --classes ,no,yes --out w.json",
            "--classes must be names with commas between them, none of them empty or twice",
        ),
    ],
)
def test_bad_input_is_one_line_that_says_the_way_out(words: str, message: str) -> None:
    done = run(words, exit_code=2)
    assert message in done.stderr
    assert not Path("w.json").exists()
    assert not Path("m").exists()


def test_a_file_of_skops_is_refused_if_it_could_run_code_and_nothing_is_made(
    tmp_path: Path,
) -> None:
    import os

    import skops.io
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    rows = np.arange(8.0).reshape(-1, 1)
    model = make_pipeline(FunctionTransformer(), LogisticRegression()).fit(rows, rows[:, 0] > 3)
    model[0].func = os.getcwd
    skops.io.dump(model, tmp_path / "hostile.skops")
    done = run(
        f"owner vote public.csv --owner o0 --model {tmp_path / 'hostile.skops'} --out w.json",
        exit_code=2,
    )
    assert "getcwd" in done.stderr
    assert "--trust TYPE" in done.stderr


def test_a_command_and_a_file_of_onnx_vote_as_the_model_does(tmp_path: Path) -> None:
    helper = pytest.importorskip("onnx.helper", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    program = tmp_path / "label.py"
    program.write_text(LABELS.format("'yes' if float(row['z']) > 0 else 'no'"))
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["above"]),
        helper.make_node("Cast", ["above"], ["label"], to=7),
    ]
    graph = helper.make_graph(
        nodes,
        "sign",
        [helper.make_tensor_value_info("x", 1, [None, 1])],
        [helper.make_tensor_value_info("label", 7, [None, 1])],
        [helper.make_tensor("zero", 1, [1], [0.0])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "sign.onnx").write_bytes(made.SerializeToString())
    common = "owner vote public.csv --owner o0 --classes no,yes --drop town --drop sex"
    for how, name in (
        (f"--command 'python {program}'", "c.json"),
        (f"--onnx {tmp_path / 'sign.onnx'}", "o.json"),
    ):
        run(f"{common} {how} --out {tmp_path / name}")
    votes = [json.loads((tmp_path / name).read_text())["votes"] for name in ("c.json", "o.json")]
    truth = (pd.read_csv("public.csv")["z"] > 0).astype(int).tolist()
    assert votes == [[truth], [truth]]


def test_teachers_of_one_person_each_say_so_and_other_units_are_refused(tmp_path: Path) -> None:
    run(
        f"owner train 0.csv --label repaid --drop sex --unit person --teachers 3 --seed 0 "
        f"--out {tmp_path / 't'}"
    )
    vote = f"owner vote public.csv --owner o0 --model {tmp_path / 't'}"
    wrong = run(f"{vote} --unit record --out {tmp_path / 'w.json'}", exit_code=2)
    assert "one person reached one of them" in wrong.stderr
    run(f"{vote} --unit person --probabilities --out {tmp_path / 'v.json'}")
    said = json.loads((tmp_path / "v.json").read_text())
    assert (said["unit"], said["neighbors"]) == ("person", "add or remove one")
    assert np.array(said["votes"]).shape == (3, 300, 2)
    assert (np.array(said["votes"]).sum(axis=2) == 1000).all()


def test_trees_are_read_where_the_owner_says_that_they_are_its_own(tmp_path: Path) -> None:
    """Compiled code follows the indices of a tree: forged ones reach memory that is not theirs."""
    done = run(f"owner train 0.csv --label repaid --drop sex --kind trees --out {tmp_path / 't'}")
    assert TREE in done.stdout.replace("\n", "")
    refused = run(
        f"owner vote public.csv --owner o0 --model {tmp_path / 't'} --out w.json", exit_code=2
    )
    assert TREE in refused.stderr


PLANNED = "sums plan public.csv --owners 12 --classes yes,no --epsilon 4 --delta 1e-3 --dropouts 1"


@pytest.fixture(scope="module")
def summed(house: Path) -> Path:
    """A round: its plan, the shares of all owners, and the sum of eleven."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(house)
        run(f"{PLANNED} --out round.json")
        told = RoundFile.read(Path("round.json"))
        for i in range(12):
            file = VoteFile.read(f"v{i}.json")
            if i == 0:  # by its command, the others as that does
                done = run("owner noise v0.json --round round.json --out s0.json")
                # An aggregator may plan any epsilon: the owner is told before it sends its share.
                assert "costs each owner epsilon=4 at delta=0.001" in " ".join(done.output.split())
                continue
            counts = noisy_share(file, told.plan, told.plan.ledger())
            key = PrivateKey.make()
            Path(f"keys2/o{i}.pub.pem").parent.mkdir(exist_ok=True)
            Path(f"keys2/o{i}.pub.pem").write_bytes(key.public.pem)
            ShareFile.signed(file.owner, told, counts, key).write(Path(f"s{i}.json"))
        Path("keys2/o0.pub.pem").write_bytes(Path("keys/o0.pub.pem").read_bytes())
        shares = " ".join(f"s{i}.json" for i in range(11))
        done = run(f"sums add {shares} --round round.json --keys keys2 --out sums.json")
    return house


def test_the_aggregator_holds_the_sum_of_votes_and_noise_and_makes_a_model_of_it(
    summed: Path, tmp_path: Path
) -> None:
    told = RoundFile.read(Path("round.json"))
    if os.name == "posix":
        for private in ("v0.json", "s0.json", "o0.key.pem"):
            assert Path(private).stat().st_mode & 0o777 == 0o600
    held = np.array(json.loads(Path("sums.json").read_text())["counts"])
    votes = [VoteFile.read(f"v{i}.json").parts.sum(axis=0)[:, 1:] for i in range(11)]
    # Eleven shares of sigma^2 / 11; the variance of 300 draws is within 6 standard deviations.
    spread = (held - np.sum(votes, axis=0)).var() / told.plan.sigma**2
    assert abs(spread - 1) < 6 * np.sqrt(2 / 300)
    out = tmp_path / "model"
    asked = "--public public.csv --groups sex --margin .1 --seed 0"
    done = run(f"aggregate --sums sums.json --round round.json {asked} --out {out} --json")
    said = json.loads(done.stdout)
    assert (said["epsilon"], said["delta"], said["unit"]) == (4.0, 1e-3, "owner")
    assert said["owners"]["n_owners"] == 11
    claim = str(evenhand.load(out).guarantee_) + "".join(evenhand.load(out).guarantee_.warnings)
    assert "nobody holds votes without noise, if whoever added up the shares keeps them" in claim
    assert "a person with several owners counts as all of them" in claim
    assert "moves a share by that much at most" not in (out / "report.html").read_text()


def test_a_round_that_is_asked_twice_is_paid_twice_or_refused(summed: Path, tmp_path: Path) -> None:
    """The share of the first time is not drawn again: two of them would halve the noise."""
    done = run(f"owner noise v0.json --round round.json --out {tmp_path / 's.json'}", exit_code=2)
    assert "The account 'rounds of o0' has spent epsilon=" in done.stderr
    assert "If you have one of before, send that file" in done.stderr
    assert "queries" not in done.stderr
    assert not (tmp_path / "s.json").exists()
    richer = "--account-epsilon 9"
    store = f"--ledger {tmp_path / 'own.db'}"
    spent = []
    for i in range(2):
        out = tmp_path / f"{i}.json"
        run(f"owner noise v0.json --round round.json {richer} {store} --out {out}")
        account = Ledger(
            Budget(epsilon=9, delta=1e-3),
            store=DatabaseStore(str(tmp_path / "own.db")),
            account="rounds of o0",
            unit="owner",
        )
        spent.append(account.spent)
    assert spent[1] == pytest.approx(2 * spent[0])
    owners = f"--ledger {tmp_path / 'owners.db'} --account-epsilon 5 --out"
    run(f"{PLANNED} {owners} {tmp_path / 'one.json'}")
    told = [RoundFile.read(path) for path in (Path("round.json"), tmp_path / "one.json")]
    assert told[0].plan == told[1].plan
    assert told[0].digest != told[1].digest  # another round, though all its numbers are the same
    run(f"{PLANNED} {owners} {tmp_path / 'two.json'}")
    # What is left of 5 after 4 is little, and is what the second round gets.
    assert RoundFile.read(tmp_path / "two.json").plan.sigma > 1.2 * told[1].plan.sigma


def test_votes_that_their_owner_did_not_sign_so_get_no_share_and_cost_nothing(
    summed: Path, tmp_path: Path
) -> None:
    changed = json.loads(Path("v0.json").read_text())
    changed["votes"][0][0] = 1 - changed["votes"][0][0]
    (tmp_path / "v0.json").write_text(json.dumps(changed))
    other = tmp_path / "other.pem"
    other.write_bytes(PrivateKey.make().pem)
    store = f"--round round.json --ledger {tmp_path / 'own.db'} --out {tmp_path / 's.json'}"
    for words in (f"{tmp_path / 'v0.json'}", f"v0.json --key {other}"):
        done = run(f"owner noise {words} {store}", exit_code=2)
        assert "Nothing was charged" in done.stderr
        assert not (tmp_path / "s.json").exists()
        assert not (tmp_path / "own.db").exists()


def test_bad_shares_are_all_named_and_nothing_is_added(summed: Path, tmp_path: Path) -> None:
    share = json.loads(Path("s1.json").read_text())
    changes = {
        "counts": {"counts": [[0]] * 300},
        "round": {"round": "0" * 64},
        "signature": {"signature": "00" * 64},
        "shape": {"counts": [[0, 1], [2]]},
        "other": {"owner": "o99"},
        "list": {"owner": ["o1"]},
        "large": {"counts": [[10**6]] * 300},
    }
    for name, change in changes.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(share | change))
    (tmp_path / "text.json").write_text("votes")
    files = " ".join(str(tmp_path / f"{name}.json") for name in (*changes, "text", "absent"))
    done = run(
        f"sums add s1.json s1.json {files} --round round.json --keys keys2 "
        f"--out {tmp_path / 'sums.json'}",
        exit_code=2,
    )
    for words in (
        "'o1' is there twice",
        "counts.json: its signature fails",
        "round.json: it is of another round",
        "signature.json: its signature fails",
        "shape.json: counts must be whole numbers",
        "no key of 'o99' is known",
        "list.json: owner must be a text",
        "large.json: its counts lie beyond all",
        "text.json is no evenhand noisy share",
        "no file at",
    ):
        assert words in done.stderr, words
    assert not (tmp_path / "sums.json").exists()
    few = run(
        f"sums add s0.json s1.json --round round.json --keys keys2 --out {tmp_path / 'sums.json'}",
        exit_code=2,
    )
    said = " ".join(few.stderr.split())
    assert "2 of 12 owners answered, and the noise protects from 11 on" in said
    assert "Wait for 9 more" in said  # the round is paid for, and not lost yet


def test_the_noise_of_a_round_is_said_in_votes_where_a_vote_has_parts(tmp_path: Path) -> None:
    said = [
        " ".join(run(f"{PLANNED} {abstain} --out {tmp_path / name}").output.split())
        for abstain, name in (("", "whole.json"), ("--may-abstain", "parts.json"))
    ]
    noise = [float(words.split("noise of ")[1].split(" votes")[0]) for words in said]
    assert noise[0] == noise[1]  # one vote of many is as well hidden, in twice as many parts


def test_what_the_table_of_owners_leaves_out_is_said(tmp_path: Path) -> None:
    rows = pd.read_csv("public.csv")
    for i in range(21):
        said = np.where(rows["z"] > 0, "yes", "no")
        file = VoteFile.cast(f"n{i}", said, rows, classes=["no", "yes"])
        file.sign(PrivateKey.make()).write(tmp_path / f"n{i}.json")
    files = " ".join(str(tmp_path / f"n{i}.json") for i in range(21))
    done = run(
        f"aggregate {files} --public public.csv --method pate --epsilon 50 --out {tmp_path / 'm'}"
    )
    assert "and 1 owner more: --json lists all" in " ".join(done.output.split())


def test_a_key_is_found_by_its_owners_name_however_its_letters_are_composed(
    tmp_path: Path,
) -> None:
    key, rows = PrivateKey.make(), pd.read_csv("public.csv")
    for form, other in (("NFC", "NFD"), ("NFD", "NFC")):
        owner = unicodedata.normalize(form, "Zürich")
        keys = {unicodedata.normalize(other, owner): key.public}
        file = VoteFile.cast(owner, ["no"] * 300, rows, classes=["no", "yes"], key=key)
        assert OwnerVotes.of([file], keys=keys).keys_known
        with pytest.raises(VotesRefused, match="is not the one of"):
            OwnerVotes.of([file], keys={owner: PrivateKey.make().public} | keys)


def test_shares_that_somebody_made_up_do_not_stand_for_the_noise_of_owners(
    summed: Path, tmp_path: Path
) -> None:
    """Ten shares of zeros beside one owner's would leave it a noise sqrt(11) times too small."""
    told = RoundFile.read(Path("round.json"))
    empty = np.zeros((300, 1), dtype=np.int64)
    for i in range(1, 11):
        forged = ShareFile.signed(f"o{i}", told, empty, PrivateKey.make())
        forged.write(tmp_path / f"f{i}.json")
    files = " ".join(str(tmp_path / f"f{i}.json") for i in range(1, 11))
    asked = f"sums add s0.json {files} --round round.json --out {tmp_path / 'sums.json'}"
    done = run(f"{asked} --keys keys2", exit_code=2)
    assert "it is signed by another key than that of 'o1'" in done.stderr
    done = run(asked, exit_code=2)
    assert "--keys" in done.stderr
    assert not (tmp_path / "sums.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("aggregate --public public.csv --out m --groups sex --margin .1", "got neither"),
        ("aggregate v0.json --sums sums.json --public public.csv --out m", "got both"),
        ("aggregate --sums sums.json --public public.csv --out m", "--sums needs --round"),
        (
            "aggregate --sums sums.json --round round.json --epsilon 3 --keys keys --public "
            "public.csv --out m",
            "--epsilon, --keys were settled then",
        ),
        ("aggregate v0.json --public public.csv --out m", "--epsilon is missing"),
        (
            "aggregate --sums round.json --round round.json --public public.csv --method pate "
            "--out m",
            "is no evenhand noisy sums",
        ),
        (
            "aggregate --sums sums.json --round v0.json --public test.csv --method pate --out m",
            "is no evenhand round",
        ),
        ("owner noise v0.json --round v1.json --out m", "is no evenhand round"),
        (f"{PLANNED.replace('yes,no', 'yes')} --out m", "class"),
        (f"{PLANNED.replace('yes,no', ',yes')} --out m", "got ',yes'"),
        (f"{PLANNED.replace('yes,no', 'no,yes,no')} --out m", "none of them empty or twice"),
    ],
)
def test_what_does_not_go_with_a_round_of_sums_is_said(summed: Path, words: str, said: str) -> None:
    done = run(words, exit_code=2)
    assert said in done.stderr
    assert not Path("m").exists()
