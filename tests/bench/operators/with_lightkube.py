"""The Website operator with lightkube, which has calls and watches; queue, election and probes are written out."""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from lightkube import Client
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.coordination_v1 import LeaseSpec
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
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Event, Service
from lightkube.types import PatchType

GROUP, VERSION = "example.kubewright.dev", "v1"
FINALIZER, MANAGER = f"{GROUP}/site", "website-operator"
Website = create_namespaced_resource(GROUP, VERSION, "Website", "websites")
log = logging.getLogger(MANAGER)


class Operator:
    def __init__(self, namespace: str) -> None:
        self.client = Client(namespace=namespace, field_manager=MANAGER)
        self.namespace = namespace
        self.work: queue.Queue[str] = queue.Queue()
        self.waits: dict[str, float] = {}
        self.identity = str(uuid.uuid4())
        self.stopped = threading.Event()

    def watch(self, kind: Any, labels: Any = None) -> None:
        while not self.stopped.is_set():
            try:
                found = self.client.list(kind, labels=labels)
                for item in found:
                    self.work.put(item.metadata.name)
                for _, item in self.client.watch(kind, labels=labels, resource_version=found.resourceVersion):
                    self.work.put(item.metadata.name)
            except Exception as error:
                log.warning("watch of %s: %s", kind.__name__, error)
                self.stopped.wait(1)

    def run(self) -> None:
        self.lead()
        threading.Thread(target=self.keep_leading, daemon=True).start()
        for kind, labels in ((Website, None), (Deployment, {"website": None}), (Service, {"website": None})):
            threading.Thread(target=self.watch, args=(kind, labels), daemon=True).start()
        while not self.stopped.is_set():
            try:
                name = self.work.get(timeout=0.2)
            except queue.Empty:
                continue
            try:
                self.reconcile(name)
                self.waits.pop(name, None)
            except Exception as error:
                wait = self.waits[name] = min(self.waits.get(name, 0.005) * 2, 60)
                log.warning("%s: %s", name, error)
                threading.Timer(wait, self.work.put, [name]).start()

    def reconcile(self, name: str) -> None:
        try:
            site = self.client.get(Website, name)
        except ApiError as error:
            if error.status.code == 404:
                return
            raise
        finalizers = site.metadata.finalizers or []
        if site.metadata.deletionTimestamp:
            if FINALIZER in finalizers:
                self.event(site, "Removed", f"nobody serves {site['spec']['image']} any more")
                left = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
                self.finalizers(site, left)
            return
        if FINALIZER not in finalizers:
            self.finalizers(site, [*finalizers, FINALIZER])
        labels, spec = {"website": name}, site["spec"]
        port = spec.get("port", 80)
        metadata = {"name": name, "namespace": self.namespace, "labels": labels}
        owner = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "Website",
            "name": name,
            "uid": site.metadata.uid,
        }
        metadata["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
        container = Container(name="web", image=spec["image"], ports=[ContainerPort(containerPort=port)])
        template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container]))
        selector = LabelSelector(matchLabels=labels)
        wanted = DeploymentSpec(replicas=spec["replicas"], selector=selector, template=template)
        deployment = self.client.apply(
            Deployment(metadata=ObjectMeta.from_dict(metadata), spec=wanted), force=True
        )
        ports = ServiceSpec(selector=labels, ports=[ServicePort(port=80, targetPort=port)])
        self.client.apply(Service(metadata=ObjectMeta.from_dict(metadata), spec=ports), force=True)
        ready = (deployment.status and deployment.status.readyReplicas) or 0
        old = site.status or {}
        if old.get("ready") != ready:
            self.event(site, "Scaled", f"{ready} of {spec['replicas']} copies are ready")
        address = f"{name}.{self.namespace}.svc"
        status = {"ready": ready, "address": address, "observedGeneration": site.metadata.generation}
        if status != old:
            self.client.patch(Website.Status, name, {"status": status}, patch_type=PatchType.MERGE)

    def finalizers(self, site: Any, finalizers: list[str]) -> None:
        change = {"resourceVersion": site.metadata.resourceVersion, "finalizers": finalizers}
        self.client.patch(Website, site.metadata.name, {"metadata": change}, patch_type=PatchType.MERGE)

    def event(self, site: Any, reason: str, text: str) -> None:
        about = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Website", "namespace": self.namespace}
        about |= {"name": site.metadata.name, "uid": site.metadata.uid}
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        made = {
            "metadata": {"generateName": f"{site.metadata.name}.", "namespace": self.namespace},
            "involvedObject": about,
            "type": "Normal",
            "reason": reason,
            "message": text,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "source": {"component": MANAGER},
        }
        self.client.create(Event.from_dict(made))

    def lead(self) -> None:
        while not self.take():
            self.stopped.wait(2)

    def keep_leading(self) -> None:
        renewed = time.monotonic()
        while not self.stopped.wait(5):
            try:
                if self.take():
                    renewed = time.monotonic()
            except Exception as error:
                log.warning("lease: %s", error)
            if time.monotonic() - renewed > 10:
                self.stopped.set()  # somebody else may lead by now

    def take(self) -> bool:
        now = datetime.now(UTC)
        spec = LeaseSpec(holderIdentity=self.identity, leaseDurationSeconds=15, renewTime=now)
        try:
            lease = self.client.get(Lease, MANAGER)
        except ApiError as error:
            if error.status.code != 404:
                raise
            self.client.create(Lease(metadata=ObjectMeta(name=MANAGER), spec=spec))
            return True
        held = lease.spec
        if held and held.holderIdentity not in (None, "", self.identity) and held.renewTime:
            if now < held.renewTime + timedelta(seconds=held.leaseDurationSeconds or 15):
                return False
        lease.spec = spec
        try:
            self.client.replace(lease)
        except ApiError as error:
            if error.status.code != 409:
                raise
            return False
        return True


class Probe(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()


if __name__ == "__main__":
    threading.Thread(target=HTTPServer(("", 8080), Probe).serve_forever, daemon=True).start()
    Operator(sys.argv[1] if sys.argv[1:] else "default").run()
