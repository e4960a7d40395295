"""Failures as answers: in the form that the client asked for; what the storage refuses as etcd's refusals read through
kube-apiserver; warnings, which answers of both kinds carry.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from urllib.parse import quote

from apimachinery.http.messages import Request, Response
from apimachinery.meta.errors import ApiError, unreadable
from apimachinery.server.request.codecs import JSON, WireCodec
from apimachinery.server.request.negotiation import for_error
from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.interface import (
    StorageBusy,
    StorageError,
    StorageFull,
    StorageUnreachable,
    UnreadableRecord,
    ValueTooLarge,
)
from apimachinery.wire.json import DecodeFault, encode

log = logging.getLogger("kubewright.server")
WARNING_CHARACTERS = 4096
WARNING_CUT = 256


def unclear(request: Request) -> Response:
    """A path that ends where a special verb wants a resource."""
    url = quote(request.path) + (f"?{request.query_string}" if request.query_string else "")
    said = f'Internal Server Error: "{url}": failed to create RequestInfo: '
    said += f"unable to determine kind and namespace from url, {url}\n"
    shown = said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Response(500, shown.encode(), "text/plain; charset=utf-8")


def failure(request: Request, codecs: Iterable[WireCodec], error: ApiError) -> Response:
    """A failure in the form the client asked for."""
    codec = for_error(request.headers.get("accept", ""), codecs)
    headers = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
    if codec is not JSON:
        # An API of packages without field numbers has no protobuf form of a Status either.
        with contextlib.suppress(DecodeFault):
            return Response(error.code, codec.encode(error.status()), codec.media_type, headers)
    return Response(error.code, encode(error.status()) + b"\n", headers=headers)


def read_only() -> ApiError:
    """403 for a write where nothing can be written."""
    return ApiError(
        403, "Forbidden", "the server is read-only: it shows what is in its storage", has_details=False
    )


def storage_failure(refusal: StorageError) -> ApiError:
    """What the storage refuses, as etcd's refusals read through kube-apiserver: 500 without a reason."""
    if isinstance(refusal, ValueTooLarge):
        return ApiError(500, "", "etcdserver: request is too large", has_details=False)
    if isinstance(refusal, StorageFull):
        return ApiError(500, "", "etcdserver: mvcc: database space exceeded", has_details=False)
    if isinstance(refusal, StorageUnreachable):
        return ApiError(504, "Timeout", str(refusal), has_details=False, retry_after=1)
    if isinstance(refusal, StorageFileError):
        log.error("%s", refusal)
        return ApiError(500, "InternalError", f"the storage cannot be read: {refusal}", has_details=False)
    if isinstance(refusal, UnreadableRecord):
        return unreadable(str(refusal))
    if isinstance(refusal, StorageBusy):
        return ApiError(503, "ServiceUnavailable", str(refusal), retry_after=1)
    return ApiError(503, "ServiceUnavailable", "the storage is closed")


def warned(warnings: tuple[str, ...] | list[str]) -> tuple[tuple[str, str], ...]:
    """Warning headers (RFC 7234 section 5.5, code 299), each text once. Where all together have more than 4,096
    characters each is cut to 256, and what is beyond 4,096 then is left out, as in kube-apiserver."""
    if not warnings:
        return ()
    texts, length = _first(warnings)
    if length > WARNING_CHARACTERS:
        texts, _ = _first(warnings, WARNING_CUT)
    return tuple(("Warning", f"299 - {_quoted(text)}") for text in texts)


def _first(warnings: Iterable[str], cut: int | None = None) -> tuple[list[str], int]:
    """Texts up to the first with which they have more than WARNING_CHARACTERS, and how many they have; with ``cut``
    each has so many at most, and the last is the one that reaches WARNING_CHARACTERS."""
    seen, texts, length = set[str](), list[str](), 0
    for text in warnings:
        if length >= WARNING_CHARACTERS + (cut is None):
            break
        if text not in seen:
            seen.add(text)
            texts.append(text[:cut])
            length += len(texts[-1])
    return texts, length


def _quoted(text: str) -> str:
    kept = "".join(char if char.isprintable() else " " for char in text)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"') + '"'
