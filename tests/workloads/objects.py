"""Objects of a namespace, by short names of their kinds, and what tests read of them."""

from __future__ import annotations

from typing import Any

from apimachinery.client.errors import ApiError
from kubewright.testing import ApiServer

PATHS = {
    "events": "/api/v1",
    "pods": "/api/v1",
    "services": "/api/v1",
    "endpoints": "/api/v1",
    "replicationcontrollers": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "controllerrevisions": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "cronjobs": "/apis/batch/v1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "horizontalpodautoscalers": "/apis/autoscaling/v2",
    "poddisruptionbudgets": "/apis/policy/v1",
}
LABELS = {"app": "web"}
MERGE = "application/merge-patch+json"


def template(labels: dict[str, str] | None = None, image: str = "image:1", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": labels or LABELS},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


class Objects:
    """Writes objects, lets the controllers settle, and reads what became of them."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self.server = server
        self.namespace = namespace

    def settle(self) -> None:
        self.server.settle()

    def path(self, plural: str, name: str = "") -> str:
        return f"{PATHS[plural]}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def create(self, plural: str, name: str, /, *, settle: bool = True, **fields: Any) -> Any:
        metadata = {"name": name, **fields.pop("metadata", {})}
        made = self.server.request("POST", self.path(plural), {"metadata": metadata, **fields})
        if settle:
            self.settle()
        return made

    def workload(self, plural: str, name: str = "web", /, *, settle: bool = True, **spec: Any) -> Any:
        """A workload of ``LABELS``."""
        pods = {"selector": {"matchLabels": LABELS}, "template": template(), **spec}
        return self.create(plural, name, settle=settle, spec=pods)

    def get(self, plural: str, name: str) -> Any:
        try:
            return self.server.request("GET", self.path(plural, name))
        except ApiError as error:
            assert error.code == 404
            return None

    def all(self, plural: str) -> list[Any]:
        items: list[Any] = self.server.request("GET", self.path(plural))["items"]
        return items

    def patch(self, plural: str, name: str, /, *, subresource: str = "", **fields: Any) -> Any:
        path = self.path(plural, name) + (f"/{subresource}" if subresource else "")
        made = self.server.request("PATCH", path, fields, MERGE)
        self.settle()
        return made

    def delete(self, plural: str, name: str, **options: Any) -> None:
        self.server.request("DELETE", self.path(plural, name), options or None)
        self.settle()

    def condition(self, plural: str, name: str, kind: str) -> Any:
        found = self.get(plural, name)["status"].get("conditions") or []
        return next((each for each in found if each["type"] == kind), None)

    def images(self) -> list[str]:
        return sorted(pod["spec"]["containers"][0]["image"] for pod in self.all("pods"))
