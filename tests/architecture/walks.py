"""How far a request walks through the house: the files of the runtime that answer it, and the moves between them.

    python -m tests.architecture.walks [get|list|watch|apply|create]

prints the files of the walks that are named, in the order they are entered, and which files each calls. A move is a
call from one file to another. Real requests on a socket are followed, after one of their kind: nothing is compiled or
imported any more. What other tasks of the server do meanwhile is left out.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.crds import crd_text

from apimachinery.http.protocol import HttpConnection
from kubewright.testing import ApiServer

HERE = str(Path(sys.modules[HttpConnection.__module__].__file__ or "").parents[1]) + "/"
THINGS = "/apis/example.com/v1/namespaces/default/things"
NAMES = ("get", "list", "watch", "apply", "create")
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
SPEC = """
type: object
properties: {size: {type: integer, minimum: 0}, kind: {type: string, default: plain}}
x-kubernetes-validations: [{rule: self.size < 100}]
"""
CRD = json.loads(crd_text("Thing", SPEC))
POLICY = {
    "metadata": {"name": "replicas"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["apps"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["deployments"],
                }
            ]
        },
        "validations": [{"expression": "object.spec.replicas <= 5"}],
    },
}
BINDING = {
    "metadata": {"name": "replicas"},
    "spec": {"policyName": "replicas", "validationActions": ["Deny"]},
}


@dataclass
class Walk:
    """What one request entered: files in order, and calls from one to another."""

    files: dict[str, None] = field(default_factory=dict)
    moves: list[tuple[str, str]] = field(default_factory=list)


_WALK: ContextVar[Walk | None] = ContextVar("walk", default=None)
_files: dict[CodeType, str] = {}


def _file_of(code: CodeType) -> str:
    """The file below ``apimachinery``; empty for all others."""
    known = _files.get(code)
    if known is None:
        path = code.co_filename
        known = _files[code] = path.removeprefix(HERE) if path.startswith(HERE) else ""
    return known


def _note(frame: FrameType, event: str, argument: object) -> None:
    if event != "call" or (walk := _WALK.get()) is None or not (file := _file_of(frame.f_code)):
        return
    walk.files[file] = None
    caller = frame.f_back
    while caller is not None and not (before := _file_of(caller.f_code)):
        caller = caller.f_back
    if caller is not None and before != file:
        walk.moves.append((before, file))


@contextmanager
def _followed() -> Iterator[list[Walk]]:
    """Within, every piece that a connection receives begins a walk."""
    walks: list[Walk] = []
    received = HttpConnection.data_received

    def data_received(self: HttpConnection, data: bytes) -> None:
        walks.append(Walk())
        token = _WALK.set(walks[-1])
        try:
            sys.setprofile(_note)
            received(self, data)
        finally:
            _WALK.reset(token)

    HttpConnection.data_received = data_received  # type: ignore[method-assign]
    try:
        yield walks
    finally:
        HttpConnection.data_received = received  # type: ignore[method-assign]


def _deployment(number: int) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "web", "image": "nginx:1.27", "ports": [{"containerPort": 80}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"web-{number}"},
        "spec": spec,
    }


def _thing(size: int) -> dict[str, Any]:
    head = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}
    return {**head, "spec": {"size": size}}


def requests(server: ApiServer) -> dict[str, Callable[[int], Any]]:
    """By the name of a walk: the request, told which one of its kind it is."""
    apply = "application/apply-patch+yaml"
    return {
        "get": lambda n: server.request("GET", f"{THINGS}/one"),
        "list": lambda n: server.request("GET", THINGS),
        "watch": lambda n: server.request("GET", f"{THINGS}?watch=true&timeoutSeconds=1"),
        "apply": lambda n: server.request(
            "PATCH", f"{THINGS}/one?fieldManager=me&force=true", _thing(n), apply
        ),
        "create": lambda n: server.request("POST", DEPLOYMENTS, _deployment(n)),
    }


def measure(names: Sequence[str]) -> dict[str, Walk]:
    """Sends each request several times to a server of its own. Returns the shortest walk but for the first:
    seconds that begin and times that fall into new buckets only add to a walk."""
    threading.setprofile(_note)
    try:
        with ApiServer() as server:
            server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
            server._wait_until_served(CRD)
            server.request("POST", f"{POLICIES}/validatingadmissionpolicies", POLICY)
            server.request("POST", f"{POLICIES}/validatingadmissionpolicybindings", BINDING)
            server.request("POST", THINGS, _thing(1))
            sent = requests(server)
            shortest = {}
            with _followed() as walks:
                for name in names:
                    walked = []
                    for number in range(2, 6 if name == "watch" else 14):
                        walks.clear()
                        sent[name](number)
                        # A body may come in a piece of its own.
                        walked.append(_joined(walks))
                    shortest[name] = min(walked[1:], key=lambda walk: (len(walk.files), len(walk.moves)))
            return shortest
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]


def _joined(walks: Sequence[Walk]) -> Walk:
    files = {file: None for walk in walks for file in walk.files}
    return Walk(files, [move for walk in walks for move in walk.moves])


def main(names: Sequence[str]) -> None:
    for name, walk in measure(names or NAMES).items():
        print(f"{name}: {len(walk.files)} files, {len(walk.moves)} moves")
        for file in walk.files if names else ():
            after = dict.fromkeys(to for source, to in walk.moves if source == file)
            print(f"  {file}" + (f" -> {', '.join(after)}" if after else ""))


if __name__ == "__main__":
    main(sys.argv[1:])
