from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.payloads.exact_json import MASK, dumps, loads, masked

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=4), inside, max_size=4),
    max_leaves=15,
)


def test_numbers_keep_their_digits() -> None:
    text = '{"a":1.10,"b":1e400,"c":9007199254740993,"d":[-0.0,1E+2]}'
    assert dumps(loads(text)) == text


@given(JSON)
def test_a_value_survives(value: object) -> None:
    assert json.loads(dumps(loads(json.dumps(value)))) == value


@pytest.mark.parametrize("text", ["", "{", "NaN", "Infinity", "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text)


def test_too_many_levels_are_not_written() -> None:
    deep = loads("[" * 300 + "]" * 300)
    with pytest.raises(ValueError, match="levels"):
        dumps(deep)


def test_masks_follow_names_stars_and_arrays() -> None:
    value = loads('{"card":{"number":"4","cvc":"1"},"people":[{"mail":"a"},{"mail":null,"age":3}],"x":1}')
    assert dumps(masked(value, ("card", "*"))) == dumps(value).replace('"4"', f'"{MASK}"').replace('"1"', f'"{MASK}"')
    assert loads(dumps(masked(value, ("people", "mail"))))["people"] == [{"mail": MASK}, {"mail": None, "age": "3"}]
    assert masked(value, ("nothing", "here")) == value


def test_a_value_that_ends_early_is_masked_too() -> None:
    assert masked(loads('{"card":"4111"}'), ("card", "number")) == {"card": MASK}
    assert masked(loads('"a@b.c"'), ("mail",)) == MASK
    assert masked(loads('["a@b.c"]'), ("mail",)) == [MASK]


@pytest.mark.parametrize("levels", [300, 600, 900])
@pytest.mark.parametrize("form", ["[{}]", '{{"a":{}}}'])
def test_masks_refuse_what_is_too_deep(levels: int, form: str) -> None:
    before, after = form.format("|").split("|")
    deep = before * levels + "1" + after * levels
    with pytest.raises(ValueError, match=r"nested|levels"):
        dumps(masked(loads(deep), ("a",) * 1000))


def test_a_name_with_dots_is_found_by_its_dots() -> None:
    value = loads('{"card.number":"4","card":{"number":"5","number.old":"6"},"card.x":1}')
    assert masked(value, ("card", "number")) == {
        "card.number": MASK,
        "card": {"number": MASK, "number.old": "6"},
        "card.x": "1",
    }
    assert masked(value, ("card", "number", "old"))["card"]["number.old"] == MASK
