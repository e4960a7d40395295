"""Arguments on the wire: parameters by the styles of OpenAPI (RFC 6570), bodies by media type.

JSON bodies are JSON; forms repeat a field for each item of a list and write nested objects with brackets; in
``multipart/form-data`` bytes are files (RFC 7578), objects JSON. Any other body is bytes or text as it is.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from apimachinery.client.endpoint import Request
from apimachinery.openapi.operation import LEFT_OUT, Body, Credential, Operation, Parameter, SecurityScheme
from apimachinery.openapi.streams import is_stream
from apimachinery.typed.undeclared import OpenPart, written

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
_BETWEEN = {"spaceDelimited": "%20", "pipeDelimited": "|", "tabDelimited": "%09"}


def make_request(
    operation: Operation[Any],
    arguments: Sequence[Any],
    body: Any,
    content_type: str,
    credentials: Mapping[str, Credential],
    schemes: Mapping[str, SecurityScheme],
    timeout: float | None,
    *,
    streams: bool = False,
) -> Request:
    """The request of a call; with ``streams`` of one whose answer goes on, if the operation has such answers.
    ``arguments`` are in the order of the parameters, ``None`` where they are left out; the first alternative of the
    operation's security for which all credentials are given is used. Raises ``ValueError`` for an argument that cannot
    stand where it belongs."""
    path, query, headers, cookies = operation.path, list[str](), dict[str, str](), list[str]()
    for parameter, value in zip(operation.parameters, arguments, strict=True):
        if value is None:
            continue
        if parameter.place == "path":
            path = path.replace("{" + parameter.name + "}", _path_text(parameter, value))
        elif parameter.place == "query":
            query += (f"{key}={text}" for key, text in _pairs(parameter, value))
        elif parameter.place == "header":
            headers[parameter.name] = _header_text(parameter, value)
        else:
            cookies += (f"{key}={text}" for key, text in _pairs(parameter, value))
    for key, text, place in _proofs(operation, credentials, schemes):
        if place == "query":
            query.append(f"{quote(key, safe='')}={quote(text, safe='')}")
        elif place == "cookie":
            cookies.append(f"{key}={quote(text, safe='')}")
        else:
            headers[key] = _one_line(key, text)
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    accepted = dict.fromkeys(media for by_media in operation.answers.values() for media in by_media)
    wanted = [media for media in accepted if is_stream(media) is streams] or [*accepted]
    headers.setdefault("Accept", ", ".join(wanted) or "*/*")
    content = None
    if body is not LEFT_OUT:
        content, headers["Content-Type"] = encode_body(operation.bodies, body, content_type)
    between = "&" if "?" in path else "?"  # some documents tell operations apart by a query in their path
    target = path + (between + "&".join(query) if query else "")
    return Request(operation.method, target, headers, content, timeout)


def _proofs(
    operation: Operation[Any], credentials: Mapping[str, Credential], schemes: Mapping[str, SecurityScheme]
) -> Iterator[tuple[str, str, str]]:
    """Key, text and place of each credential to send."""
    for alternative in operation.security:
        if all(name in credentials for name in alternative):
            for name in alternative:
                scheme, given = schemes[name], credentials[name]
                text = given() if callable(given) else given
                if not isinstance(text, str):
                    text = base64.b64encode(":".join(text).encode()).decode()
                yield scheme.key, scheme.prefix + text, scheme.place
            return


def plain(value: Any) -> Any:
    """``value`` as JSON has it, but bytes stay bytes."""
    return written(value, msgspec.to_builtins(value, builtin_types=(bytes,)))


def encode(value: Any) -> bytes:
    """``value``, a generated model or made of them, as JSON."""
    return msgspec.json.encode(plain(value) if OpenPart.__subclasses__() else value)


def _text(value: Any) -> str:
    """A scalar as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)


def _escaped(value: Any) -> str:
    return quote(_text(value), safe="")


def _json(value: Any) -> str:
    return quote(encode(value).decode(), safe="")


def _path_text(parameter: Parameter, value: Any) -> str:
    if parameter.media_type:
        return _json(value)
    given = plain(value)
    start, between = {"label": (".", "."), "matrix": (";", ";")}.get(parameter.style, ("", ","))
    if not parameter.explode and parameter.style:
        between = ","
    named = f"{quote(parameter.name, safe='')}=" if parameter.style == "matrix" else ""
    if isinstance(given, dict):
        sign = "=" if parameter.explode else ","
        text = between.join(f"{_escaped(key)}{sign}{_escaped(item)}" for key, item in given.items())
        return start + ("" if parameter.explode else named) + text
    if isinstance(given, list):
        repeated = f"{between}{named}" if parameter.explode else between
        return start + named + repeated.join(map(_escaped, given))
    text = _escaped(given)
    if not text or text in (".", ".."):
        raise ValueError(f"{parameter.name} is part of the path: it cannot be {_text(given)!r}")
    return start + named + text


