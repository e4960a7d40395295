"""The Website operator with kopf; children are written with lightkube, since kopf has no client of its own."""

from __future__ import annotations

import sys
from typing import Any

import kopf
from lightkube import Client
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import (
    Container,
    ContainerPort,
    PodSpec,
    PodTemplateSpec,
    ServicePort,
    ServiceSpec,
)
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Service
from lightkube.types import PatchType

GROUP, VERSION, PLURAL = "example.kubewright.dev", "v1", "websites"
Website = create_namespaced_resource(GROUP, VERSION, "Website", PLURAL)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.persistence.finalizer = f"{GROUP}/site"
    settings.peering.name = "website-operator"  # wants kopf's own CRD in the cluster
    settings.peering.mandatory = False
    memo.client = Client(field_manager="website-operator")


@kopf.on.create(GROUP, VERSION, PLURAL)
@kopf.on.update(GROUP, VERSION, PLURAL)
@kopf.on.resume(GROUP, VERSION, PLURAL)
def reconcile(
    body: kopf.Body,
    spec: kopf.Spec,
    name: str,
    namespace: str,
    memo: kopf.Memo,
    patch: kopf.Patch,
    meta: kopf.Meta,
    **_: Any,
) -> None:
    owner, labels = [kopf.build_owner_reference(body)], {"website": name}
    port = spec.get("port", 80)
    metadata = {"name": name, "namespace": namespace, "ownerReferences": owner}
    container = Container(name="web", image=spec["image"], ports=[ContainerPort(containerPort=port)])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container]))
    wanted = DeploymentSpec(
        replicas=spec["replicas"], selector=LabelSelector(matchLabels=labels), template=template
    )
    made = ObjectMeta.from_dict({**metadata, "labels": labels})
    deployment = memo.client.apply(Deployment(metadata=made, spec=wanted), force=True)
    ports = ServiceSpec(selector=labels, ports=[ServicePort(port=80, targetPort=port)])
    memo.client.apply(Service(metadata=ObjectMeta.from_dict(metadata), spec=ports), force=True)
    patch.status["address"] = f"{name}.{namespace}.svc"
    patch.status["observedGeneration"] = meta["generation"]
    patch.status["ready"] = (deployment.status and deployment.status.readyReplicas) or 0


@kopf.on.event("apps", "v1", "deployments", labels={"website": kopf.PRESENT})
def deployment_changed(
    event: kopf.RawEvent, name: str, namespace: str, status: kopf.Status, memo: kopf.Memo, **_: Any
) -> None:
    site = next((s for s in memo.client.list(Website, namespace=namespace) if s.metadata.name == name), None)
    if site is None or site.metadata.deletionTimestamp:
        return
    if event["type"] == "DELETED":  # asks for a new one: an annotation is a change that kopf hears of
        touch = {"metadata": {"annotations": {"website/lost": str(event["object"]["metadata"]["uid"])}}}
        memo.client.patch(Website, name, touch, namespace=namespace, patch_type=PatchType.MERGE)
        return
    ready = status.get("readyReplicas", 0)
    if (site.status or {}).get("ready") != ready:
        found = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Website", "metadata": site.metadata.to_dict()}
        text = f"{ready} of {site['spec']['replicas']} copies are ready"
        kopf.event(found, type="Normal", reason="Scaled", message=text)
        change = {"status": {"ready": ready}}
        memo.client.patch(Website.Status, name, change, namespace=namespace, patch_type=PatchType.MERGE)


@kopf.on.field(GROUP, VERSION, PLURAL, field="metadata.annotations.website/lost")
def lost(**context: Any) -> None:
    reconcile(**context)


@kopf.on.delete(GROUP, VERSION, PLURAL)
def clean_up(body: kopf.Body, spec: kopf.Spec, **_: Any) -> None:
    kopf.event(body, type="Normal", reason="Removed", message=f"nobody serves {spec['image']} any more")


if __name__ == "__main__":
    kopf.run(
        namespaces=[sys.argv[1] if sys.argv[1:] else "default"],
        liveness_endpoint="http://0.0.0.0:8080/healthz",
    )
