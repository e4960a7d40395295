"""Responses as values: of the type that an operation declares for their status and media type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from apimachinery.client.endpoint import TransportResponse
from apimachinery.openapi.encoding import is_json
from apimachinery.openapi.errors import HttpError, UnreadableAnswerError
from apimachinery.openapi.operation import Operation
from apimachinery.openapi.streams import EVENTS, LINES, EventReader, LineReader
from apimachinery.typed.decoders import decoder
from apimachinery.typed.unions import read_untagged

T = TypeVar("T")


def read_answer(operation: Operation[T], response: TransportResponse) -> T:
    """What a call gives: the body of a success, ``None`` where there is none. Raises ``HttpError`` for any other
    answer, ``UnreadableAnswerError`` for a body that does not fit its type."""
    said = f"{operation.method} {operation.path}"
    media_type = _media_type(response.headers)
    declared = _declared(operation.answers, response.code, media_type)
    is_success = 200 <= response.code < 300
    try:
        value = _decode(response.body, media_type, declared)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        if is_success:
            raise UnreadableAnswerError(
                said, response.code, response.headers, response.body, str(fault)
            ) from None
        value = response.body.decode("utf-8", "replace")
    if not is_success:
        raise HttpError(said, response.code, response.headers, response.body, value)
    answer: T = value
    return answer


def stream_reader(
    operation: Operation[Any], code: int, headers: Mapping[str, str]
) -> EventReader | LineReader:
    """What reads the lines of an answer that goes on."""
    media_type = _media_type(headers)
    if media_type == EVENTS:
        return EventReader()
    return LineReader(_decoder(_declared(operation.answers, code, media_type)))


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _declared(answers: Mapping[str, Mapping[str, Any]], code: int, media_type: str) -> Any:
    """The type of an answer; ``Any`` where none is declared."""
    by_media = next((answers[s] for s in (str(code), f"{code // 100}XX", "default") if s in answers), {})
    for name in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        if name in by_media:
            return by_media[name]
    if is_json(media_type) or not media_type:
        return next((kind for name, kind in by_media.items() if is_json(name)), Any)
    return Any


def _decode(content: bytes, media_type: str, declared: Any) -> Any:
    if not content:
        return None
    if media_type in LINES:
        reader = LineReader(_decoder(declared))
        return [part for line in content.split(b"\n") if (part := reader.take(line)) is not None]
    if is_json(media_type) or (not media_type and declared is not bytes and declared is not str):
        return _decoder(declared).decode(content)
    if declared is str or (declared is Any and media_type.startswith("text/")):
        return content.decode()
    if declared is not Any and declared is not bytes:
        return _decoder(declared).decode(content)
    return content


@cache
def _decoder(declared: Any) -> msgspec.json.Decoder[Any]:
    return decoder(declared, read_untagged)
