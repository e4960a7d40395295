"""Webhooks of tests: Python functions that a server for tests asks over real TLS, as a cluster asks webhooks."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias

from apimachinery.http.tls import ensure_certificate, server_context
from apimachinery.server.network.services import Address, server_name
from apimachinery.webhook.serving import ReviewServer

from .thread import ServerThread

Json: TypeAlias = dict[str, Any]
Judge: TypeAlias = Callable[[Json], bool | str | Json | None]
"""From an AdmissionRequest to what becomes of it: None or True allows, False or a text refuses; an object (of a
mutating webhook) is what the request's object becomes; a whole AdmissionResponse, which has ``allowed``, is sent."""
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


class Webhook:
    """A webhook in force; ``requests`` are the AdmissionRequests it was asked, oldest first."""

    def __init__(self, name: str, judge: Judge, remove: Callable[[], None]) -> None:
        self.name = name
        self.requests: list[Json] = []
        self.remove = remove
        self._judge = judge

    def answer(self, request: Json) -> Json:
        """The response to a request."""
        self.requests.append(request)
        verdict = self._judge(json.loads(json.dumps(request)))
        if verdict is None or verdict is True:
            return {"allowed": True}
        if verdict is False:
            return {"allowed": False}
        if isinstance(verdict, str):
            return {"allowed": False, "status": {"message": verdict}}
        if "allowed" in verdict:
            return verdict
        patch = json.dumps([{"op": "replace", "path": "", "value": verdict}]).encode()
        return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}


class RegisteredWebhooks:
    """All webhooks of one server; ``request`` calls it, ``services`` is its table of addresses."""

    def __init__(
        self, folder: Path, request: Callable[..., Any], services: dict[tuple[str, str], Address]
    ) -> None:
        self._folder = folder
        self._request = request
        self._services = services
        self._servers: dict[str, tuple[ServerThread[ReviewServer], str]] = {}
        self._count = 0

    def stop(self) -> None:
        """Ends all of them."""
        for thread, _ in self._servers.values():
            thread.stop()
        self._servers.clear()

    def register(
        self,
        kind: Literal["mutating", "validating"],
        judge: Judge,
        resources: Iterable[str],
        operations: Iterable[str],
        service: tuple[str, str] | None,
        fields: Json,
    ) -> Webhook:
        """See ``ApiServer.register_webhook``."""
        self._count += 1
        name, path = f"webhook-{self._count}.test.kubewright.dev", f"/{self._count}"
        host = "127.0.0.1" if service is None else server_name(*service)
        server, authority = self._serving(host)
        client: Json = {"caBundle": authority}
        if service is None:
            client["url"] = f"https://127.0.0.1:{server.port}{path}"
        else:
            self._services[service] = Address("127.0.0.1", server.port)
            client["service"] = {"namespace": service[0], "name": service[1], "path": path}
        configurations = f"{CONFIGURATIONS}/{kind}webhookconfigurations"

        def remove() -> None:
            self._request("DELETE", f"{configurations}/{name}")
            del server.application.answers[path]

        webhook = Webhook(name, judge, remove)
        server.application.answers[path] = webhook.answer
        stated: Json = {
            "name": name,
            "clientConfig": client,
            "rules": [rule_of(resource, operations) for resource in resources],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            **fields,
        }
        self._request("POST", configurations, {"metadata": {"name": name}, "webhooks": [stated]})
        return webhook

    def _serving(self, host: str) -> tuple[ReviewServer, str]:
        if host not in self._servers:
            certificate, key = ensure_certificate(self._folder / host, host)
            server = ReviewServer({}, server_context(certificate, key))
            authority = base64.b64encode(certificate.read_bytes()).decode()
            self._servers[host] = (ServerThread(server), authority)
        thread, authority = self._servers[host]
        return thread.server, authority


def rule_of(resource: str, operations: Iterable[str]) -> Json:
    """A rule for ``PLURAL[.GROUP][/SUBRESOURCE]``, all versions."""
    plural, slash, subresource = resource.partition("/")
    plural, _, group = plural.partition(".")
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": [f"{plural}{slash}{subresource}"],
    }
