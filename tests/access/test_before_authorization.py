"""What is done for a request of somebody who may not make it: nothing that grows with the request, but to read it."""

from __future__ import annotations

import base64
import socket

import pytest
from tests.access.test_gate import raw

from apimachinery.access import attributes as read
from apimachinery.access.attributes import SELECTOR_CHARACTERS, attributes_of
from apimachinery.access.keys import unverified_issuer
from apimachinery.http import messages
from apimachinery.http.messages import Request, User
from apimachinery.http.protocol import TARGET_BYTES
from apimachinery.http.queries import values_of
from apimachinery.meta import selectors
from apimachinery.server.read import selection
from kubewright.testing import ApiServer

PODS = "/api/v1/pods"
ANN = User("ann")


@pytest.fixture(scope="module")
def server():
    with ApiServer(tls=True) as running:
        yield running


@pytest.fixture
def parsed(monkeypatch):
    """The lengths of what was parsed."""
    lengths: list[int] = []

    def counting(parse):
        def count(text, *rest):
            lengths.append(len(text))
            return parse(text, *rest)

        return count

    monkeypatch.setattr(messages, "parse_query", counting(messages.parse_query))  # type: ignore[attr-defined]
    for name in ("parse_field_selector", "parse_label_selector"):
        parse = counting(getattr(selectors, name))
        monkeypatch.setattr(read, name, parse)
        monkeypatch.setattr(selection, name, parse)
    return lengths


@pytest.mark.parametrize(
    "query",
    [
        "fieldSelector=" + "metadata.name!%3Db," * 2_000,
        "labelSelector=" + "a," * 20_000,
        "fieldSelector=" + "%5C%5C" * 10_000,
        "fieldSelector=metadata.name%3D" + "b" * 100_000,
        "a&" * 20_000 + "watch=1",
        "pretty=true&" * 5_000,
        "limit=" + "1" * 50_000,
    ],
    ids=lambda query: query[:20],
)
def test_nothing_long_is_parsed_for_who_may_not(server, parsed, query):
    status, answer = raw(server, "GET", f"{PODS}?{query}")
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert all(length <= SELECTOR_CHARACTERS for length in parsed)


def test_a_query_is_gone_through_once_for_each_parameter(monkeypatch):
    sought: list[str] = []

    def noted(text: str, name: str, *rest: int):
        sought.append(name)
        return values_of(text, name, *rest)

    monkeypatch.setattr(messages, "values_of", noted)
    request = Request("GET", PODS, "fieldSelector=metadata.name%3Da&labelSelector=b&watch=1")
    attributes = attributes_of(request, ANN)
    assert (attributes.verb, attributes.name) == ("watch", "a")
    assert sorted(sought) == ["fieldSelector", "labelSelector", "watch"]


def test_a_health_check_parses_no_query(server, parsed):
    status, text = raw(server, "GET", "/livez?" + "exclude=a&" * 5_000 + "verbose")
    assert status == 200 and 'no matches for "a"' in text
    assert parsed == []


def asked(query: str, path: str = PODS, method: str = "GET"):
    return attributes_of(Request(method, path, query), ANN)


@pytest.mark.parametrize(
    ("query", "verb", "name", "fields"),
    [
        ("fieldSelector=metadata.name%3Da", "list", "a", [("metadata.name", "In", ("a",))]),
        ("w%61tch=1&fieldSelector=metadata.name%3Da", "watch", "a", [("metadata.name", "In", ("a",))]),
        ("watch=0", "list", "", None),
        ("watch=F%61lse", "list", "", None),
        # However long, a value that is not false asks for a watch, as the handler will read it.
        ("watch=" + "%41" * 9_000, "watch", "", None),
        ("watch=" + "%4" * 9_000 + "&watch=0", "list", "", None),
        # Longer selectors are shown to nobody: the request counts as one for all objects.
        ("fieldSelector=metadata.name%3Da," + "spec.b!%3D1," * 300, "list", "", None),
        ("labelSelector=" + "b," * 5_000 + "b", "list", "", None),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)  # fmt: skip
def test_what_authorizers_are_shown_of_a_query(query, verb, name, fields):
    attributes = asked(query)
    assert (attributes.verb, attributes.name) == (verb, name)
    assert (attributes.field_selector and list(attributes.field_selector)) == fields
    assert attributes.label_selector is None


def test_a_long_path_is_read_as_far_as_it_counts():
    attributes = asked("", "/apis/g/v1/watch/namespaces/ns/things/name/status/" + "a/" * 50_000)
    assert (attributes.verb, attributes.namespace, attributes.resource, attributes.name, attributes.subresource) == (
        "watch", "ns", "things", "name", "status",
    )  # fmt: skip


def test_long_selectors_are_refused_to_who_may(server):
    for name in ("fieldSelector", "labelSelector"):
        answers = []
        for count in (30_000, 40_000):
            with pytest.raises(Exception) as refusal:
                server.request("GET", f"{PODS}?{name}={'a,' * count}")
            answers.append(str(refusal.value))
        assert "characters are too many" not in answers[0]
        assert f"{name}: 80000 characters are too many: at most 65536 are read" in answers[1]


def test_a_target_above_the_bound_is_414(server):
    context = server._context
    for path, statuses in (("/", (b"403", b"414")), (f"{PODS}?fieldSelector=", (b"403", b"414"))):
        for length, expected in zip((TARGET_BYTES, TARGET_BYTES + 1), statuses, strict=True):
            target = path + "a" * (length - len(path))
            plain = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            with context.wrap_socket(plain, server_hostname="localhost") as sock:
                sock.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                assert sock.recv(12) == b"HTTP/1.1 " + expected


@pytest.mark.parametrize(
    ("claims", "issuer"),
    [
        ('{"iss":"a","sub":"b"}', "a"),
        ('{"iss":"a","iss":"b"}', "b"),
        ('{"sub":"iss"}', ""),
        ('{"iss":["a"]}', ""),
        ('{"iss":null}', ""),
        ('["iss"]', ""),
        ('{"a":' + "[" * 500 + "]" * 500 + ',"iss":"a"}', "a"),
        ('{"iss":' + "[" * 8_000, ""),
        ('{"a":' + "[" * 8_000, ""),
        ("", ""),
    ],
)
def test_the_issuer_of_a_token_is_read_and_nothing_else(claims, issuer):
    payload = base64.urlsafe_b64encode(claims.encode()).decode().rstrip("=")
    assert unverified_issuer(f"x.{payload}.x") == issuer
    assert unverified_issuer(payload) == unverified_issuer(f"x.{payload}!.x.y") == ""
