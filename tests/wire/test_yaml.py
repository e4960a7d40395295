"""YAML bodies: the rules of YAML 1.1, and hostile documents."""

import json

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.wire import yaml
from apimachinery.wire.block_yaml import read_block
from apimachinery.wire.json import DecodeFault
from apimachinery.wire.yaml import decode, encode

SCALARS = {
    "y": True,
    "n": False,
    "On": True,
    "off": False,
    "yES": "yES",
    "010": 8,
    "0o10": 8,
    "0x1F": 31,
    "0b11": 3,
    "08": 8,
    "1_000": 1000,
    "1e3": 1000,
    "1.5": 1.5,
    ".5": 0.5,
    "1:30": "1:30",
    "2020-01-01": "2020-01-01",
    "~": None,
    "null": None,
    "'y'": "y",
    '"010"': "010",
    "!!str 1": "1",
    "!!int '7'": 7,
    "!!binary aGk=": "hi",
    "-": [None],
    "+1": 1,
    "v1": "v1",
    "1.2.3": "1.2.3",
}


@pytest.mark.parametrize("text", SCALARS)
def test_scalar(text: str) -> None:
    assert decode(text.encode()) == SCALARS[text]


DOCUMENTS = {
    "a: &x {e: 1}\nb: *x": {"a": {"e": 1}, "b": {"e": 1}},
    "a: &x {e: 1, h: 3}\ng: {<<: *x, h: 2}": {"a": {"e": 1, "h": 3}, "g": {"h": 2, "e": 1}},
    "1: z\ntrue: q\n1.5: s": {"1": "z", "true": "q", "1.5": "s"},
    "a: 1\n---\nb: 2": {"a": 1},
    "a: =\nb: <<\n=: 1": {"a": "=", "b": "<<", "=": 1},
    "": None,
    "# nothing\n": None,
}


@pytest.mark.parametrize("text", DOCUMENTS)
def test_document(text: str) -> None:
    assert decode(text.encode()) == DOCUMENTS[text]


def test_aliases_do_not_share() -> None:
    value = decode(b"a: &x {e: [1]}\nb: *x")
    value["a"]["e"].append(2)
    assert value["b"] == {"e": [1]}


def test_duplicates_are_told() -> None:
    told: list[str] = []
    assert decode(b"a: 1\nb: 2\na: 3\n", told) == {"a": 3, "b": 2}
    assert told == ['line 3: key "a" already set in map']


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (new, new, b",".join([b"*%c" % old] * 10))
    for old, new in zip(b"abcdefgh", b"bcdefghi", strict=False)
)
FAULTS = {
    b"apiVersion: v1\nkind: X\n  metadata: x: y\n": "yaml: line 3: mapping values are not allowed in this context",
    b"a: [1,\nb: 2": "yaml: line 2: did not find expected ',' or ']'",
    b"a: *nope": "yaml: unknown anchor 'nope' referenced",
    b"a: \xff": "yaml: invalid leading UTF-8 octet",
    b"a: .nan": "json: unsupported value: NaN",
    BOMB: "yaml: document contains excessive aliasing",
    b"[" * 5_000: "yaml: exceeded max depth",
    b"a: &x [*x]": "yaml: unknown anchor 'x' referenced",
}


@pytest.mark.parametrize("data", FAULTS)
def test_fault(data: bytes) -> None:
    with pytest.raises(DecodeFault) as fault:
        decode(data)
    assert str(fault.value) == FAULTS[data]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "y", "1"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_round_trip(value: object) -> None:
    assert decode(encode(value)) == value


def test_the_escaped_slash_of_json_is_refused_as_go_does() -> None:
    assert decode(rb'a: "x\\/y"') == {"a": "x\\/y"}
    with pytest.raises(DecodeFault, match=r"^yaml: line 3: found unknown escape character$"):
        decode(b'b: 1\na: "x\n  \\/y"\n')


