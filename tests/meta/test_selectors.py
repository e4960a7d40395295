"""Selectors: what they choose, and how bad ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.meta.selectors import SelectorError, parse_field_selector, parse_label_selector

OBJECTS = {
    "a": {"env": "prod", "tier": "web"},
    "b": {"env": "dev", "tier": "web"},
    "c": {"env": "qa", "n": "7"},
    "d": {"tier": ""},
    "e": {},
}
CHOSEN = {
    "": "abcde",
    "env=prod": "a",
    "env==prod": "a",
    " env = prod ": "a",
    "env!=prod": "bcde",
    "env=dev,tier=web": "b",
    "env in (prod, qa)": "ac",
    "env notin (prod,qa)": "bde",
    "tier": "abd",
    "!env": "de",
    "tier=": "d",
    "tier in (,web)": "abd",
    "tier in (web,)": "abd",
    "tier in (web,,)": "abd",
    "tier in ()": "d",
    "env=prod,env=dev": "",
    "n>6": "c",
    "n<6": "",
    "in=x": "",
    "env,": None,
}
REFUSED = {
    "env<>prod": "unable to parse requirement: found '>', expected: identifier",
    "env in (prod": "unable to parse requirement: found '', expected: ',' or ')'",
    "a b=c": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "=x": "found '=', expected: !, identifier, or 'end of string'",
    "a=b c": "found 'c', expected: ',' or 'end of string'",
    "a=b,": "found '', expected: identifier after ','",
    "env>x": "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
    "the value must be an integer",
}


@pytest.mark.parametrize("text", [text for text, chosen in CHOSEN.items() if chosen is not None])
def test_labels_choose(text: str) -> None:
    selector = parse_label_selector(text)
    assert "".join(name for name, labels in OBJECTS.items() if selector.matches(labels)) == CHOSEN[text]


@pytest.mark.parametrize("text", REFUSED)
def test_labels_refused(text: str) -> None:
    with pytest.raises(SelectorError) as fault:
        parse_label_selector(text)
    assert str(fault.value) == REFUSED[text]


@given(st.text(alphabet="ab !=<>(),intoi/.-9", max_size=24))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        selector = parse_label_selector(text)
    except SelectorError:
        return
    for labels in OBJECTS.values():
        selector.matches(labels)


FIELDS = {"metadata.name": "a", "spec.x": "b,c", "spec.e": ""}
FIELD_CASES = {
    "": True,
    "metadata.name=a": True,
    "metadata.name==a": True,
    "metadata.name!=a": False,
    "metadata.name=a,spec.e=": True,
    r"spec.x=b\,c": True,
    "metadata.name=b": False,
    ",": True,
}


@pytest.mark.parametrize("text", FIELD_CASES)
def test_fields_choose(text: str) -> None:
    assert parse_field_selector(text).matches(FIELDS.__getitem__) is FIELD_CASES[text]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        (r"a=b\x", "invalid field selector: invalid escape sequence: \\x"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_fields_refused(text: str, words: str) -> None:
    with pytest.raises(SelectorError) as fault:
        parse_field_selector(text)
    assert str(fault.value) == words
