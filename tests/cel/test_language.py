"""What expressions give, in the environment of kube-apiserver 1.36; a table of source and value."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.cel.environment import Environment
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CompileError, EvalError
from apimachinery.cel.values.values import Uint, equal, type_name

ENV = Environment.kubernetes("1.36").extend(variables={"d": t.DYN, "n": t.INT})

VALUES: list[tuple[str, Any]] = [
    ("1 + 2 * 3 - 4 / 2 % 3", 5),
    ("-7 / 2", -3),
    ("-7 % 2", -1),
    ("7u - 2u", Uint(5)),
    ("string(18446744073709551615u) + string(7u)", "184467440737095516157"),
    ("!false && (true || 1 / 0 > 1)", True),
    ("1 / 0 > 1 || true", True),
    ("[1, 2].exists(x, x / (x - 1) == 2)", True),
    ("[0, 2].all(x, 4 / x > 5)", False),
    ("2 > 1.5 && 1u < 2", True),
    ("[1, 2, 3].filter(x, x > 1).map(x, x * x)", [4, 9]),
    ("[1, 2, 3].map(x, x != 2, x * 10)", [10, 30]),
    ("{'a': 1, 'b': 2}.all(k, v, v > 0 && k.size() == 1)", True),
    ("['x', 'y'].transformMap(i, v, v + string(i))", {0: "x0", 1: "y1"}),
    ("{'a': 'b'}.transformMapEntry(k, v, {v: k})", {"b": "a"}),
    ("[3, 1, 2].sort() + [1].flatten(1)", [1, 2, 3, 1]),
    ("['bb', 'a'].sortBy(s, s.size())", ["a", "bb"]),
    ("lists.range(3).reverse()", [2, 1, 0]),
    ("[1, 1, 2].distinct().slice(0, 1)", [1]),
    ("[1, 2].first().value() + [1, 2].last().value()", 3),
    ("optional.of(1).optMap(x, x + 1).orValue(0)", 2),
    ("{'a': {'b': 1}}.?a.?c.hasValue()", False),
    ("[?optional.none(), ?optional.of(1)]", [1]),
    ("has({'a': 1}.a) && !has({'a': 1}.b)", True),
    ("'%s %d %.2f %x %b %%'.format(['s', 42, 3.14159, 255, 5])", "s 42 3.14 ff 101 %"),
    ("'%s'.format([[1, 'a', {'k': 2.5}]])", '[1, "a", {"k":2.500000}]'),
    ("'a,b'.split(',').join('-')", "a-b"),
    ("'hello'.substring(1, 3) + 'x'.upperAscii()", "elX"),
    ("'héllo'.size()", 5),
    ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
    ("timestamp('2021-03-04T05:06:07Z').getMonth()", 2),
    ("string(timestamp('2021-03-04T05:06:07Z') + duration('90m'))", "2021-03-04T06:36:07Z"),
    ("string(duration('1h0.5s'))", "3600.5s"),
    ("duration('-9223372036854775808ns') < duration('-9223372036854775807ns')", True),
    ("quantity('1.5Gi').isGreaterThan(quantity('1500M'))", True),
    ("quantity('1000m').isInteger()", False),
    ("['.', '-', 'Ti', 'e3', '1e5000', '1e', '1 '].map(q, isQuantity(q))", [True] * 5 + [False] * 2),
    ("quantity('1e20').isGreaterThan(quantity('1e19'))", True),
    ("quantity('20Ei').isGreaterThan(quantity('10Ei'))", False),
    ("ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.9.9.9')", True),
    ("url('https://a.b:80/c?d=e').getQuery()", {"d": ["e"]}),
    ("semver('v1.2', true).compareTo(semver('1.2.0'))", 0),
    ("format.named('dns1123Label').value().validate('ok').hasValue()", False),
    ("['abc'.indexOf('a', 7), 'abc'.lastIndexOf('a', 7), 'abc'.indexOf('', 7)]", [-1, -1, 7]),
    ("sets.contains([1, 2], [2]) && !sets.intersects([1], [2])", True),
    ("type(1) == int && type(dyn('x')) == string", True),
    ("b'\\x61bc' == b'abc' && r'\\n'.size() == 2", True),
    ("{1: 'a', 2u: 'b'}[1.0]", "a"),
    ("d.x.y[0] + n", 7),
]


@pytest.mark.parametrize(("source", "wanted"), VALUES, ids=[source for source, _ in VALUES])
def test_a_value(source: str, wanted: Any) -> None:
    program = ENV.compile(source) if "1: 'a', 2u" not in source else Environment.everything().compile(source)
    got = program.evaluate({"d": {"x": {"y": [4]}}, "n": 3})
    assert equal(got, wanted) and type_name(got) == type_name(wanted), got


FAILURES = [
    ("1 / 0", "division by zero"),
    ("1 % 0", "modulus by zero"),
    ("9223372036854775807 + n", "integer overflow"),
    ("uint(n) - 4u", "unsigned integer overflow"),
    ("d.missing", "no such key: missing"),
    ("d.x.y[5]", "index out of bounds: 5"),
    ("int(d.t)", "type conversion error from 'string' to 'int'"),
    ("d.t < 3", "no such overload"),
    ("d.t && true", "no such overload"),
    ("optional.none().value()", "optional.none() dereference"),
    ("'a'.charAt(9)", "index out of range: 9"),
    (
        "ip(d.t)",
        'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
    ),
    ("{'a': 1}[d.t]", "no such key: x"),
    ("[1].map(x, x / (x - 1))", "division by zero"),
    ("missing_value", "no such attribute(s): missing_value"),
]


@pytest.mark.parametrize(("source", "text"), FAILURES, ids=[source for source, _ in FAILURES])
def test_a_failure(source: str, text: str) -> None:
    env = ENV.extend(variables={"missing_value": t.INT})
    with pytest.raises(EvalError) as caught:
        env.compile(source).evaluate({"d": {"x": {"y": [4]}, "t": "x"}, "n": 3})
    assert str(caught.value) == text


SINCE = [
    ("'a'.trim() == 'a'", "1.23"),
    ("'%d'.format([1]) == '1'", "1.29"),
    ("quantity('1') == quantity('1')", "1.29"),
    ("optional.of(1).hasValue()", "1.29"),
    ("1 < 2.0", "1.29"),
    ("sets.contains([1], [1])", "1.30"),
    ("isIP('::1') && isCIDR('::/0')", "1.31"),
    ("format.date().validate('x').hasValue()", "1.32"),
    ("[1].all(i, v, v > i)", "1.33"),
    ("isSemver('1.0.0')", "1.34"),
    ("[2, 1].sort() == [1, 2]", "1.35"),
]


@pytest.mark.parametrize(("source", "version"), SINCE, ids=[source for source, _ in SINCE])
def test_functions_exist_from_their_release_on(source: str, version: str) -> None:
    assert Environment.kubernetes(version).compile(source).evaluate({}) is True
    before = f"1.{int(version[2:]) - 1}"
    if before != "1.22":
        with pytest.raises(CompileError):
            Environment.kubernetes(before).compile(source)


def test_an_environment_can_be_given_functions_and_a_container() -> None:
    from apimachinery.cel.libraries.declarations import Library

    library = Library("own")
    library.overload("twice", "twice_int", "(int) int", lambda x: 2 * x)
    env = Environment.standard().extend(functions=[library], variables={"a.b": t.INT}, container="a.c")
    assert env.compile("twice(b)").evaluate({"a.b": 4}) == 8


def test_declared_variables_of_admission_policies() -> None:
    from apimachinery.cel.libraries.authorizer import AUTHORIZER, Authorizer, Decision, Question

    asked: list[Question] = []

    def ask(question: Question) -> Decision:
        asked.append(question)
        return Decision(question.verb == "get", "because")

    env = Environment.kubernetes("1.36").extend(
        variables=dict.fromkeys(("object", "oldObject", "request", "params"), t.DYN)
        | {"authorizer": AUTHORIZER}
    )
    source = (
        "object.spec.replicas <= params.max && oldObject == null && "
        "authorizer.group('apps').resource('deployments').subresource('scale').namespace('ns').name('n')"
        ".check('get').allowed()"
    )
    outcome = env.compile(source).run(
        {
            "object": {"spec": {"replicas": 2}},
            "params": {"max": 3},
            "oldObject": None,
            "authorizer": Authorizer(ask),
        }
    )
    assert outcome.value is True and outcome.cost > 350_000
    assert asked == [Question("get", "", "apps", "deployments", "scale", "ns", "n")]
