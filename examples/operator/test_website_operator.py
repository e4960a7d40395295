"""The operator on a server for tests, without and with faults on its way there. Run by ``make test``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from website_operator import clean_up, reconcile

from apimachinery.client import Config, ReflectorOptions, RetryPolicy
from apimachinery.controller import Controller, Election, ExponentialBackoff, Operator
from apimachinery.meta.errors import ApiError
from kubernetes_api.apps_v1 import Deployment
from kubernetes_api.client import Client
from kubernetes_api.core_v1 import Service
from kubewright.testing import ApiServer, FaultProxy
from website_api.example_v1 import Website

SEEDS = int(os.environ.get("FAULT_RUNS", "3"))
QUICK = ReflectorOptions(patient=True, first_wait=0.01, longest_wait=0.2, silence=2.0)


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(crds=[Path(__file__).parent / "crds"]) as running:
        yield running


class World:
    """What is beside the operator: users, and what Deployments become."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self.namespace = namespace

    def path(self, kind: str) -> str:
        group = {"websites": "example.kubewright.dev/v1", "deployments": "apps/v1"}.get(kind)
        return f"/{f'apis/{group}' if group else 'api/v1'}/namespaces/{self.namespace}/{kind}"

    def get(self, kind: str, name: str) -> Any:
        try:
            return self._server.request("GET", f"{self.path(kind)}/{name}")
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def create(self, name: str, **spec: object) -> None:
        body = {"apiVersion": "example.kubewright.dev/v1", "kind": "Website", "metadata": {"name": name}}
        self._server.request("POST", self.path("websites"), {**body, "spec": spec})

    def change(self, name: str, **spec: object) -> None:
        target = f"{self.path('websites')}/{name}"
        self._server.request("PATCH", target, {"spec": spec}, "application/merge-patch+json")

    def delete(self, kind: str, name: str) -> None:
        self._server.request("DELETE", f"{self.path(kind)}/{name}")

    def roll_out(self) -> None:
        """Every Deployment gets the copies it wants."""
        for found in self._server.request("GET", self.path("deployments"))["items"]:
            wanted = found["spec"]["replicas"]
            if found.get("status", {}).get("readyReplicas", 0) != wanted:
                status = {"status": {"replicas": wanted, "readyReplicas": wanted}}
                target = f"{self.path('deployments')}/{found['metadata']['name']}/status"
                try:
                    self._server.request("PATCH", target, status, "application/merge-patch+json")
                except ApiError as error:
                    if error.code != 404:  # collected meanwhile
                        raise

    def reasons(self) -> set[str]:
        return {event["reason"] for event in self._server.request("GET", self.path("events"))["items"]}

    def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        ends = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < ends, "the world did not become as it should"
            self.roll_out()
            time.sleep(0.02)


def controller() -> Controller[Website]:
    """The example's, made anew for each run, and with shorter waits."""
    return Controller(
        for_=Website,
        owns=[Deployment, Service],
        name="website-operator",
        reconcile=reconcile,
        finalizer="example.kubewright.dev/site",
        finalize=clean_up,
        limiter=ExponentialBackoff(0.005, 0.2),
    )


def life_of_a_website(world: World) -> None:
    """From the first wish to the last trace."""
    world.create("shop", image="shop:1", replicas=2)
    world.until(lambda: ((world.get("websites", "shop") or {}).get("status") or {}).get("ready") == 2)
    assert world.get("websites", "shop")["status"]["address"] == f"shop.{world.namespace}.svc"
    assert world.get("services", "shop")["spec"]["ports"][0]["targetPort"] == 80
    world.change("shop", replicas=3, image="shop:2")
    world.until(lambda: (world.get("websites", "shop")["status"]).get("ready") == 3)
    (container,) = world.get("deployments", "shop")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "shop:2"
    world.delete("deployments", "shop")  # a mistake, somebody's
    world.until(lambda: world.get("deployments", "shop"))
    world.until(lambda: (world.get("websites", "shop")["status"]).get("ready") == 3)
    world.delete("websites", "shop")
    for kind in ("websites", "deployments", "services"):
        world.until(lambda kind=kind: world.get(kind, "shop") is None)  # type: ignore[misc]


def test_a_website_is_served_changed_and_removed(server: ApiServer) -> None:
    with server.namespace() as namespace, Client(Config.load(server.kubeconfig)) as client:
        election = Election(name="website-operator", namespace=namespace)
        with Operator(client, [controller()], namespace=namespace, election=election, options=QUICK):
            world = World(server, namespace)
            life_of_a_website(world)
            assert world.reasons() == {"Scaled", "Removed"}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_faults_change_nothing_in_the_end(server: ApiServer, seed: int) -> None:
    """One request in five meets a fault; FAULT_RUNS says how many seeds are tried."""
    with server.namespace() as namespace, FaultProxy(lambda: server.port, delay_seconds=0.02) as proxy:
        proxy.random(seed, rate=0.2)
        retry = RetryPolicy(attempts=3, first_wait=0.005, longest_wait=0.05)
        with Client(Config(server=proxy.url), retry=retry, timeout=5) as client:
            election = Election(name="website-operator", namespace=namespace, retry_seconds=0.1)
            operator = Operator(client, [controller()], namespace=namespace, election=election, options=QUICK)
            with operator:
                life_of_a_website(World(server, namespace))
        assert proxy.log  # there were some
