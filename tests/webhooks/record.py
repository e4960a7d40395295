"""Plays the cases of ``recorded.yaml`` against any server, and says what is otherwise.

python -m tests.webhooks.record URL TOKEN [NAME …]      (an empty TOKEN sends none)
"""

from __future__ import annotations

import json
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.webhooks.hooks import ANSWERS, Hooks

A = "/apis/admissionregistration.k8s.io/v1"
SPACE = "webhooks-recorded"
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
BODY = {"metadata": {"name": "made"}, "data": {"x": "1"}}
Json = dict[str, Any]


class Cluster:
    """A server over HTTPS or HTTP."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._context = ssl._create_unverified_context()

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Code, decoded answer, warnings."""
        headers = {"Content-Type": content_type, "User-Agent": "record/1"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        context = self._context if self._url.startswith("https") else None
        try:
            with urllib.request.urlopen(request, context=context, timeout=60) as answer:
                return answer.status, json.loads(answer.read()), answer.headers.get_all("Warning") or []
        except urllib.error.HTTPError as fault:
            return fault.code, json.loads(fault.read()), fault.headers.get_all("Warning") or []


def configuration(kind: str, name: str, hook: Json, space: str = SPACE) -> Json:
    """A configuration of one webhook for ConfigMaps of a namespace."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind.capitalize()}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "hook.webhooks.example.com",
                "rules": [rule],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 2,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space}},
                **hook,
            }
        ],
    }


class Player:
    """Plays cases in a namespace; ``wait`` is how long a server takes until a configuration is in force. Players of
    different namespaces do not see each other's webhooks."""

    def __init__(self, cluster: Cluster, wait: float, space: str = SPACE) -> None:
        self._cluster = cluster
        self._wait = wait
        self._space = space
        self._hooks, self._other = Hooks(ANSWERS), Hooks(ANSWERS)
        cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        service = {"metadata": {"name": "there"}, "spec": {"ports": [{"port": 443}]}}
        cluster.ask("POST", f"/api/v1/namespaces/{space}/services", service)

    def close(self) -> None:
        self._hooks.close()
        self._other.close()
        self._cluster.ask("DELETE", f"/api/v1/namespaces/{self._space}/services/there")
        self._cluster.ask("DELETE", f"/api/v1/namespaces/{self._space}")

    def _words(self) -> list[tuple[str, str]]:
        hooks, other = self._hooks, self._other
        return [("OTHERCA", other.ca), ("CA", hooks.ca), ("PORT", str(hooks.port)), ("SPACE", self._space)]

    def play(self, case: Json) -> Json:
        """What a create answers while the case's webhook is in force."""
        text = json.dumps(case["hook"])
        for word, value in self._words():
            text = re.sub(rf"\b{word}\b", value, text)
        cluster, kind = self._cluster, case.get("kind", "validating")
        plural, name = f"{A}/{kind}webhookconfigurations", f"webhooks-{kind}"
        if self._space != SPACE:
            name = f"{self._space}-{kind}"
        stated = configuration(kind, name, json.loads(text), self._space)
        code, said, _ = cluster.ask("POST", plural, stated)
        if code != 201:
            return {"code": code, "config": said.get("message")}
        try:
            time.sleep(self._wait)
            maps = f"/api/v1/namespaces/{self._space}/configmaps"
            code, shown, warnings = cluster.ask("POST", maps, case.get("body", BODY))
            if code < 300:
                cluster.ask("DELETE", f"{maps}/{shown['metadata']['name']}")
        finally:
            cluster.ask("DELETE", f"{plural}/{name}")
        found: Json = {"code": code}
        if code < 300:
            found["data"] = shown.get("data")
        else:
            found |= {key: shown.get(key) for key in ("message", "reason", "details")}
        found["warnings"] = warnings
        text = UID.sub("UID", json.dumps(found))
        for word, value in self._words():
            text = text.replace(value, word)
        shown_again: Json = json.loads(text)
        return shown_again


@cache
def cases() -> dict[str, Json]:
    """The recorded cases by name."""
    loaded: dict[str, Json] = yaml.load(
        (Path(__file__).parent / "recorded.yaml").read_text(), yaml.CSafeLoader
    )
    return loaded


def differences(want: Json, found: Json) -> Json:
    """What is otherwise than recorded: wanted and found by key."""
    wanted = {"data": BODY["data"], "warnings": [], **want} if want["code"] == 201 else want
    return {key: (value, found.get(key)) for key, value in wanted.items() if value != found.get(key)}


def main(url: str, token: str, *names: str) -> None:
    """Plays all cases, or those named."""
    player = Player(Cluster(url, token), 0.6)
    try:
        for name, case in cases().items():
            if names and name not in names:
                continue
            if other := differences(case["want"], player.play(case)):
                print(name, json.dumps(other), case.get("differs", ""), flush=True)
    finally:
        player.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