KEYS = st.sampled_from(["a", "b", "<<", "=", "y", "1", "", "f:env", "k" * 1020, "k" * 1030]) | st.text(
    max_size=4
)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["", "on", "1e3", "~", "a: b", "# c", "a/b", "x\ny", "\t", "\x7f", "\x85", "\u2028", "v" * 1100]
    )
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(
    value=st.dictionaries(KEYS, JSON_VALUES, max_size=4),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1, "\t"]),
    doubled=st.sampled_from([b"", b'"a":1,', b'"a":{"b":1},']),
    behind=st.sampled_from([b"", b"\n", b" # c", b"\n...", b"\n---\nx: 1\n", b"}"]),
)
def test_json_says_the_same_whichever_reader_takes_it(
    value: object, ascii_only: bool, indent: str | int | None, doubled: bytes, behind: bytes
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    data = b"{" + doubled + text.encode("utf-8", "replace")[1:] + behind
    outcomes = []
    for read in (decode, lambda data, duplicates: yaml._documents(data, duplicates, 1)[0]):
        duplicates: list[str] = []
        try:
            outcomes.append((repr(read(data, duplicates)), duplicates))
        except DecodeFault as fault:
            outcomes.append((str(fault), duplicates))
    assert outcomes[0] == outcomes[1]


def test_deep_json_is_refused_as_deep_yaml() -> None:
    with pytest.raises(DecodeFault, match="exceeded max depth"):
        decode(b'{"a":' * 600 + b"1" + b"}" * 600)


def by_events(data: bytes) -> object:
    return yaml._documents(data, None, 1)[0]


WORDS = st.sampled_from(
    ["a", "b", "key", "on", "null", "~", "1", "-1", "010", "1e3", ".5", "x y", "a:b", "http://x/y", "a: b", "a #b",
     "#c", "-", "- a", "? a", "[]", "{}", "[1]", "{a: 1}", '"q"', '"q\\n"', "'s'", "'it''s'", '"a: b"', "|", ">-", "&x",
     "*x", "!!str 1", "---", "...", "a:", ":", "<<", "=", "%", "@x", "`", ",", "a,b", "!", "x ", "x#y", "é", "\t", "",
     "|-", "|+", ">", ">+", "| # c", "|2", "x # c", "'x' # c", '"x', 'x"', "'x", "x'", "x''y'", '"x\\', '"\\u00e9\\/"',
     '"\\"q\\\\"', "--x", "-x", "~", "~x", "^(x)+$", "(x)", "+", "\\x", "[a, 'b', 1, on]", "[a,]", "[a b ,c]", "[a:b]",
     "[]x", "  x", "x  ", " ", "\u2028", "\ufeff", "\x85", "\xa0", "\U0001f600"]
)  # fmt: skip
LINES = st.builds(
    lambda indent, dashes, key, value: f"{' ' * indent}{'- ' * dashes}{key}{': ' if key else ''}{value}",
    st.integers(0, 4), st.sampled_from([0, 0, 0, 1, 1, 2]), WORDS | st.sampled_from(["", "a", "b", "c"]), WORDS,
)  # fmt: skip


@given(st.lists(LINES, min_size=1, max_size=6).map("\n".join))
def test_plain_lines_say_what_they_say_by_events(text: str) -> None:
    plain = read_block(text.encode(), yaml.resolve, yaml._WORDS)
    if plain is not None:
        assert repr(plain) == repr(by_events(text.encode()))


@given(st.dictionaries(KEYS, JSON_VALUES, max_size=4), st.booleans())
def test_dumped_blocks_say_what_they_say_by_events(value: object, flow: bool) -> None:
    data = pyyaml.safe_dump(value, default_flow_style=None if flow else False).encode()
    plain = read_block(data, yaml.resolve, yaml._WORDS)
    if plain is not None:
        assert repr(plain) == repr(by_events(data))


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb:\n  c: x\n  d:\n  - 1\n  - e: 2\n    f: []\n  g: {}\n",
        "# first\n\na:\n- b: 'x'\n  c:\n\n  # of d\n  d: \"y\"\n- - 1\n  - 2\n-   f: 3\n    g: h i\n",
        "metadata:\n  labels:\n    app.kubernetes.io/name: web\n    'quoted key': http://x:80/y\nstatus:\n",
        "  a: 1\n  b: on\n",
        "a: b\n  c\n\n\n  - d\n\ne:\n  f\n   'g'\nh: 1\n   2\n",
        "a: |\n  b\n\n   c\n\n\nd: |-\n\n  e\n  \nf:\n- |+\n g\n\n- h: >\n    i\n    j\n\n\n    k\n     l\n    m\n\n\n",
        "a: >-\n\n   b\n\n     c\n\n   d\n   e\nf: >+\n  g\n\n",
        "a: 'b\n  it''s\n\n\n  c '\nd: \"e \\\n  \\ f\\n\n  \\u20AC\\\"\n  \"\ne:\n  'f'\n",
        "a: [] # b\nc: # d\n  e: f # g\nh: 'i' # j\nk: | # l\n  # m\n",
        "a: [b, \"c\", 'd', 1, on, e f ]\nb: [ ]\nc: {}\nd: [true]\n",
        "a: \u00e9\u2026\u4e2d\U0001f600 \u2013 x\nb: |\n  \u201cq\u201d\n",
        "a: --b\nc: ^(d)$\ne: (f)\ng: ~\nh: ~i\nj: +1\nk: -\u002dl\nm: <n>\n",
    ],
)
def test_plain_documents_are_read_by_lines(text: str) -> None:
    plain = read_block(text.encode(), yaml.resolve, yaml._WORDS)
    assert plain is not None
    assert repr(plain) == repr(by_events(text.encode()))


