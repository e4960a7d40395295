"""An operator: each Website gets a Deployment and a Service, and says how many of its copies are ready."""

from __future__ import annotations

import logging
import sys

from apimachinery.controller import Context, Controller, Election, Operator
from kubernetes_api.apps_v1 import Deployment, DeploymentSpec
from kubernetes_api.client import Client
from kubernetes_api.core_v1 import (
    Container,
    ContainerPort,
    PodSpec,
    PodTemplateSpec,
    Service,
    ServicePort,
    ServiceSpec,
)
from kubernetes_api.meta_v1 import LabelSelector, ObjectMeta
from website_api.example_v1 import Website, WebsiteStatus

websites = Controller(
    for_=Website, owns=[Deployment, Service], name="website-operator", finalizer="example.kubewright.dev/site"
)


@websites.reconciler
def reconcile(context: Context[Website], site: Website) -> None:
    name, labels = context.request.name, {"website": context.request.name}
    port = site.spec.port or 80
    container = Container(name="web", image=site.spec.image, ports=[ContainerPort(container_port=port)])
    pod = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container]))
    selector = LabelSelector(match_labels=labels)
    spec = DeploymentSpec(replicas=site.spec.replicas, selector=selector, template=pod)
    deployment = context.apply(Deployment(metadata=ObjectMeta(name=name), spec=spec))
    ports = [ServicePort(port=80, target_port=port)]
    context.apply(Service(metadata=ObjectMeta(name=name), spec=ServiceSpec(selector=labels, ports=ports)))
    ready = (deployment.status.ready_replicas if deployment.status else None) or 0
    if site.status is None or site.status.ready != ready:
        context.event("Normal", "Scaled", f"{ready} of {site.spec.replicas} copies are ready")
    address = f"{name}.{context.request.namespace}.svc"
    generation = site.metadata.generation
    site.status = WebsiteStatus(ready=ready, address=address, observed_generation=generation)
    context.write_status(site)


@websites.finalizer
def clean_up(context: Context[Website], site: Website) -> None:
    context.event("Normal", "Removed", f"nobody serves {site.spec.image} any more")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    with Client() as client:
        election = Election(name="website-operator", namespace=sys.argv[1] if sys.argv[1:] else "default")
        Operator(client, [websites], election=election, probes_port=8080).run()
