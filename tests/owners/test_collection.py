"""What owners sent, checked together; and by how much one unit moves what is counted."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand._signing import PrivateKey
from evenhand.owners.collection import OwnerVotes, VotesRefused, classes_as
from evenhand.owners.digests import PublicRows
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import FloatNoise, NoisyHistogram
from evenhand.privacy.noise import UnitNoise

ROWS = pd.DataFrame({"age": [31, 44, 52], "town": ["a", None, "b"]})
NORTH, SOUTH = PrivateKey.make(), PrivateKey.make()


def file(owner: str = "north", votes: object = ("no", "yes", "no"), **more: object) -> VoteFile:
    given = {"classes": ["no", "yes"], "key": PrivateKey.make(), "X_public": ROWS} | more
    return VoteFile.cast(owner, votes, **given)  # type: ignore[arg-type]


# ---- sensitivity, by brute force over every neighbor -------------------------------------------


def neighbors_of(teachers: tuple[int, ...], unit: str, n_classes: int, options: int) -> object:
    """Every pair of votes on one row between which one unit differs."""
    n = sum(teachers)
    ends = np.cumsum(teachers)
    owner = np.searchsorted(ends, np.arange(n), side="right")
    for votes in itertools.product(range(options), repeat=n):
        for o in range(len(teachers)):
            mine = np.flatnonzero(owner == o)
            sets = [mine] if unit == "owner" else [np.array([t]) for t in mine]
            for moved in sets:
                for new in itertools.product(range(options), repeat=len(moved)):
                    other = np.array(votes)
                    other[moved] = new
                    yield np.array(votes), other


@pytest.mark.parametrize("unit", ["owner", "record"])
@pytest.mark.parametrize("may_abstain", [False, True])
@pytest.mark.parametrize(("teachers", "n_classes"), [((1, 2), 2), ((2, 2), 2), ((1, 2), 3)])
def test_one_unit_moves_a_count_by_what_is_charged(
    unit: str, may_abstain: bool, teachers: tuple[int, ...], n_classes: int
) -> None:
    names = [str(k) for k in range(n_classes)]
    row = pd.DataFrame({"x": [1]})

    def collected(votes: np.ndarray) -> OwnerVotes:
        said = [None if v == n_classes else names[v] for v in votes]
        ends = np.cumsum((0, *teachers))
        return OwnerVotes.of(
            [
                VoteFile.cast(
                    f"owner {o}",
                    np.array(said[ends[o] : ends[o + 1]], dtype=object)[:, None],
                    row,
                    classes=names,
                    unit=unit,
                    may_abstain=may_abstain,
                )
                for o in range(len(teachers))
            ],
            signed=False,
        )

    kept: dict[tuple[int, ...], OwnerVotes] = {}
    largest, of_counts, of_squares = 0, 0, 0
    for one, other in neighbors_of(teachers, unit, n_classes, n_classes + may_abstain):
        for votes in (one, other):
            if tuple(votes) not in kept:
                kept[tuple(votes)] = collected(votes)
        pair = [kept[tuple(one)], kept[tuple(other)]]
        change = pair[0].counts[0] - pair[1].counts[0]
        assert change.sum() == 0
        largest = pair[0].moves
        of_counts = max(of_counts, int(abs(change).max()))
        of_squares = max(of_squares, int((change**2).sum()))
    assert of_counts == largest  # neither more nor less: the price is tight
    # What the histogram charges for: one count of two, or two counts that each move as much.
    assert of_squares == 2 * largest**2
    histogram = NoisyHistogram(sigma=40.0, n_classes=n_classes)
    charged = histogram.mu_squared(UnitNoise(FloatNoise(), largest))
    released = of_counts**2 if n_classes == 2 else of_squares
    assert charged == pytest.approx(released / 40.0**2)


def test_probabilities_move_one_vote_as_labels_do() -> None:
    sure = np.array([[[1.0, 0.0]] * 3])
    one = file("a", sure, key=None)
    other = file("a", 1 - sure, key=None)
    assert one.scale == 1000
    assert (
        abs(one.parts - other.parts).max() == one.scale == OwnerVotes.of([one], signed=False).moves
    )
    clipped = file("a", sure, key=None, clip=0.1)
    assert clipped.parts[0, 0].tolist() == [900, 100]


def test_the_largest_owner_is_what_a_unit_of_owners_costs_and_a_record_is_one_vote() -> None:
    many = np.array([["no"] * 3] * 5, dtype=object)
    for unit, moved in (("owner", 5), ("record", 1)):
        votes = OwnerVotes.of([file("a", unit=unit), file("b", many, unit=unit)])
        assert (votes.moved, votes.n_teachers) == (moved, 6)
        assert votes.largest_share == pytest.approx(5 / 6)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_owners_that_lie_move_a_share_by_their_part_of_the_votes_and_no_more(share: float) -> None:
    rng = np.random.default_rng(0)
    n, lying = 20, round(20 * share)
    honest = rng.integers(2, size=(n, 3))

    def counted(votes: np.ndarray) -> np.ndarray:
        names = np.array(["no", "yes"], dtype=object)[votes]
        files = [file(f"owner {i}", names[i], key=None) for i in range(n)]
        return OwnerVotes.of(files, signed=False).counts / n

    worst = max(
        abs(counted(np.vstack([np.full((lying, 3), vote), honest[lying:]])) - counted(honest)).max()
        for vote in (0, 1)
    )
    assert 0 < worst <= lying / n + 1e-12  # sums of doubles round


# ---- what is refused, all of it at once --------------------------------------------------------


def test_every_bad_file_is_named_at_once(tmp_path: Path) -> None:
    good = [file(f"owner {i}") for i in range(3)]
    changed = dataclasses.replace(good[0], owner="changed")
    other_rows = file("other rows", X_public=ROWS.assign(age=[1, 2, 3]))
    fewer_rows = file("fewer rows", ["no"], X_public=ROWS.head(1))
    other_classes = file("other classes", ["n", "y", "n"], classes=["n", "y"])
    unsigned = file("unsigned", key=None)
    same_key = [file("first", key=NORTH), file("second", key=NORTH)]
    other_unit = file("other unit", unit="record")
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    cut = tmp_path / "cut.json"
    cut.write_text('{"format": "evenhand vo')
    with pytest.raises(VotesRefused) as refused:
        OwnerVotes.of(
            [
                *(*good, good[1], changed, other_rows, fewer_rows, other_classes, unsigned),
                *(*same_key, other_unit, broken, cut, tmp_path, tmp_path / "absent.json"),
            ]
        )
    said = str(refused.value)
    for words in (
        "the owner 'owner 1' has voted already",
        "'changed': the signature fails",
        "'other rows': it is about other public rows: other values in the column 'age'",
        "1 rows instead of 3",
        "its classes are 'n', 'y', not 'no', 'yes'",
        "'unsigned': it is not signed",
        "'second': it is signed with the key of 'first'",
        "'other unit': it protects replace one record",
        "broken.json is no file of votes: it does not begin with",
        "cut.json is no file of votes, or a part of one: it is not JSON. Make",
        "no file of votes at",
        f"at {tmp_path}. It is a folder: name its files",
    ):
        assert words in said
    assert "12 of them cannot be used" in said
    for good_one in ("'owner 0':", "'owner 2':"):
        assert f"votes of {good_one}" not in said
    assert OwnerVotes.of(good).owners == ("owner 0", "owner 1", "owner 2")


def test_a_key_that_is_known_is_compared() -> None:
    votes = [file("north", key=NORTH), file("south", key=NORTH)]
    keys = {"north": NORTH.public, "south": SOUTH.public}
    with pytest.raises(VotesRefused, match="not the one of 'south'"):
        OwnerVotes.of(votes, keys=keys)
    with pytest.raises(VotesRefused, match="no key is known of the owner 'west'"):
        OwnerVotes.of([file("west")], keys=keys)
    assert OwnerVotes.of(votes[:1], keys=keys).keys_known


def test_a_unit_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(VotesRefused, match="it protects each owner, and 'record' was asked for"):
        OwnerVotes.of([file()], unit="record")
    with pytest.raises(VotesRefused, match="There are no votes"):
        OwnerVotes.of([])


@pytest.mark.parametrize("unit", ["Owner", "OWNER", " owner", "owner "])
def test_an_owner_is_not_a_noun_of_its_own(unit: str) -> None:
    """It would be charged one vote of the several that an owner has."""
    with pytest.raises(ValueError, match="unit must be 'owner'"):
        file(votes=[["no"] * 3, ["yes"] * 3], unit=unit)


# ---- the file ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "votes",
    [
        ["no", "yes", None],
        np.array([["no", "yes", "yes"], ["no", "no", None]], dtype=object),
        np.array([[[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]]]),
    ],
)
def test_a_file_is_read_as_it_was_written_and_every_change_is_seen(
    votes: object, tmp_path: Path
) -> None:
    made = file("north", votes, may_abstain=True)
    made.write(tmp_path / "v.json")
    read = VoteFile.read(tmp_path / "v.json")
    assert read.signed()
    assert (read.parts == made.parts).all()
    values = json.loads((tmp_path / "v.json").read_text())
    changes = {
        "owner": "south",
        "unit": "record",
        "may_abstain": not values["may_abstain"],
        "votes": values["votes"][::-1] if len(values["votes"]) > 1 else None,
        "public": values["public"] | {"digests": {}},
    }
    for name, value in changes.items():
        if value is None:
            continue
        (tmp_path / "w.json").write_text(json.dumps(values | {name: value}))
        try:
            assert not VoteFile.read(tmp_path / "w.json").signed(), name
        except ValueError:
            assert name == "may_abstain"  # other parts of a vote: not even a file of votes
    assert str(made.parts) not in repr(made)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "does not begin with the format"),
        ({"version": 2}, "of version 2"),
        ({"votes": [[0, 5, 1]]}, "codes from 0 to 1"),
        ({"votes": [[0, 1]]}, "about 2 rows"),
        ({"votes": [[0, 1], [0]]}, "whole numbers"),
        ({"votes": [[0.5, 1, 1]]}, "whole numbers"),
        ({"classes": ["yes", "no"]}, "natural order"),
        ({"owner": "two\nlines"}, "one line"),
        ({"unit": "owner", "neighbors": "add or remove one"}, "goes with"),
        ({"signature": "?"}, "base64"),
        ({"key": "AAAA"}, "32 and 64 bytes"),
        ({"more": 1}, "its keys must be"),
    ],
)
def test_a_file_that_cannot_be_says_why(change: dict, words: str, tmp_path: Path) -> None:
    file().write(tmp_path / "v.json")
    values = json.loads((tmp_path / "v.json").read_text()) | change
    (tmp_path / "v.json").write_text(json.dumps(values))
    with pytest.raises(ValueError, match=words):
        VoteFile.read(tmp_path / "v.json")


def test_withheld_votes_are_refused_unless_they_were_announced() -> None:
    with pytest.raises(ValueError, match="may_abstain"):
        file("a", ["no", None, "no"])
    assert file("a", ["no", None, "no"], may_abstain=True).parts[0].tolist() == [
        [2, 0],
        [1, 1],
        [2, 0],
    ]
    # Whether somebody did is private: the scale follows from what was announced.
    assert file("a", ["no", "no", "no"], may_abstain=True).scale == 2


def test_rows_are_known_by_their_values_and_not_by_how_they_are_written() -> None:
    known = PublicRows.of(ROWS)
    again = pd.DataFrame({"town": ["a", None, "b"], "age": [31.0, 44.0, 52.0], "more": [0, 0, 0]})
    assert not PublicRows.of(again).differences(known)
    assert PublicRows.of(ROWS[["age"]]).differences(known) == "no column 'town'"
    assert PublicRows.of(ROWS.iloc[::-1]).differences(known)
    joined = pd.DataFrame({"age": [31, 44, 52], "town": ["", "a", "b"]})
    assert PublicRows.of(joined).differences(known)  # an empty text is not a missing one


def test_classes_are_numbers_where_they_can_be() -> None:
    assert classes_as(("0", "1"), None).tolist() == [0, 1]
    assert classes_as(("no", "yes"), None).tolist() == ["no", "yes"]
    assert classes_as(("False", "True"), [True, False]).tolist() == [False, True]
    assert classes_as(("False", "True"), None).tolist() == [False, True]
    with pytest.raises(ValueError, match="classes= names"):
        classes_as(("no", "yes"), ["n", "y"])