def _header_text(parameter: Parameter, value: Any) -> str:
    if parameter.media_type:
        return encode(value).decode()
    given = plain(value)
    if isinstance(given, list):
        text = ",".join(map(_text, given))
    elif isinstance(given, dict):
        sign = "=" if parameter.explode else ","
        text = ",".join(f"{_text(key)}{sign}{_text(item)}" for key, item in given.items())
    else:
        text = _text(given)
    return _one_line(parameter.name, text)


def _one_line(name: str, text: str) -> str:
    if any(character in text for character in "\r\n\0"):
        raise ValueError(f"the header {name} cannot hold more than one line")
    return text


def _pairs(parameter: Parameter, value: Any) -> Iterator[tuple[str, str]]:
    """The pairs of a query, form or cookie, escaped."""
    if parameter.media_type:
        yield quote(parameter.name, safe=""), _json(value)
        return
    yield from _form_pairs(parameter.name, plain(value), parameter.style or "form", parameter.explode)


def _form_pairs(name: str, value: Any, style: str, explode: bool) -> Iterator[tuple[str, str]]:
    key = quote(name, safe="[]")
    if style == "deepObject" and isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _form_pairs(f"{name}[{step}]", item, style, explode)
    elif isinstance(value, list):
        if explode:
            yield from ((key, _escaped(item)) for item in value)
        else:
            yield key, _BETWEEN.get(style, ",").join(map(_escaped, value))
    elif isinstance(value, dict):
        if explode:
            yield from ((quote(k, safe=""), _escaped(item)) for k, item in value.items())
        else:
            yield key, ",".join(f"{_escaped(k)},{_escaped(item)}" for k, item in value.items())
    else:
        yield key, _escaped(value)


def is_json(media_type: str) -> bool:
    """Whether bodies of a media type are JSON."""
    plain_type = media_type.partition(";")[0].strip().lower()
    return plain_type in ("application/json", "text/json") or plain_type.endswith("+json")


def encode_body(bodies: Sequence[Body], body: Any, content_type: str) -> tuple[bytes, str]:
    """A body and its Content-Type: ``content_type``, or the first of ``bodies``."""
    chosen = next((each for each in bodies if each.media_type == content_type), bodies[0])
    media_type = content_type or chosen.media_type
    head = media_type.partition(";")[0].strip().lower()
    if is_json(head):
        return encode(body), media_type
    if head == FORM:
        fields = plain(body)
        pairs = (pair for name, item in fields.items() for pair in _field_pairs(name, item, chosen))
        return "&".join(f"{key}={text}" for key, text in pairs).encode(), media_type
    if head == MULTIPART:
        return _multipart(plain(body))
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body), media_type if "*" not in media_type else "application/octet-stream"
    if isinstance(body, str):
        return body.encode(), media_type if "*" not in media_type else "text/plain; charset=utf-8"
    return encode(body), "application/json" if "*" in media_type else media_type


def _field_pairs(name: str, value: Any, body: Body) -> Iterator[tuple[str, str]]:
    style = body.styles.get(name, "deepObject" if isinstance(value, dict) else "form")
    return _form_pairs(name, value, style, explode=True)


def _multipart(fields: Mapping[str, Any]) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    parts: list[bytes] = []
    for name, given in fields.items():
        for value in given if isinstance(given, list) else [given]:
            shown = "".join(f"%{ord(c):02X}" if c in '"\r\n' else c for c in name)
            disposition = f'form-data; name="{shown}"'
            if isinstance(value, bytes):
                content, kind = value, "application/octet-stream"
                disposition += f'; filename="{shown}"'
            elif isinstance(value, dict | list):
                content, kind = msgspec.json.encode(value), "application/json"
            else:
                content, kind = _text(value).encode(), ""
            headers = f"Content-Disposition: {disposition}\r\n" + (
                f"Content-Type: {kind}\r\n" if kind else ""
            )
            parts.append(f"--{boundary}\r\n{headers}\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"{MULTIPART}; boundary={boundary}"
