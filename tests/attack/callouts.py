"""Whom the server asks may hang, be slow, say too much or talk nonsense: a quiet user next to a loud one.

Each kind of webhook is called for a loud user by many requests at once, while a quiet user, whose requests have nothing
to do with it, creates, reads and converts. Judged by ratios of one run: the quiet user's times next to the attack
against those alone. Keys that a controller cannot bring into order are tried in the same way.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import multiprocessing
import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.attack.livez import waited_since, waits
from tests.attack.target import Target
from tests.webhooks.hooks import Hooks, Raw, reviewed, whole

Json = dict[str, Any]
LOUD_CONNECTIONS = 40
PAUSE_SECONDS = 0.25
ROUNDS = 30
MOST_TIMES = 10.0
"""How much longer the quiet user's requests may take..."""
LEAST_SECONDS = 0.02
"""...where those alone take no less than this."""
FAILING = 60
HANG_SECONDS = 6.0
JSON = {"Content-Type": "application/json"}
A, CRDS = "/apis/admissionregistration.k8s.io/v1", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
_numbers = count()


def _converted(review: Json) -> Json:
    request = review["request"]
    objects = [{**obj, "apiVersion": request["desiredAPIVersion"]} for obj in request["objects"]]
    response = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    return {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}


def _hanging(review: Json) -> Raw:
    time.sleep(HANG_SECONDS)
    return Raw(b"")


def _slow(review: Json) -> Json:
    time.sleep(1.0)
    return reviewed(review)


def _made_before(**response: Any) -> Callable[[Json], bytes]:
    """An answer of which only the uid is made when it is asked for, so that it costs the attack little."""
    asked = {"apiVersion": "admission.k8s.io/v1", "request": {"uid": "the-uid-of-the-review"}}
    content = json.dumps(reviewed(asked, **response)).encode()
    return lambda review: content.replace(b"the-uid-of-the-review", review["request"]["uid"].encode(), 1)


def _patches() -> Json:
    """Copies of copies, and a long list that grows at its beginning."""
    steps: list[Json] = [{"op": "add", "path": "/x", "value": list(range(1_000))}]
    steps += [{"op": "add", "path": "/x/0", "value": "x"} for _ in range(60_000)]
    steps += [{"op": "copy", "from": "/x", "path": "/x/0"} for _ in range(30)]
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(steps).encode()).decode()}


def _busy(review: Json) -> Raw:
    return Raw(b"HTTP/1.1 503 X\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n")


_NESTED = b'{"response":' + b"[[]," * 1_400_000 + b"0"
ADMISSION: dict[str, Callable[[Json], Any]] = {
    "hanging": _hanging,
    "slow": _slow,
    "huge": _made_before(auditAnnotations={f"k{number}": "v" for number in range(200_000)}),
    "too-large": _made_before(auditAnnotations={"a": "x" * (32 << 20)}),
    "nested": lambda review: _NESTED,
    "patches": _made_before(**_patches()),
    "busy": _busy,
    "cut": lambda review: Raw(whole(200, reviewed(review))[:-20]),
}


