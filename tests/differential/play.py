"""One conversation with one server, and its verdict against another's."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tests.differential.answers import Pairs, Placeholders, agreement, ordered
from tests.differential.connection import Server, Watch
from tests.differential.conversation import Conversation, Step, at, fill
from tests.differential.kubectl import Kubectl

_OWN_COLUMNS = re.compile(
    r"^/apis/(?!(?:[^/]+\.k8s\.io|[a-z]+)/)[^/]+/(?!.*/scale$)"
)  # a CRD's, which are compared to the letter
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FILLING_TRIES = 12
"""A cache that is filled from a webhook which nobody reaches is never full."""


class Side:
    """A server in a run: what is installed there once, and conversations with it."""

    def __init__(self, server: Server, run: str, kubectl: Sequence[str] = ()) -> None:
        self.server = server
        self.run = run
        self.speaks_cbor = True
        self._kubectl = kubectl
        self._installed: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._ready: set[str] = set()
        self._pool = ThreadPoolExecutor(
            32
        )  # its threads keep their connections from one conversation to the next

    def start(self, conversation: Conversation, suffix: str) -> Future[list[tuple[int, dict[str, Any]]]]:
        """Plays a conversation on another thread."""
        return self._pool.submit(lambda: list(self.play(conversation, suffix)))

    def install(self, crd: dict[str, Any]) -> None:
        """Creates a CRD and waits until it is served; once for each different one."""
        crd = fill(crd, {"run": self.run})
        name = crd["metadata"]["name"]
        with self._lock:
            lock = self._installed.setdefault(name, threading.Lock())
        with lock:
            if name in self._ready:
                return
            answer = self.server.ask({"method": "POST", "path": CRDS, "body": crd})
            if answer["status"] not in (201, 409):
                raise RuntimeError(f"{name}: {json.dumps(answer['body'])[:600]}")
            version = next(v["name"] for v in crd["spec"]["versions"] if v["served"])
            path = f"/apis/{crd['spec']['group']}/{version}/{crd['spec']['names']['plural']}?limit=1"
            for _ in range(200):
                if self.server.ask({"method": "GET", "path": path})["status"] == 200:
                    break
                time.sleep(0.05)
            self._ready.add(name)

    def clear(self) -> None:
        """Takes away what was installed."""
        for name in sorted(self._ready):
            self.remove_definition(name)

    def remove_definition(self, name: str) -> None:
        """Deletes a CRD; it would stay for as long as an object of it has finalizers."""
        found = self.server.ask({"method": "GET", "path": f"{CRDS}/{name}"})["body"]
        spec = found.get("spec") if isinstance(found, dict) else None
        if spec:
            version = next(v["name"] for v in spec["versions"] if v["storage"])
            root = f"/apis/{spec['group']}/{version}"
            listed = self.server.ask({"method": "GET", "path": f"{root}/{spec['names']['plural']}"})["body"]
            for obj in (listed.get("items") if isinstance(listed, dict) else None) or ():
                if obj["metadata"].get("finalizers"):
                    self._release(root, spec["names"]["plural"], obj["metadata"])
        self.server.ask({"method": "DELETE", "path": f"{CRDS}/{name}"})

    def _release(self, root: str, plural: str, metadata: dict[str, Any]) -> None:
        """Deletes an object that has finalizers, also where its namespace is gone already: no update is let in then,
        so the namespace is made again for it."""
        namespace = metadata.get("namespace")
        if not namespace:
            self.remove(f"{root}/{plural}/{metadata['name']}")
            return
        body = {"metadata": {"name": namespace}}
        made = (
            self.server.ask({"method": "POST", "path": "/api/v1/namespaces", "body": body})["status"] == 201
        )
        self.remove(f"{root}/namespaces/{namespace}/{plural}/{metadata['name']}")
        if made:
            self.end_namespace(namespace)

    def end_namespace(self, name: str) -> None:
        """Deletes a namespace, whether or not a controller runs that ends namespaces."""
        path = f"/api/v1/namespaces/{name}"
        if self.server.ask({"method": "DELETE", "path": path})["status"] in (200, 202):
            body = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name},
                "spec": {"finalizers": []},
            }
            self.server.ask({"method": "PUT", "path": f"{path}/finalize", "body": body})

    def remove(self, path: str) -> None:
        """Deletes an object for good, whatever its finalizers."""
        patch = {"method": "PATCH", "path": path, "body": {"metadata": {"finalizers": None}}}
        self.server.ask({**patch, "headers": {"Content-Type": "application/merge-patch+json"}})
        self.server.ask({"method": "DELETE", "path": path, "query": {"gracePeriodSeconds": "0"}})

    def open(self, conversation: Conversation, namespace: str) -> None:
        """Prepares a conversation."""
        for crd in conversation.crds:
            self.install(crd)
        if conversation.namespace:
            body = {"metadata": {"name": namespace}}
            self.server.ask({"method": "POST", "path": "/api/v1/namespaces", "body": body})

    def close(self, conversation: Conversation, namespace: str, made: set[str]) -> None:
        """Ends a conversation: its objects of cluster scope go, and its namespace."""
        for path in made:
            self.remove(path)
        if conversation.namespace:
            self.end_namespace(namespace)

    def play(self, conversation: Conversation, suffix: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
        """(position of the step, its answer in placeholders) for every step that is compared."""
        run = self.run + suffix
        label = re.sub(r"[^a-z0-9]", "-", conversation.name.rpartition(".")[2])[:30]
        variables: dict[str, Any] = {"run": self.run, "ns": f"d-{label}-{run}", "own": run}
        placeholders = Placeholders(self.run)
        watches: dict[str, Watch] = {}
        paths: dict[str, str] = {}
        made: set[str] = set()
        self.open(conversation, variables["ns"])
        commands = ExitStack()
        kubectl: Kubectl | None = None
        if any("kubectl" in step for step in conversation.steps):
            kubectl = commands.enter_context(Kubectl(self._kubectl, self.server, variables["ns"]))
        try:
            for number, raw in enumerate(conversation.steps):
                if not self.speaks_cbor and "cbor" in str({**raw, "body": None}):
                    continue
                step = fill({k: v for k, v in raw.items() if k != "expect"}, variables)
                if kubectl is not None and "kubectl" in step:
                    answer: dict[str, Any] | None = kubectl.run(step)
                else:
                    answer = self._step(step, watches)
                path = paths.setdefault(step["watch"], step["path"]) if "watch" in step else step.get("path")
                if answer is None:
                    continue
                made |= _made(step, answer)
                if not _OWN_COLUMNS.search(path or paths.get(step.get("take", ""), "")):
                    _undescribe(answer)
                for name, path in step.get("save", {}).items():
                    variables[name] = at(answer, path if path.split(".")[0] in answer else f"body.{path}")
                if not step.get("quiet"):
                    clean = placeholders.clean(_without(answer, raw.get("ignore", [])))
                    yield number, clean if self.speaks_cbor else _without_cbor(clean)
        finally:
            commands.close()
            for watch in watches.values():
                watch.close()
            self.close(conversation, variables["ns"], made)

    def _step(self, step: Step, watches: dict[str, Watch]) -> dict[str, Any] | None:
        if "sleep" in step:
            time.sleep(step["sleep"])
            return None
        if "watch" in step:
            watches[step["watch"]] = Watch(self.server, {"method": "GET", **step})
            time.sleep(step.get("settle", 0.3))
            return None
        if "take" in step:
            if step["take"] not in watches:
                return {"status": None, "events": [], "closed": True}
            return watches[step["take"]].take(step.get("count", 1), step.get("seconds", 3), step.get("skip"))
        answer = self.server.ask(step)
        for _ in range(FILLING_TRIES):
            if not is_filling(answer):
                break
            time.sleep(0.25)
            answer = self.server.ask(step)
        if "until" in step:
            end = time.monotonic() + step.get("seconds", 10)
            while not _met(answer, step["until"]) and time.monotonic() < end:
                time.sleep(0.1)
                answer = self.server.ask(step)
        return answer


def _made(step: Step, answer: dict[str, Any]) -> set[str]:
    """The path of an object of cluster scope that a step created."""
    path, body = step.get("path", ""), answer.get("body")
    if answer.get("status") != 201 or not isinstance(body, dict) or "/namespaces/" in path:
        return set()
    if step["method"] != "POST":
        return {path}
    name = at(answer, "body.metadata.name")
    return {f"{path.rstrip('/')}/{name}"} if name and body.get("kind") != "Status" else set()


def _undescribe(value: Any) -> None:
    """Takes the descriptions out of a Table's columns: those of built-in kinds are prose of the Kubernetes project,
    and no server has to repeat it (docs/fidelity.md)."""
    if isinstance(value, dict):
        for column in value.get("columnDefinitions") or ():
            if isinstance(column, dict):
                column.pop("description", None)
        for key in ("body", "object", "events", "cbor"):
            _undescribe(value.get(key))
    elif isinstance(value, list):
        for each in value:
            _undescribe(each)


def _without_cbor(value: Any) -> Any:
    """An answer whose lists of media types do not have CBOR."""
    if isinstance(value, dict):
        return {k: _without_cbor(each) for k, each in value.items() if "cbor" not in str(k)}
    if isinstance(value, list):
        return [_without_cbor(each) for each in value]
    return (
        re.sub(r", application/(\w+-patch\+)?cbor(-seq)?\b", "", value) if isinstance(value, str) else value
    )


def speaks_cbor(server: Server) -> bool:
    """Whether a server is asked in CBOR: a kube-apiserver is only with ``CBORServingAndStorage``."""
    step = {"method": "GET", "path": "/api/v1/namespaces", "headers": {"Accept": "application/cbor"}}
    return server.ask({**step, "query": {"limit": "1"}})["status"] != 406


def _met(answer: dict[str, Any], until: dict[str, Any]) -> bool:
    value = at(answer["body"], until["path"])
    return value == until["equals"] if until.get("equals") is not None else value is not None


def _without(answer: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    for path in paths:
        _drop(answer, path.split("."))
    return answer


def _drop(value: Any, parts: list[str]) -> None:
    first, rest = parts[0], parts[1:]
    if isinstance(value, list):
        numbers = range(len(value)) if first == "*" else [int(first)] if first.isdigit() else []
        for number in numbers:
            if rest and number < len(value):
                _drop(value[number], rest)
    elif isinstance(value, dict):
        for key in list(value) if first == "*" else [first]:
            if not rest:
                value.pop(key, None)
            elif key in value:
                _drop(value[key], rest)


@dataclass
class Verdict:
    """How far two servers agree on one conversation; ``rows`` has (step, level, wanted, got)."""

    conversation: Conversation
    rows: list[tuple[int, str | None, dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    error: str = ""

    def failing(self) -> list[tuple[int, str | None, dict[str, Any], dict[str, Any]]]:
        """The rows that do not agree to the letter, but for those that the reference has no answer for."""
        return [row for row in self.rows if row[1] != "text" and not dropped(row[2], row[3])]


def dropped(wanted: dict[str, Any], got: dict[str, Any]) -> bool:
    """Whether the reference closed the connection or still fills a watch cache, where the other server answers: there
    is nothing to compare."""
    return (wanted.get("status") == 0 and got.get("status") != 0) or (
        is_filling(wanted) and not is_filling(got)
    )


def is_filling(answer: dict[str, Any]) -> bool:
    """Whether a kube-apiserver asks to come back because it fills the watch cache of a changed definition."""
    message = at(answer, "body.message") if answer.get("status") == 429 else None
    return isinstance(message, str) and "(re)initializing" in message


def judge(reference: Side, ours: Side, conversation: Conversation, suffix: str) -> Verdict:
    """Plays a conversation with both servers, side by side."""
    verdict = Verdict(conversation)
    sides = {"reference": reference.start(conversation, suffix), "ours": ours.start(conversation, suffix)}
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    problems = []
    for name, future in sides.items():
        try:
            found[name] = future.result()
        except Exception as problem:  # one conversation that cannot be had does not end the run
            found[name] = []
            problems.append(f"{name}: {type(problem).__name__}: {problem}")
    verdict.error = "; ".join(problems)
    pairs = Pairs()
    for (number, wanted), (_, got) in zip(found["reference"], found["ours"], strict=False):
        pairs.meet(ordered(wanted), ordered(got))
        got = pairs.rename(got)
        verdict.rows.append((number, agreement(wanted, got), wanted, got))
    return verdict
