"""Arguments on the wire: the styles of OpenAPI 3.1 (Style Values), forms, bodies by media type, credentials."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.client.endpoint import Request
from apimachinery.openapi.encoding import encode_body, make_request
from apimachinery.openapi.operation import LEFT_OUT, Body, Credential, Operation, Parameter, SecurityScheme

ONE, MANY, OBJECT = "a b", ["x", "y/z"], {"r": 1, "g": True}


def request(
    *parameters: Parameter,
    arguments: tuple[Any, ...] = (),
    path: str = "/p",
    body: Any = LEFT_OUT,
    credentials: dict[str, Credential] | None = None,
    schemes: dict[str, SecurityScheme] | None = None,
    **operation: Any,
) -> Request:
    asked: Operation[Any] = Operation(name="o", method="GET", path=path, parameters=parameters, **operation)
    return make_request(asked, arguments, body, "", credentials or {}, schemes or {}, None)


@pytest.mark.parametrize(
    ("style", "explode", "one", "many", "of_object"),
    [
        ("", False, "a%20b", "x,y%2Fz", "r,1,g,true"),
        ("", True, "a%20b", "x,y%2Fz", "r=1,g=true"),
        ("label", False, ".a%20b", ".x,y%2Fz", ".r,1,g,true"),
        ("label", True, ".a%20b", ".x.y%2Fz", ".r=1.g=true"),
        ("matrix", False, ";c=a%20b", ";c=x,y%2Fz", ";c=r,1,g,true"),
        ("matrix", True, ";c=a%20b", ";c=x;c=y%2Fz", ";r=1;g=true"),
    ],
)
def test_paths(style: str, explode: bool, one: str, many: str, of_object: str) -> None:
    parameter = Parameter("c", "path", style=style, explode=explode)
    for value, shown in ((ONE, one), (MANY, many), (OBJECT, of_object)):
        assert request(parameter, arguments=(value,), path="/p/{c}/q").target == f"/p/{shown}/q"


@pytest.mark.parametrize(
    ("style", "explode", "one", "many", "of_object"),
    [
        ("", False, "c=a%20b", "c=x,y%2Fz", "c=r,1,g,true"),
        ("", True, "c=a%20b", "c=x&c=y%2Fz", "r=1&g=true"),
        ("spaceDelimited", False, "c=a%20b", "c=x%20y%2Fz", "c=r,1,g,true"),
        ("pipeDelimited", False, "c=a%20b", "c=x|y%2Fz", "c=r,1,g,true"),
        ("tabDelimited", False, "c=a%20b", "c=x%09y%2Fz", "c=r,1,g,true"),
        ("deepObject", True, "c=a%20b", "c[0]=x&c[1]=y%2Fz", "c[r]=1&c[g]=true"),
    ],
)
def test_queries(style: str, explode: bool, one: str, many: str, of_object: str) -> None:
    parameter = Parameter("c", "query", style=style, explode=explode)
    for value, shown in ((ONE, one), (MANY, many), (OBJECT, of_object)):
        assert request(parameter, arguments=(value,)).target == f"/p?{shown}"


@pytest.mark.parametrize(
    ("explode", "value", "shown"),
    [
        (False, ONE, "a b"),
        (False, MANY, "x,y/z"),
        (False, OBJECT, "r,1,g,true"),
        (True, OBJECT, "r=1,g=true"),
    ],
)
def test_headers(explode: bool, value: Any, shown: str) -> None:
    parameter = Parameter("X-C", "header", explode=explode)
    assert request(parameter, arguments=(value,)).headers["X-C"] == shown


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0"])
def test_a_header_is_one_line(value: str) -> None:
    with pytest.raises(ValueError, match="the header X-C cannot hold more than one line"):
        request(Parameter("X-C", "header"), arguments=(value,))
    scheme = SecurityScheme("header", "Authorization", "Bearer ")
    with pytest.raises(ValueError, match="the header Authorization"):
        request(security=(("t",),), credentials={"t": value}, schemes={"t": scheme})


def test_cookies_are_one_header_and_none_without_any() -> None:
    parameters = (Parameter("a", "cookie"), Parameter("b", "cookie"))
    assert request(*parameters, arguments=("1;2", MANY)).headers["Cookie"] == "a=1%3B2; b=x,y%2Fz"
    assert "Cookie" not in request(*parameters, arguments=(None, None)).headers


@pytest.mark.parametrize(
    ("place", "shown"),
    [("path", "%7B%22r%22%3A1%7D"), ("query", "c=%7B%22r%22%3A1%7D"), ("header", '{"r":1}')],
)
def test_a_parameter_with_a_media_type_is_json(place: Any, shown: str) -> None:
    parameter = Parameter("c", place, media_type="application/json")
    made = request(parameter, arguments=({"r": 1},), path="/p/{c}" if place == "path" else "/p")
    assert made.headers.get("c", made.target[3:]) == shown


def test_arguments_that_are_left_out_are_not_sent() -> None:
    parameters = (Parameter("a", "query"), Parameter("B", "header"), Parameter("c", "query"))
    made = request(*parameters, arguments=(None, None, 0))
    assert made.target == "/p?c=0" and made.headers == {"Accept": "*/*"}


@pytest.mark.parametrize(
    ("scheme", "given", "target", "header"),
    [
        (SecurityScheme("header", "Authorization", "Bearer "), "k&", "/p", ("Authorization", "Bearer k&")),
        (
            SecurityScheme("header", "Authorization", "Basic "),
            ("u", "p"),
            "/p",
            ("Authorization", "Basic dTpw"),
        ),
        (SecurityScheme("query", "key"), lambda: "k&", "/p?key=k%26", None),
        (SecurityScheme("cookie", "key"), "k;", "/p", ("Cookie", "key=k%3B")),
    ],
)
def test_credentials(
    scheme: SecurityScheme, given: Credential, target: str, header: tuple[str, str] | None
) -> None:
    made = request(security=(("other",), ("s",)), credentials={"s": given}, schemes={"s": scheme})
    assert made.target == target
    assert {name: text for name, text in made.headers.items() if name != "Accept"} == dict(
        [header] if header else []
    )


ANY = "*/*"


@pytest.mark.parametrize(
    ("media_type", "body", "content", "content_type"),
    [
        ("application/json", {"a": None}, b'{"a":null}', "application/json"),
        ("application/problem+json; x=y", [1], b"[1]", "application/problem+json; x=y"),
        ("application/x-www-form-urlencoded", {"a": ["1", "&"], "b": {"c": 2}}, b"a=1&a=%26&b[c]=2", None),
        ("image/png", b"\x89", b"\x89", "image/png"),
        ("image/*", bytearray(b"\x89"), b"\x89", "application/octet-stream"),
        ("text/csv", "é", "é".encode(), "text/csv"),
        (ANY, "é", "é".encode(), "text/plain; charset=utf-8"),
        (ANY, {"a": 1}, b'{"a":1}', "application/json"),
        ("application/xml", {"a": 1}, b'{"a":1}', "application/xml"),
    ],
)
def test_bodies(media_type: str, body: Any, content: bytes, content_type: str | None) -> None:
    assert encode_body([Body(media_type)], body, "") == (content, content_type or media_type)


def test_the_content_type_chooses_among_bodies() -> None:
    styles = {"tags": "pipeDelimited"}
    bodies = [Body("application/json"), Body("application/x-www-form-urlencoded", styles)]
    assert encode_body(bodies, {"a": 1}, "")[1] == "application/json"
    assert encode_body(bodies, {"a": 1}, bodies[1].media_type) == (b"a=1", bodies[1].media_type)
    assert encode_body(bodies, "a", "text/plain") == (b"a", "text/plain")


def test_parts_of_a_form_are_files_json_and_text_and_no_name_ends_its_line() -> None:
    content, media_type = encode_body(
        [Body("multipart/form-data")],
        {"file": b"\0", "many": [1, 2], "obj": [{"a": 1}], 'n"\r\nX: y': "t"},
        "",
    )
    boundary = media_type.removeprefix("multipart/form-data; boundary=").encode()
    first, *parts, last = content.split(b"--" + boundary)
    assert (first, last) == (b"", b"--\r\n")
    assert [part.strip(b"\r\n").split(b"\r\n\r\n") for part in parts] == [
        [
            b'Content-Disposition: form-data; name="file"; filename="file"\r\nContent-Type: application/octet-stream',
            b"\0",
        ],
        [b'Content-Disposition: form-data; name="many"', b"1"],
        [b'Content-Disposition: form-data; name="many"', b"2"],
        [b'Content-Disposition: form-data; name="obj"\r\nContent-Type: application/json', b'{"a":1}'],
        [b'Content-Disposition: form-data; name="n%22%0D%0AX: y"', b"t"],
    ]


def test_a_path_with_a_query_of_its_own() -> None:
    limit = Parameter("limit", "query")
    assert request(limit, arguments=(1,), path="/p?beta=true").target == "/p?beta=true&limit=1"
    assert request(limit, arguments=(None,), path="/p?beta=true").target == "/p?beta=true"
