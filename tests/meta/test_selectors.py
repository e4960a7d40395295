"""Selectors: what they choose, and how bad ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.meta.selectors import (
    FEW,
    FieldSelector,
    FieldTerm,
    LabelSelector,
    Requirement,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)

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


words = st.sampled_from("abcdef")
values = st.lists(st.sampled_from(["", "1", "2", "x", "y", *(f"v{n:02}" for n in range(12))]), max_size=14)
requirements = st.one_of(
    st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(sorted(set(values)))),
        words,
        st.sampled_from(["in", "notin"]),
        values.filter(bool),
    ),
    st.builds(Requirement, words, st.sampled_from(["exists", "!"])),
    st.builds(lambda key, sign: Requirement(key, sign, ("1",)), words, st.sampled_from("<>")),
)
terms = st.builds(FieldTerm, words, st.sampled_from("xyz"), st.booleans())


@given(
    st.lists(requirements, max_size=3 * FEW),
    st.dictionaries(words, st.sampled_from(["", "1", "2", "x", "v03"])),
)
def test_many_requirements_choose_what_each_of_them_does(wanted, labels):
    expected = all(LabelSelector((each,)).matches(labels) for each in wanted)
    assert LabelSelector(tuple(wanted)).matches(labels) == expected
    for each in wanted:
        if each.operator in ("in", "notin"):
            listed = labels.get(each.key) in each.values
            assert each.matches(labels) == (listed if each.operator == "in" else not listed)


@given(st.lists(terms, max_size=3 * FEW), st.dictionaries(words, st.sampled_from("xyz")))
def test_many_terms_choose_what_each_of_them_does(wanted, fields):
    def value_of(name: str) -> str:
        return fields.get(name, "")

    expected = all(FieldSelector((each,)).matches(value_of) for each in wanted)
    assert FieldSelector(tuple(wanted)).matches(value_of) == expected


def test_an_object_costs_what_its_own_labels_cost():
    """A list by thousands of requirements asked each object about each of them."""

    class Counted(dict):
        asked = 0

        def get(self, key, default=None):
            Counted.asked += 1
            return super().get(key, default)

    selector = parse_label_selector(",".join(f"a{n}!=b" for n in range(6_000)))
    assert selector.matches(Counted(a1="c", n="1"))
    assert Counted.asked < 10
    asked: list[str] = []
    parse_field_selector(",".join(f"metadata.name!=a{n}" for n in range(6_000))).matches(
        lambda name: asked.append(name) or "b"  # type: ignore[func-returns-value]
    )
    assert asked == ["metadata.name"]
