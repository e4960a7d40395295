"""What a cluster needs to know of a package's webhook: who converts its CRDs, who fills in defaults, who validates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.server.catalog.served import Served
from apimachinery.server.reviewing.packages import PackageReviews

Json = dict[str, Any]
CONVERT, DEFAULT, VALIDATE = "/convert", "/default", "/validate"
SECONDS = 10


def manifests(reviews: PackageReviews, client: Json, failure_policy: str) -> Iterator[Json]:
    """Configurations that fill in defaults and validate, and for each kind with several versions the part of its
    CustomResourceDefinition that names the converter, to apply server-side to the definition that is there.

    ``client`` is a WebhookClientConfig without a path.
    """
    by_group: dict[str, list[Served]] = {}
    for served in reviews.resources():
        by_group.setdefault(served.group, []).append(served)
    for group, resources in sorted(by_group.items()):
        for kind, path in (("Mutating", DEFAULT), ("Validating", VALIDATE)):
            yield _configuration(kind, group, resources, _at(client, path), failure_policy)
    for plural in dict.fromkeys((served.group, served.plural) for served in reviews.resources()):
        if len([served for served in by_group[plural[0]] if served.plural == plural[1]]) > 1:
            yield _conversion(*plural, _at(client, CONVERT))


def _at(client: Json, path: str) -> Json:
    if "url" in client:
        return {**client, "url": client["url"].rstrip("/") + path}
    return {**client, "service": {**client["service"], "path": path}}


def _configuration(kind: str, group: str, resources: list[Served], client: Json, failure_policy: str) -> Json:
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
        # Every version has rules of its own, so an object is judged at the version it was sent at.
        "matchPolicy": "Exact",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": group},
        "webhooks": [hook],
    }


def _conversion(group: str, plural: str, client: Json) -> Json:
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}},
    }