def next_to_a_quiet_user(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Every hostile webhook in turn; servers of their own, which are told whom to ask for tokens and rights."""
    del target
    with _hooks_apart() as hooks, tempfile.TemporaryDirectory(prefix="kubewright-callouts-") as folder:
        asked = Path(folder) / "asked"
        cluster = {"server": hooks.url("review"), "certificate-authority-data": hooks.ca}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        asked.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                    "contexts": [context],
                    "current-context": "x",
                }
            )
        )
        flags = ["--anonymous-admin", "--tls=off", "--enable-admission-plugins", "ServiceAccount"]
        flags += ["--authorization-mode", "RBAC,Webhook", "--authorization-webhook-config-file", str(asked)]
        flags += ["--authentication-token-webhook-config-file", str(asked)]
        own = Target(Path(folder), flags)
        try:
            _prepare(own, hooks)
            with _quiet_user(own) as quiet:
                yield from _judged(own, hooks, quiet, options)
            yield from _failing_keys(own, options)
            if own.tracebacks():
                yield f"{own.tracebacks()} tracebacks in the log; the last: {own.last_traceback()}"
        finally:
            own.end()


@dataclass(frozen=True)
class _Apart:
    """Where hooks are served."""

    port: int
    ca: str

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}/{path}"


@contextlib.contextmanager
def _hooks_apart() -> Iterator[_Apart]:
    """In a process of their own: what they answer must not make the quiet user look slow."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield _Apart(*ours.recv())
    finally:
        ours.send(False)
        process.join(10)


@contextlib.contextmanager
def _quiet_user(own: Target) -> Iterator[Connection]:
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    given = (own.port, own.process.pid, theirs)
    process = spawning.Process(target=_be_quiet, args=given, daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.send(False)
        process.join(10)


def _serve(pipe: Connection) -> None:
    with Hooks({**ADMISSION, "quiet": _converted, "convert-hanging": _hanging, "review": _hanging}) as hooks:
        pipe.send((hooks.port, hooks.ca))
        pipe.recv()


def _prepare(own: Target, hooks: _Apart) -> None:
    for name in ("loud", "quiet"):
        own.make("/api/v1/namespaces", {"metadata": {"name": name}})
    subjects = [{"kind": "User", "name": f"{name}"} for name in ("loud", "quiet")]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": "attack"}, "roleRef": role, "subjects": subjects}
    own.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    for plural, path in (("quiets", "quiet"), ("louds", "convert-hanging")):
        own.make(CRDS, _definition(hooks, plural, path))
        obj = {"apiVersion": "example.com/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}}
        own.make(f"/apis/example.com/v1/namespaces/quiet/{plural}", obj)


def _definition(hooks: _Apart, plural: str, path: str) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    kind = plural.capitalize()
    client = {"url": hooks.url(path), "caBundle": hooks.ca}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": plural, "singular": plural, "kind": kind, "listKind": f"{kind}List"},
        "versions": [
            {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")
        ],
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def _judged(own: Target, hooks: _Apart, quiet: Connection, options: argparse.Namespace) -> Iterator[str]:
    maps = CONFIG_MAPS.format("loud")
    loud = {**JSON, "Impersonate-User": "loud"}
    reads = "/apis/example.com/v2/namespaces/quiet/louds/a"
    yield from _beside(
        own, quiet, "a conversion that hangs", lambda ask: ask("GET", reads, b"", loud), options
    )
    stranger = {"Impersonate-User": "stranger"}
    yield from _beside(own, quiet, "rights that hang", lambda ask: ask("GET", maps, b"", stranger), options)

    def unknown(ask: Any) -> None:
        ask("GET", maps, b"", {"Authorization": f"Bearer token-{next(_numbers)}"})

    yield from _beside(own, quiet, "tokens that hang", unknown, options)
    body = json.dumps({"metadata": {"generateName": "a-"}, "data": {"a": "b"}}).encode()
    for kind in ("validating", "mutating"):
        for name in ADMISSION:
            path = f"{A}/{kind}webhookconfigurations"
            own.make(path, _configuration(hooks, name))
            what = f"a {kind} webhook: {name}"
            yield from _beside(own, quiet, what, lambda ask: ask("POST", maps, body, loud), options)
            own.ask("DELETE", f"{path}/attack")


def _configuration(hooks: _Apart, name: str) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {
        "name": "attack.example.com",
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "loud"}},
        "clientConfig": {"url": hooks.url(name), "caBundle": hooks.ca},
    }
    return {"metadata": {"name": "attack"}, "webhooks": [hook]}


def _beside(
    own: Target, quiet: Connection, what: str, attack: Callable[[Any], object], options: argparse.Namespace
) -> Iterator[str]:
    """The quiet user alone, then next to the attack."""
    quiet.send(True)
    alone = quiet.recv()
    ending = threading.Event()
    open_: set[http.client.HTTPConnection] = set()

    def loud() -> None:
        def ask(*request: Any) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", own.port, timeout=HANG_SECONDS + 10)
            with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
                open_.add(connection)
                connection.request(*request)
                connection.getresponse().read()
            open_.discard(connection)

        while not ending.is_set():
            attack(ask)
            ending.wait(PAUSE_SECONDS)

    threads = [threading.Thread(target=loud, daemon=True) for _ in range(LOUD_CONNECTIONS)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    try:
        quiet.send(True)
        beside = quiet.recv()
    finally:
        ending.set()
    if options.verbose:
        print(f"    {what:36} alone {alone * 1000:5.0f} ms, next to it {beside * 1000:5.0f} ms", flush=True)
    # Nobody waits for what hangs: the server drops such a call when its client is gone.
    for connection in tuple(open_):
        with contextlib.suppress(OSError, AttributeError):  # not connected yet, or no longer
            connection.sock.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join(HANG_SECONDS + 15)
    if beside > MOST_TIMES * max(alone, LEAST_SECONDS):
        yield f"{what}: a quiet user's requests take {beside:.2f} s next to it, {alone:.3f} s alone"


def _be_quiet(port: int, process: int, pipe: Connection) -> None:
    """The quiet user, a process of its own. Each time it is told to go on, it sends how long its slow requests took in
    seconds (but for the two slowest), less what it and the server waited for a CPU."""
    headers, numbers = {**JSON, "Impersonate-User": "quiet"}, count()
    while pipe.recv():
        took = []
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)
        for _ in range(ROUNDS):
            server, own, began = waits(process), waits(), time.monotonic()
            for method, path, body in (
                ("POST", CONFIG_MAPS.format("quiet"), {"metadata": {"name": f"q-{next(numbers)}"}}),
                ("GET", "/apis/example.com/v2/namespaces/quiet/quiets", None),
            ):
                connection.request(method, path, json.dumps(body) if body else None, headers)
                answer = connection.getresponse()
                text = answer.read()
                if answer.status >= 300:
                    raise SystemExit(f"the quiet user got {answer.status} {text[:300]!r}")
            lasted = time.monotonic() - began
            took.append(max(0.0, lasted - waited_since(server, process) - waited_since(own)))
        connection.close()
        pipe.send(sorted(took)[-3])


def _failing_keys(own: Target, options: argparse.Namespace) -> Iterator[str]:
    """Namespaces whose quota lets a controller make nothing, next to new ones."""
    alone = max(_made(own, f"alone-{number}") for number in range(5))
    for number in range(FAILING):
        name = f"failing-{number}"
        own.make("/api/v1/namespaces", {"metadata": {"name": name}})
        quota = {"metadata": {"name": "none"}, "spec": {"hard": {"configmaps": "0"}}}
        own.make(f"/api/v1/namespaces/{name}/resourcequotas", quota)
        own.ask("DELETE", f"{CONFIG_MAPS.format(name)}/kube-root-ca.crt")
    beside = max(_made(own, f"beside-{number}") for number in range(5))
    if options.verbose:
        what = f"{FAILING} namespaces that fail"
        print(f"    {what:36} alone {alone * 1000:5.0f} ms, next to it {beside * 1000:5.0f} ms", flush=True)
    if beside > MOST_TIMES * max(alone, LEAST_SECONDS):
        yield f"a new namespace's objects take {beside:.2f} s next to others that fail, {alone:.3f} s alone"


def _made(own: Target, name: str) -> float:
    """Seconds until a new namespace has what each has."""
    own.make("/api/v1/namespaces", {"metadata": {"name": name}})
    began = time.monotonic()
    while own.ask("GET", f"{CONFIG_MAPS.format(name)}/kube-root-ca.crt")[0] != 200:
        if time.monotonic() - began > 60.0:
            break
        time.sleep(0.002)
    return time.monotonic() - began