@pytest.mark.parametrize(
    "text",
    ["a: 1\na: 2\n", "a: 1\n  b: 2\n", "a: 1\n- b\n", "- 1\n", "a: 1\n---\nb: 2\n", "on: 1\n", "a: b: c\n", "a:\t1\n",
     "-\n", "x\n", "  a: 1\n b: 2\n", "a: [[1]]\n", "a: [1,]\n", "a: {b: 1}\n", "a: |2\n  b\n", "a: |\nb: 1\n",
     "a: |\n  b", "a: |\n   \n  b\n", "a: b # c\n  d\n", "a: b\n# c\n  d\n", "a: b\n  c: d\n", "a: b\n  - c: d\n",
     "a: 'b\nc'\n", "a: 'b\n  c' d\n", "a: 'b\n", 'a: "b\n  c\\/"\n', 'a: "\\ud83d\\ude00"\n',
     "a: \ufeff\n", "a: \u2028\n", "a: b\n  |\n  c\n", "|", "a: .inf\n"],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_events(text: str) -> None:
    assert read_block(text.encode(), yaml.resolve, yaml._WORDS) is None


def test_long_lines_and_deep_blocks_take_linear_time() -> None:
    texts = (
        "a: " + "x " * 200_000 + ": ",
        "a: " + "x" * 200_000 + ":",
        "- " * 100_000 + "a: 1",
        '"' * 200_000,
    )
    for text in (
        *texts,
        "a: [" + "a, " * 100_000,
        'a: "' + "\\" * 200_001,
        "a: '" + "x\n  " * 100_000,
        "a: b" + "\n" * 200_000 + " -:",
    ):
        assert read_block(text.encode(), yaml.resolve, yaml._WORDS) is None
    deep = "".join(f"{' ' * depth}a:\n" for depth in range(2_000))
    assert read_block(deep.encode(), yaml.resolve, yaml._WORDS) is None


# What sigs.k8s.io/yaml makes of merge keys: they apply where they are, of several the first one wins.
MERGES = {
    "d:\n  <<: {a: 1, b: 2}\n  a: 3\n": ({"a": 3, "b": 2}, ['line 3: key "a" already set in map']),
    "d:\n  a: 1\n  <<: {a: 2}\n": ({"a": 2}, ['line 3: key "a" already set in map']),
    "d:\n  <<: [{a: 1}, {a: 2, b: 3}]\n": ({"a": 1, "b": 3}, ['line 2: key "a" already set in map']),
    "b: &b\n  a: 1\nd:\n  a: 2\n  <<: *b\n": ({"a": 1}, ['line 2: key "a" already set in map']),
    "d:\n  a: 1\nd:\n  b: 2\n": ({"b": 2}, ['line 4: key "d" already set in map']),
}


@pytest.mark.parametrize("text", MERGES)
def test_merges_apply_in_order_and_warn_of_what_they_repeat(text: str) -> None:
    repeated: list[str] = []
    assert (decode(text.encode(), repeated)["d"], repeated) == MERGES[text]


MAP = 'map[interface {}]interface {}{"a":[]interface {}{1}}'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("r", '"r"'),
        ("1", "1"),
        ("~", "<nil>"),
        ("{a: [1]}", MAP),
    ],
)
def test_a_null_is_no_key(value: str, shown: str) -> None:
    with pytest.raises(DecodeFault) as fault:
        decode(f"a: 1\nnull: {value}\n".encode())
    assert str(fault.value) == f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}"
