"""A run survives JSON, and its key tells settings apart."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.frontier import Run
from evenhand.frontier.run import Setting

from .conftest import make_run

ARGUMENTS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    max_size=4,
)


def setting(**changes: Any) -> Setting:
    usual: dict[str, Any] = {
        "data": "adult",
        "fingerprint": "f",
        "method": "fairpate",
        "arguments": {"epsilon": 3.0, "margin": 0.05},
        "seed": 0,
    }
    return Setting(**(usual | changes))


@given(ARGUMENTS, st.integers(0, 2**31))
def test_a_setting_survives_json_with_its_key(arguments: dict[str, Any], seed: int) -> None:
    one = setting(arguments=arguments, seed=seed)
    again = Setting.from_dict(json.loads(json.dumps(one.to_dict())))
    assert again == one
    assert again.key == one.key
    # The order in which arguments were written does not matter.
    assert setting(arguments=dict(reversed(arguments.items())), seed=seed).key == one.key


def test_a_setting_says_its_arguments_in_words() -> None:
    asked = setting(arguments={"margin": 0.1, "degree": 2, "epsilon": 3.0, "balance": "no"})
    assert asked.words() == {"balance": "no", "degree": "2", "epsilon": "3", "margin": "0.1"}


def test_every_part_of_a_setting_changes_its_key() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"data": "credit"},
        {"fingerprint": "g"},
        {"method": "pate"},
        {"arguments": {"epsilon": 3.0}},
        {"arguments": {"epsilon": 3.0, "margin": 0.1}},
        {"seed": 1},
    ]
    keys = {setting(**change).key for change in changes}
    assert len(keys) == len(changes)
    assert setting(seed=5).without_seed() == setting().without_seed()
    assert setting(method="pate").without_seed() != setting().without_seed()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"epsilon": math.inf},
        {"gap": math.nan, "gap_interval": (math.nan, math.nan)},
        {"delta": math.nan, "seconds": math.nan, "data_kind": "published"},
        {"gap_name": "equalized_odds_pairwise", "data_kind": "synthetic stand-in"},
    ],
)
def test_a_run_survives_json(changes: dict[str, Any]) -> None:
    one = make_run(**changes)
    written = json.dumps(one.to_dict(), allow_nan=False)
    assert json.dumps(Run.from_dict(json.loads(written)).to_dict()) == written
    assert Run.from_dict(json.loads(written)).epsilon == one.epsilon


def test_what_is_no_run_is_refused() -> None:
    with pytest.raises(ValueError, match=r"error must lie in \[0, 1\], got error=1.5"):
        make_run(error=1.5)
    with pytest.raises(ValueError, match="epsilon must be greater than 0"):
        make_run(epsilon=0.0)
    with pytest.raises(ValueError, match="measured_on"):
        make_run(measured_on="somewhere")
    with pytest.raises(ValueError, match="Did you mean 'equalized_odds_rest'"):
        make_run(gap_name="equalised_odds_rest")
    with pytest.raises(ValueError, match="data_kind must be one of 'private', 'public stand-in'"):
        make_run(data_kind="public")
    with pytest.raises(TypeError, match="plain values, got teachers="):
        setting(arguments={"teachers": [1, 2]})
    with pytest.raises(ValueError, match=r"key 'notion' .* It is now called 'fairness'"):
        setting(arguments={"notion": "error-parity"})
    with pytest.raises(ValueError, match="finite numbers, got epsilon=inf"):
        setting(arguments={"epsilon": math.inf})


def test_a_run_kept_before_there_were_yardsticks_is_read_and_knows_none(run_of: Any) -> None:
    kept = run_of(majority_error=0.25, error_without_margin=0.16, no_better=False).to_dict()
    assert Run.from_dict(json.loads(json.dumps(kept))).majority_error == 0.25
    for name in ("majority_error", "error_without_margin", "no_better"):
        del kept[name]
    old = Run.from_dict(kept)
    assert math.isnan(old.majority_error)
    assert old.no_better is None
