"""Random well-typed expressions over the part of CEL that every implementation shares."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

NAMES = {"int": "i", "double": "f", "string": "s", "bool": "b", "list": "l", "map": "m"}
VARIABLES = {"i": 7, "f": -2.5, "s": "abcab", "b": True, "l": [3, 1, 2], "m": {"k": 1, "z": -4}}


LITERALS = {
    "int": ["0", "1", "-3", "7", "20", "-20", "9223372036854775807"],
    "double": ["0.5", "-1.25", "3.0", "1e3"],
    "string": ["''", "'a'", "'ab'", '"c\\n"', "'é'"],
    "bool": ["true", "false"],
    "list": ["[1, 2]", "[5]", "[0, -1, 4]"],
    "map": ["{'k': 2}", "{'a': 1, 'b': 2}"],
}
Form = tuple[str, tuple[str, ...]]
FORMS: dict[str, list[Form]] = {
    "int": [
        *((f"({{}} {op} {{}})", ("int", "int")) for op in "+-*/%"),
        ("-({})", ("int",)),
        ("size({})", ("string",)),
        ("{}.size()", ("list",)),
        ("({} ? {} : {})", ("bool", "int", "int")),
        ("{}[{}]", ("list", "int")),
        ("{}[{}]", ("map", "string")),
        ("int({})", ("double",)),
        ("int({})", ("string",)),
    ],
    "double": [
        *((f"({{}} {op} {{}})", ("double", "double")) for op in "+-*/"),
        ("double({})", ("int",)),
        ("({} ? {} : {})", ("bool", "double", "double")),
    ],
    "string": [
        ("({} + {})", ("string", "string")),
        ("string({})", ("int",)),
        ("({} ? {} : {})", ("bool", "string", "string")),
    ],
    "bool": [
        *(
            (f"({{}} {op} {{}})", (kind, kind))
            for op in ("==", "!=", "<", "<=", ">", ">=")
            for kind in ("int", "double", "string")
        ),
        *((f"({{}} {op} {{}})", ("bool", "bool")) for op in ("&&", "||", "==", "&&", "||")),
        ("!({})", ("bool",)),
        ("({} in {})", ("int", "list")),
        ("({} in {})", ("string", "map")),
        ("{}.contains({})", ("string", "string")),
        ("{}.startsWith({})", ("string", "string")),
        ("{}.endsWith({})", ("string", "string")),
        ("{}.all(i, {})", ("list", "bool")),
        ("{}.exists(i, {})", ("list", "bool")),
        ("{}.exists_one(i, {})", ("list", "bool")),
        ("{}.exists(s, {})", ("map", "bool")),
        ("({} == {})", ("list", "list")),
        ("({} == {})", ("map", "map")),
        ("has({}.k)", ("map",)),
        ("{}.matches('^a+b?')", ("string",)),
    ],
    "list": [
        ("({} + {})", ("list", "list")),
        ("{}.map(i, {})", ("list", "int")),
        ("{}.filter(i, {})", ("list", "bool")),
        ("[{}, {}]", ("int", "int")),
    ],
    "map": [("{{'k': {}, 'j': {}}}", ("int", "int")), ("({} ? {} : {})", ("bool", "map", "map"))],
}


def expression(random: Random, kind: str, depth: int) -> str:
    """An expression of type ``kind``, at most ``depth`` operations deep."""
    if depth == 0 or random.random() < 0.15:
        return NAMES[kind] if random.random() < 0.5 else random.choice(LITERALS[kind])
    template, kinds = random.choice(FORMS[kind])
    return template.format(*(expression(random, k, depth - 1) for k in kinds))


def of_seed(seed: int) -> str:
    """The expression that ``seed`` stands for."""
    random = Random(seed)
    return expression(random, random.choice(sorted(NAMES)), random.randint(1, 5))


ANY: st.SearchStrategy[str] = st.integers(0, 2**62).map(of_seed)
