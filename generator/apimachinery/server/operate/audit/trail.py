"""The audit of one request: what is noted on its way, and the events made of it at its stages.

An event is encoded from pieces: the objects of request and answer are bytes already and go in as they are, unless
managed fields are to be left out. Field order and the rules for what is left out follow kube-apiserver's encoder.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from apimachinery.access.attributes import attributes_of
from apimachinery.access.authorization import Attributes
from apimachinery.http.messages import (
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
    User,
)
from apimachinery.server.operate.audit.policy import NAMES, NOTHING, AuditLevel, Kept
from apimachinery.wire.json import encode

Answer = Response | StreamResponse | UpgradeResponse
Sink = Callable[[bytes], None]
NOBODY = User("")
# Answers that are no API objects, though they are JSON.
_NO_OBJECTS = ("/openapi/", "/version", "/.well-known/", "/debug/")
_STREAMED = frozenset({"log", "exec", "attach", "portforward", "proxy"})
_STATUS_KEYS = ("metadata", "status", "message", "reason", "details", "code")
_ADDRESS = re.compile(r"[0-9A-Fa-f.:]+\Z")


class AuditedRequest:
    """See ``messages.Trail``. ``decode`` reads answers that are not JSON, None where they cannot be read."""

    def __init__(
        self,
        request: Request,
        audit_id: str,
        kept: Kept,
        sink: Sink,
        attributes: Attributes,
        decode: Callable[[str, bytes], Any],
    ) -> None:
        self.kept = kept
        self.audit_id = audit_id
        self.wants_objects = kept.level >= AuditLevel.REQUEST
        self.constraint = ""
        self._request = request
        self._sink = sink
        self._decode = decode
        self._attributes = attributes
        self._received = time.time()
        self._received_stamp = _stamp(self._received)
        self._object = b""
        self._pieces: tuple[bytes, bytes, bytes] | None = None
        self._name = attributes.name
        self._user = request.user or NOBODY

    def note_object(self, encoded: bytes) -> None:
        self._object = encoded

    def note_name(self, name: str) -> None:
        """Notes the name of a created object, where the path has none."""
        if name and not self._name:
            self._name = name

    def received(self) -> None:
        """Notes that the request is here."""
        self._emit("RequestReceived", self._received, None)

    def started(self, answer: Answer) -> None:
        """Notes that the head of a long answer is known."""
        self._emit("ResponseStarted", time.time(), answer)

    def complete(self, answer: Answer) -> None:
        """Notes that the answer is complete."""
        self._emit("ResponseComplete", time.time(), answer)

    def panicked(self, answer: Answer) -> None:
        """Notes that the server failed."""
        self._emit("Panic", time.time(), answer)

    @property
    def streams(self) -> bool:
        """Whether an answer takes its time by its nature."""
        return self._attributes.verb == "watch" or self._attributes.subresource in _STREAMED

    def _emit(self, stage: str, now: float, answer: Answer | None) -> None:
        if stage in self.kept.omitted_stages:
            return
        request = self._request
        if self._pieces is None:
            self._pieces = self._common()
        head, middle, tail = self._pieces
        parts = [head, stage.encode(), middle]
        if request.impersonator is not None and request.user is not None:
            parts += (b',"impersonatedUser":', encode(request.user.info()))
            if self.constraint:
                parts += (
                    b',"authenticationMetadata":',
                    encode({"impersonationConstraint": self.constraint}),
                )
        parts.append(tail)
        if self._attributes.is_resource:
            parts += (b',"objectRef":', encode(self._object_ref(stage)))
        if answer is not None:
            parts += self._of_answer(stage, answer)
        parts += (
            b',"requestReceivedTimestamp":"',
            self._received_stamp,
            b'","stageTimestamp":"',
            _stamp(now) if answer is not None else self._received_stamp,
            b'"',
        )
        if request.annotations and stage != "RequestReceived":
            parts += (b',"annotations":', encode(dict(sorted(request.annotations.items()))))
        parts.append(b"}\n")
        self._sink(b"".join(parts))

    def _common(self) -> tuple[bytes, bytes, bytes]:
        """What all events of the request share: before the stage, after it, and after whom he acts as."""
        request = self._request
        head = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"%b","auditID":%b,"stage":"' % (
            NAMES[self.kept.level].encode(),
            encode(self.audit_id),
        )
        middle = b'","requestURI":%b,"verb":%b,"user":%b' % (
            encode(request.uri.decode("latin-1") if request.uri else _uri(request)),
            encode(self._attributes.verb),
            encode(self._user.info()),
        )
        tail = b""
        if addresses := _addresses(request):
            tail += b',"sourceIPs":%b' % encode(addresses)
        if agent := request.headers.get("user-agent"):
            tail += b',"userAgent":%b' % encode(agent[:1024])
        return head, middle, tail

    def _object_ref(self, stage: str) -> dict[str, str]:
        attributes = self._attributes
        name = attributes.name if stage == "RequestReceived" else self._name
        ref = {
            "resource": attributes.resource,
            "namespace": attributes.namespace,
            "name": name,
            "apiGroup": attributes.group,
            "apiVersion": attributes.version,
            "subresource": attributes.subresource,
        }
        return {key: value for key, value in ref.items() if value}

    def _of_answer(self, stage: str, answer: Answer) -> list[bytes]:
        data, value = b"", None
        objects = answer.status >= 400 or not self._request.path.startswith(_NO_OBJECTS)
        if isinstance(answer, Response) and objects:
            data, value = self._body(answer)
        failed = isinstance(value, dict) and value.get("kind") == "Status" and value.get("apiVersion") == "v1"
        status: dict[str, Any] = {"metadata": {}, "code": answer.status}
        if failed and value is not None:
            status = {key: value[key] for key in _STATUS_KEYS if key in value}
            status["metadata"] = status.get("metadata") or {}
            status["code"] = answer.status
        parts = [b',"responseStatus":', encode(status)]
        if self._object and self.kept.level >= AuditLevel.REQUEST:
            parts += (b',"requestObject":', self._cleaned(self._object))
        if data and self.kept.level >= AuditLevel.REQUEST_RESPONSE:
            parts += (b',"responseObject":', self._cleaned(data))
        return parts

    def _body(self, answer: Response) -> tuple[bytes, Any]:
        """The body as JSON, and what it says where it is a failure."""
        body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        small = answer.status >= 400 or b'"kind":"Status"' in body[:100]
        wanted = self.kept.level >= AuditLevel.REQUEST_RESPONSE
        if not body or not (small or wanted):
            return b"", None
        kind = answer.content_type.partition(";")[0]
        if kind == "application/json":
            if small:
                value = self._decode(kind, body)
                return (body.rstrip(), value) if value is not None else (b"", None)
            return body.rstrip(), None
        value = self._decode(answer.content_type, body)
        return (encode(value), value if small else None) if isinstance(value, dict) else (b"", None)

    def _cleaned(self, data: bytes) -> bytes:
        if not self.kept.omit_managed_fields or b'"managedFields"' not in data:
            return data
        value = self._decode("application/json", data)
        if not isinstance(value, dict):
            return data
        for obj in (value, *(value.get("items") or ())):
            metadata = obj.get("metadata") if isinstance(obj, dict) else None
            if isinstance(metadata, dict):
                metadata.pop("managedFields", None)
        return encode(value)


def _uri(request: Request) -> str:
    return f"{request.path}?{request.query_string}" if request.query_string else request.path


FORWARDED_CHARACTERS = 4_096
"""What of X-Forwarded-For is looked at, which anybody may send: a hundred addresses."""


def _addresses(request: Request) -> list[str]:
    """Where the request comes from: whom proxies name, in their order, then who is connected. A proxy's word proves
    nothing; it is kept as kube-apiserver keeps it."""
    said = request.headers.get("x-forwarded-for", "")[:FORWARDED_CHARACTERS]
    named = [part.strip() for part in said.split(",")] if said else []
    real = request.headers.get("x-real-ip", "").strip()
    addresses = [address for address in named if _ADDRESS.match(address)]
    if real and _ADDRESS.match(real) and real not in addresses:
        addresses.append(real)
    if request.source and (not addresses or addresses[-1] != request.source):
        addresses.append(request.source)
    return addresses


_second: tuple[int, bytes] = (-1, b"")


def _stamp(seconds: float) -> bytes:
    """RFC 3339 with microseconds. What comes before the fraction is kept for the second that it holds."""
    global _second
    whole = int(seconds)
    if _second[0] != whole:
        _second = whole, b"%04d-%02d-%02dT%02d:%02d:%02d" % time.gmtime(whole)[:6]
    return b"%b.%06dZ" % (_second[1], int((seconds - whole) * 1e6))


def attributes_for(request: Request) -> Attributes:
    """What a request asks for, as the policy sees it."""
    return attributes_of(request, request.user or NOBODY)


__all__ = ["NOTHING", "AuditedRequest", "attributes_for"]
