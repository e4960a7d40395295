"""What a cluster needs to know of a package's webhook: who converts its CRDs, who fills in defaults, who validates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

Json = dict[str, Any]
CONVERT, DEFAULT, VALIDATE = "/convert", "/default", "/validate"
SECONDS = 10
INJECTED = "cert-manager.io/inject-ca-from"


class Reviewed(Protocol):
    """A resource at one version; ``has_status``: its status is written apart."""

    @property
    def group(self) -> str:
        """Its group."""

    @property
    def version(self) -> str:
        """Its version."""

    @property
    def plural(self) -> str:
        """What its path says."""

    @property
    def has_status(self) -> bool:
        """See above."""


def configurations(resources: Iterable[Reviewed], client: Json, failure_policy: str) -> Iterator[Json]:
    """Configurations that fill in defaults and validate, two for each group. ``client`` is a WebhookClientConfig
    without a path."""
    by_group: dict[str, list[Reviewed]] = {}
    for served in resources:
        by_group.setdefault(served.group, []).append(served)
    for group, members in sorted(by_group.items()):
        for kind, path in (("Mutating", DEFAULT), ("Validating", VALIDATE)):
            yield _configuration(kind, group, members, reached(client, path), failure_policy)


def definitions(resources: Iterable[Reviewed]) -> list[str]:
    """The names of the CustomResourceDefinitions with several versions, whose objects the webhook converts."""
    versions: dict[tuple[str, str], set[str]] = {}
    for served in resources:
        versions.setdefault((served.group, served.plural), set()).add(served.version)
    return [f"{plural}.{group}" for (group, plural), several in versions.items() if len(several) > 1]


def conversions(resources: Iterable[Reviewed], client: Json) -> Iterator[Json]:
    """For each of these the part that names the converter, as a patch of a kustomization that has the definition."""
    for name in definitions(resources):
        yield _conversion(name, reached(client, CONVERT))


def injected(manifest: Json, certificate: str) -> Json:
    """A manifest into which cert-manager writes the authority of a Certificate (``NAMESPACE/NAME``)."""
    metadata = {**manifest["metadata"], "annotations": {INJECTED: certificate}}
    return {**manifest, "metadata": metadata}


def reached(client: Json, path: str) -> Json:
    """The clientConfig of a path."""
    if "url" in client:
        return {**client, "url": client["url"].rstrip("/") + path}
    return {**client, "service": {**client["service"], "path": path}}


def _configuration(
    kind: str, group: str, resources: list[Reviewed], client: Json, failure_policy: str
) -> Json:
    subresources = ["/status"] if kind == "Validating" else []
    names = dict.fromkeys(served.plural for served in resources)
    with_status = {served.plural for served in resources if served.has_status}
    rule = {
        "apiGroups": [group],
        "apiVersions": sorted({served.version for served in resources}),
        "operations": ["CREATE", "UPDATE"],
        "resources": [
            *names,
            *(f"{name}{sub}" for sub in subresources for name in names if name in with_status),
        ],
    }
    hook: Json = {
        "name": f"{'default' if kind == 'Mutating' else 'validate'}.{group}",
        "clientConfig": client,
        "rules": [rule],
        "admissionReviewVersions": ["v1", "v1beta1"],
        "sideEffects": "None",
        "timeoutSeconds": SECONDS,
        "failurePolicy": failure_policy,
        # Every version has defaults of its own, so an object comes at the version it was sent at; the webhook checks it
        # at all of them.
        "matchPolicy": "Exact",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": group},
        "webhooks": [hook],
    }


def _conversion(name: str, client: Json) -> Json:
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}},
    }
