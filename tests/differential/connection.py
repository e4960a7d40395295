"""Talking to a server: kept-alive connections, one for each thread; bodies in and out; watches."""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import json
import queue
import re
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.differential import protobuf
from tests.differential.conversation import Step

KEPT_HEADERS = {"content-type", "content-encoding", "allow", "retry-after", "vary", "location"}
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_UNFIT = re.compile(r"[^\x21-\x7e]")


class Server:
    """A base URL and a bearer token for each user."""

    def __init__(self, url: str, tokens: dict[str, str]) -> None:
        self.url = urllib.parse.urlsplit(url)
        self.tokens = tokens
        self._local = threading.local()

    @classmethod
    def of_kubeconfig(cls, path: Path) -> Server:
        """The server and user of a kubeconfig's current context. Certificates of users are not read."""
        config = yaml.load(path.read_text(), yaml.CSafeLoader)
        context = next(c["context"] for c in config["contexts"] if c["name"] == config["current-context"])
        cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == context["cluster"])
        user = next(u["user"] for u in config["users"] if u["name"] == context["user"])
        return cls(cluster["server"], {"admin": user.get("token", "")})

    def connect(self, timeout: float = 60) -> http.client.HTTPConnection:
        """A new connection; certificates are not checked: the servers compared are on this machine."""
        host, port = self.url.hostname or "127.0.0.1", self.url.port
        if self.url.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def close(self) -> None:
        """Closes this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()

    def headers(self, step: Step) -> dict[str, str]:
        """What is sent where the step does not say another."""
        head = {"User-Agent": "differential/1", "Accept": "application/json"}
        user = step.get("as", "admin")
        if user != "nobody" and self.tokens.get(user):
            head["Authorization"] = f"Bearer {self.tokens[user]}"
        head.update(step.get("headers", {}))
        return {key: value for key, value in head.items() if value is not None}

    def ask(self, step: Step) -> dict[str, Any]:
        """One request and its answer: ``status``, ``headers``, ``body``."""
        head = self.headers(step)
        body = encoded(step, head)
        status, found, raw = self._exchange(step["method"], target(step), body, head)
        kept = {key.lower(): value for key, value in found if key.lower() in KEPT_HEADERS}
        warnings = [value for key, value in found if key.lower() == "warning"]
        if warnings:
            kept["warning"] = warnings  # type: ignore[assignment]
        return {"status": status, "headers": kept, "body": decoded(raw, kept)}

    def _exchange(
        self, method: str, path: str, body: bytes | None, head: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self.connect()
            fresh = connection.sock is None
            try:
                connection.request(method, path, body=body, headers=head)
                answer = connection.getresponse()
                raw = answer.read()
            except (http.client.HTTPException, OSError) as problem:
                connection.close()
                # A kept connection may have been closed meanwhile; a new one that fails is the answer.
                if fresh or attempt == 2:
                    return 0, [], type(problem).__name__.encode()
                continue
            if answer.will_close:
                connection.close()
            return answer.status, answer.getheaders(), raw
        raise AssertionError


def target(step: Step) -> str:
    """The path with its query; the path itself is sent as it is, but for what no request line can have."""
    path = _UNFIT.sub(lambda found: urllib.parse.quote(found[0]), step["path"])
    query = step.get("query")
    if not query:
        return path
    pairs = [(k, v) for k, vs in query.items() for v in (vs if isinstance(vs, list) else [vs])]
    return path + "?" + urllib.parse.urlencode([(k, str(v)) for k, v in pairs])


def encoded(step: Step, head: dict[str, str]) -> bytes | None:
    """The bytes of a step's body; without a Content-Type it is JSON's."""
    if "text" in step:
        return str(step["text"]).encode()
    if "hex" in step:
        return bytes.fromhex("".join(step["hex"].split()))
    if "body" not in step:
        return None
    how = step.get("encoding", "json")
    if how == "cbor":
        import cbor2

        head.setdefault("Content-Type", "application/cbor")
        return b"\xd9\xd9\xf7" + cbor2.dumps(step["body"])
    if how == "yaml":
        head.setdefault("Content-Type", "application/yaml")
        return yaml.safe_dump(step["body"], allow_unicode=True).encode()
    if how == "protobuf":
        head.setdefault("Content-Type", "application/vnd.kubernetes.protobuf")
        return protobuf.encode(step["body"])
    head.setdefault("Content-Type", "application/json")
    # As Go's clients send it: kube-apiserver repeats parts of a body byte for byte, and compares some.
    return json.dumps(step["body"], ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def decoded(raw: bytes, head: dict[str, Any]) -> Any:
    """The answer as a value where its media type says how to read it, else as text or bytes."""
    if head.get("content-encoding") == "gzip":
        raw = gzip.decompress(raw)
    kind = head.get("content-type", "")
    if not raw:
        return None
    try:
        if "json" in kind:
            return _json_values(raw.decode())
        if "yaml" in kind:
            return yaml.load(raw, Loader=_LOADER)  # every scalar as the text that it is
        if "cbor" in kind:
            return {"cbor": _cbor_values(raw)}
        if "protobuf" in kind:
            return protobuf.decode(raw)
        return {"text": raw.decode()}
    except (ValueError, yaml.YAMLError, IndexError):
        return {"unreadable": base64.b64encode(raw[:300]).decode()}


def _number(text: str) -> Any:
    """A number with a point or an exponent; one that is spelled otherwise than usual keeps its spelling."""
    value = float(text)
    return value if str(value) == text else {"number": text}


def _json_values(text: str) -> Any:
    decoder, values, place = json.JSONDecoder(parse_float=_number), [], 0
    while place < len(text):
        value, place = decoder.raw_decode(text, place)
        values.append(value)
        while place < len(text) and text[place].isspace():
            place += 1
    return values[0] if len(values) == 1 else values


def _cbor_values(raw: bytes) -> Any:
    import io

    import cbor2

    stream, values = io.BytesIO(raw), []
    while stream.tell() < len(raw):
        values.append(_plain(cbor2.load(stream)))
    return values[0] if len(values) == 1 else values


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if type(value).__name__ == "CBORTag":
        return {f"tag {value.tag}": _plain(value.value)}
    return value


class Watch:
    """A watch held open; events are read on a thread of its own."""

    def __init__(self, server: Server, step: Step) -> None:
        self.status: int | None = None
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._answered = threading.Event()
        self._connection = server.connect()
        self._connection.request("GET", target(step), headers=server.headers(step))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            answer = self._connection.getresponse()
            self.status = answer.status
            self._answered.set()
            for line in answer:
                if line.strip():
                    self._events.put(json.loads(line))
        except Exception as problem:  # whatever breaks the stream is the last that it says
            self._events.put({"type": "BROKEN", "error": type(problem).__name__})
        finally:
            self._answered.set()
            self._events.put(None)

    def take(self, count: int, seconds: float, skip: str | None = None) -> dict[str, Any]:
        """The next ``count`` events, fewer where they do not come within ``seconds``."""
        self._answered.wait(10)
        events: list[dict[str, Any]] = []
        closed, end = False, time.monotonic() + seconds
        while len(events) < count and time.monotonic() < end:
            try:
                event = self._events.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                break
            if event is None:
                closed = True
                break
            if skip is None or event.get("type") != skip:
                events.append(event)
        return {"status": self.status, "events": events, "closed": closed}

    def close(self) -> None:
        """Ends the watch."""
        if self._connection.sock is not None:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()
