"""HTTP/1.1 as the client reads and writes it: however an answer is cut into pieces, and whatever is no answer."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.http.asking import HEAD_BYTES, AnswerReader, BadAnswer, request_head

TOKENS = st.text("abcXYZ-09", min_size=1, max_size=8).map(lambda name: f"x-{name}")
VALUES = st.text(st.characters(min_codepoint=0x21, exclude_categories=["Cs", "Cc"]), max_size=12)
FIELDS = st.lists(st.tuples(TOKENS, VALUES), max_size=4)


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, bytes, dict[str, str], bool]:
    """An answer as bytes, its body, its headers, and whether its connection may be used again."""
    body = draw(st.binary(max_size=80))
    fields = draw(FIELDS)
    headers: dict[str, str] = {}
    for name, value in fields:
        key = name.lower()
        headers[key] = f"{headers[key]}\n{value}" if key in headers else value
    framing = draw(st.sampled_from(["length", "chunked", "end"]))
    if framing == "length":
        fields = [*fields, ("Content-Length", str(len(body)))]
        sent = body
    elif framing == "chunked":
        fields = [*fields, ("Transfer-Encoding", "chunked")]
        cuts = sorted({0, len(body), *draw(st.lists(st.integers(0, len(body)), max_size=4))})
        sent = b""
        for low, high in itertools.pairwise(cuts):
            extension = draw(st.sampled_from([b"", b";a=b", b" ;a"]))
            sent += b"%x%b\r\n%b\r\n" % (high - low, extension, body[low:high])
        sent += b"0\r\n" + draw(st.sampled_from([b"", b"Checksum: 1\r\n"])) + b"\r\n"
    else:
        sent = body
    head = "".join(f"{name}:{draw(st.sampled_from(['', ' ']))}{value}\r\n" for name, value in fields)
    before = draw(
        st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 E\r\nLink: a\r\n\r\n"])
    )
    return before + f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + sent, body, headers, framing != "end"


@given(answers(), st.data())
def test_an_answer_is_the_same_in_any_pieces(
    made: tuple[bytes, bytes, dict[str, str], bool], data: st.DataObject
) -> None:
    sent, body, headers, keeps = made
    cuts = sorted({0, len(sent), *data.draw(st.lists(st.integers(0, len(sent)), max_size=8))})
    answer, came = AnswerReader("GET"), b""
    for low, high in itertools.pairwise(cuts):
        came += answer.take(sent[low:high])
    if not keeps:
        assert not answer.ended
        answer.end()
    assert answer.ended and answer.code == 200
    assert (came, answer.keeps) == (body, keeps)
    assert {name: value for name, value in answer.headers.items() if name.startswith("x-")} == headers


@given(answers(), st.data())
def test_a_part_of_an_answer_is_never_taken_for_a_whole(
    made: tuple[bytes, bytes, dict[str, str], bool], data: st.DataObject
) -> None:
    sent, _, _, keeps = made
    until_the_end = sent.index(b"\r\n\r\n", sent.index(b" 200 ")) + 4
    part = sent[: data.draw(st.integers(0, (len(sent) if keeps else until_the_end) - 1))]
    answer = AnswerReader("GET")
    if part:
        answer.take(part)
    with pytest.raises(BadAnswer, match="the connection was closed"):
        answer.end()


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x15\x03\x01\x00\x02\x02\x16", "is not HTTP/1.1: it begins with"),
        (b"SSH-2.0-OpenSSH\r\n", "is not HTTP/1.1"),
        (b"HTTP/2 200\r\n\r\n", "is not HTTP/1.1"),
        (b"HTTP/1.1 99 X\r\n\r\n", "is not HTTP/1.1"),
        (OK + b"a: b\nc: d\r\n\r\n", "is not HTTP/1.1"),
        (OK + b"a: b\r\n\0: d\r\n\r\n", "is not HTTP/1.1"),
        (OK + b"a: b\r\n folded\r\n\r\n", "a line among its headers that is none"),
        (OK + b"a : b\r\n\r\n", "a line among its headers that is none"),
        (OK + b"nothing\r\n\r\n", "a line among its headers that is none"),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "a transfer coding that is not chunked"),
        (OK + b"Content-Length: +5\r\n\r\n", "a length that is no number"),
        (OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "a length that is no number"),
        (OK + b"Content-Length: 9999999999999999999\r\n\r\n", "a length that is no number"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol"),
        (OK + b"a: " + b"b" * HEAD_BYTES, "the head of the answer has more than"),
        (CHUNKED + b"-1\r\n", "a chunk of no size"),
        (CHUNKED + b"0x5\r\n", "a chunk of no size"),
        (CHUNKED + b"1;a\nb\r\n", "a chunk of no size"),
        (CHUNKED + b"f" * 17 + b"\r\n", "a chunk of no size"),
        (CHUNKED + b"1;" + b"x" * 5000, "a chunk whose size has no end"),
        (CHUNKED + b"1\r\nab\r\n", "a chunk that is longer than it says"),
        (CHUNKED + b"0\r\n" + b"a: b\r\n" * 20_000, "too many fields after its end"),
        (CHUNKED + b"0\r\na: " + b"b" * 5000, "too many fields after its end"),
    ],
)
@pytest.mark.parametrize("step", [1, 1 << 20])
def test_what_is_no_answer_is_refused(data: bytes, why: str, step: int) -> None:
    answer = AnswerReader("GET")
    with pytest.raises(BadAnswer, match=why):
        for low in range(0, len(data), step):
            answer.take(data[low : low + step])


@pytest.mark.parametrize(
    ("method", "sent", "keeps"),
    [
        ("HEAD", OK + b"Content-Length: 5\r\n\r\n", True),
        ("GET", b"HTTP/1.1 204 No\r\n\r\n", True),
        ("GET", b"HTTP/1.1 304 Same\r\nContent-Length: 5\r\n\r\n", True),
        ("GET", OK + b"Content-Length: 0\r\n\r\n", True),
        ("GET", OK + b"Content-Length: 0, 0\r\n\r\n", True),
        ("GET", OK + b"Content-Length: 0\r\nConnection: Close\r\n\r\n", False),
        ("GET", b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        ("GET", b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", True),
        ("GET", OK + b"Content-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n", False),
        ("GET", CHUNKED + b"0\r\n\r\nmore", False),
        ("GET", OK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", False),
        ("CONNECT", OK + b"Transfer-Encoding: chunked\r\n\r\n", True),
    ],
)
def test_when_an_answer_ends_and_whether_its_connection_is_kept(
    method: str, sent: bytes, keeps: bool
) -> None:
    answer = AnswerReader(method)
    assert answer.take(sent) == b""
    assert (answer.ended, answer.keeps) == (True, keeps)


def test_headers_are_read_as_utf_8_or_else_latin_1() -> None:
    for sent in ("Übung".encode(), "Übung".encode("latin-1")):
        answer = AnswerReader("GET")
        answer.take(OK + b"Warning: " + sent + b"\r\nContent-Length: 0\r\n\r\n")
        assert answer.headers["warning"] == "Übung"


def test_a_head_is_written() -> None:
    assert request_head("GET", "/a?b=c", [("Host", "h"), ("Impersonate-User", "Jürgen")], None) == (
        "GET /a?b=c HTTP/1.1\r\nHost: h\r\nImpersonate-User: Jürgen\r\n\r\n".encode()
    )
    assert request_head("POST", "/a", [], b"abc").endswith(b"\r\nContent-Length: 3\r\n\r\n")
    assert request_head("POST", "/a", [], None).endswith(b"\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "target", "field"),
    [
        ("GET /", "/", ("a", "b")),
        ("GET", "/a b", ("a", "b")),
        ("GET", "/a\r\nHost: x", ("a", "b")),
        ("GET", "/ü", ("a", "b")),
        ("GET", "/", ("a: b\r\nc", "b")),
        ("GET", "/", ("Authorization", "Bearer secret\r\nX: y")),
        ("GET", "/", ("a", "secret\ud800")),
    ],
)
def test_nothing_is_smuggled_into_a_head(method: str, target: str, field: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"method|target|header") as refused:
        request_head(method, target, [field], None)
    assert "secret" not in str(refused.value)
