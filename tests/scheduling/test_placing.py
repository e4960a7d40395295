"""Where the scheduler puts a pod, why it puts it nowhere, and who gives way; laws over drawn clusters."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.scheduling.board import Board
from apimachinery.scheduling.filters import prepare
from apimachinery.scheduling.placing import place
from apimachinery.scheduling.tolerations import tolerates, untolerated

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def node(name: str, zone: str = "a", cpu: str = "4", **spec: Any) -> dict[str, Any]:
    labels = {ZONE: zone, HOST: name}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def pod(
    name: str, cpu: str = "1", on: str = "", labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}, **spec.pop("container", {})}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "labels": labels or {"app": "web"},
        "creationTimestamp": name,
    }
    return {
        "metadata": metadata,
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
    }


def near(kind: str, key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def chosen(nodes: list[Any], pods: list[Any], new: Any) -> str:
    return place(Board(nodes, pods), new).node


def why(nodes: list[Any], pods: list[Any], new: Any) -> str:
    return place(Board(nodes, pods), new).message(len(nodes))


def test_a_pod_goes_where_there_is_room() -> None:
    nodes = [node("n1", cpu="1"), node("n2")]
    assert chosen(nodes, [], pod("p", "2")) == "n2"
    assert why(nodes, [], pod("p", "9")) == "0/2 nodes are available: 2 Insufficient cpu."
    assert why([], [], pod("p")) == "no nodes available to schedule pods"


def test_pods_of_one_owner_go_apart() -> None:
    nodes = [node("n1"), node("n2"), node("n3")]
    owner = [{"uid": "set", "controller": True}]
    pods: list[Any] = []
    for number in range(6):
        new = pod(f"p{number}", "100m")
        new["metadata"]["ownerReferences"] = owner
        new["spec"]["nodeName"] = chosen(nodes, pods, new)
        pods.append(new)
    assert sorted(each["spec"]["nodeName"] for each in pods) == ["n1", "n1", "n2", "n2", "n3", "n3"]


def test_cordoned_and_tainted_nodes_take_nobody_who_does_not_tolerate_it() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    nodes = [node("n1", unschedulable=True), node("n2", taints=[taint])]
    text = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    assert why(nodes, [], pod("p")) == text
    assert chosen(nodes, [], pod("p", tolerations=[{"key": "gpu", "operator": "Exists"}])) == "n2"
    soft = {"key": "old", "effect": "PreferNoSchedule"}
    assert chosen([node("n1", taints=[soft]), node("n2", cpu="2")], [], pod("p")) == "n2"


def test_selectors_and_affinity_to_nodes() -> None:
    nodes = [node("n1", "a"), node("n2", "b")]
    assert chosen(nodes, [], pod("p", nodeSelector={ZONE: "b"})) == "n2"
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert chosen(nodes, [], pod("p", affinity={"nodeAffinity": required})) == "n2"
    preferred = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}}
    ]
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert chosen(nodes, [], pod("p", affinity=wish)) == "n2"
    text = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    assert why(nodes, [], pod("p", nodeSelector={ZONE: "c"})) == text


def test_affinity_between_pods() -> None:
    nodes = [node("n1", "a"), node("n2", "a"), node("n3", "b")]
    there = pod("old", on="n3")
    assert chosen(nodes, [there], pod("p", "100m", **near("podAffinity", ZONE))) == "n3"
    assert chosen(nodes, [], pod("p", **near("podAffinity", ZONE))), "the first of its kind goes anywhere"
    assert chosen(nodes, [there], pod("p", **near("podAntiAffinity", ZONE))) in ("n1", "n2")
    lonely = pod("old", on="n1", **near("podAntiAffinity", ZONE))
    assert chosen(nodes, [lonely], pod("p")) == "n3", "what is there may want none like it"


def test_pods_spread_over_zones() -> None:
    nodes = [node("n1", "a"), node("n2", "b"), node("n3", "b")]
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pods = [pod("a", on="n2")]
    assert chosen(nodes, pods, pod("p", topologySpreadConstraints=[constraint])) == "n1"
    full = [node("n1", "a", cpu="0"), *nodes[1:]]
    assert not chosen(full, pods, pod("p", topologySpreadConstraints=[constraint]))
    assert chosen(
        full,
        pods,
        pod("p", topologySpreadConstraints=[{**constraint, "whenUnsatisfiable": "ScheduleAnyway"}]),
    )


def test_host_ports_are_taken_once() -> None:
    port: Any = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    nodes = [node("n1"), node("n2")]
    pods = [pod("a", on="n1", **deepcopy(port))]
    assert chosen(nodes, pods, pod("p", **deepcopy(port))) == "n2"
    assert "free ports" in why(nodes[:1], pods, pod("p", **deepcopy(port)))


def test_the_fewest_and_least_important_give_way() -> None:
    nodes = [node("n1"), node("n2")]
    pods = [
        pod("a", "2", on="n1", priority=5),
        pod("b", "2", on="n1", priority=1),
        pod("c", "4", on="n2", priority=7),
    ]
    found = place(Board(nodes, pods), pod("p", "2", priority=10))
    assert (found.nominated, [each["metadata"]["name"] for each in found.victims]) == ("n1", ["b"])
    never = place(Board(nodes, pods), pod("p", "2", priority=10, preemptionPolicy="Never"))
    assert not never.victims
    assert not place(Board(nodes, pods), pod("p", "2", priority=1)).victims
    assert not place(Board(nodes, pods), pod("p", "2", priority=10, nodeSelector={"no": "where"})).victims


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "value": "1"}, True),
        ({"key": "a", "value": "2"}, False),
        ({"key": "b", "operator": "Exists"}, False),
        ({"key": "a", "operator": "Exists", "effect": "NoExecute"}, False),
        ({}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], expected: bool) -> None:
    assert tolerates(toleration, {"key": "a", "value": "1", "effect": "NoSchedule"}) is expected


SIZES = st.sampled_from(["100m", "1", "2", "3"])


@given(
    zones=st.lists(st.sampled_from("abc"), min_size=1, max_size=5),
    sizes=st.lists(st.tuples(SIZES, st.integers(0, 3)), max_size=12),
)
def test_whatever_is_placed_fits_and_whoever_gives_way_makes_room(
    zones: list[str], sizes: list[tuple[str, int]]
) -> None:
    """No node holds more than it has; a decision is the same twice; victims are less important, and enough."""
    nodes = [node(f"n{number}", zone) for number, zone in enumerate(zones)]
    pods: list[Any] = []
    for number, (cpu, priority) in enumerate(sizes):
        new = pod(f"p{number}", cpu, priority=priority)
        board = Board(nodes, pods)
        found = place(board, new)
        assert place(Board(deepcopy(nodes), deepcopy(pods)), deepcopy(new)).node == found.node
        if found.node:
            new["spec"]["nodeName"] = found.node
            pods.append(new)
        for other in found.victims:
            assert other["spec"]["priority"] < priority
        if found.victims:
            left = [each for each in pods if each not in found.victims]
            assert not list(prepare(Board(nodes, left), new)(Board(nodes, left).places[found.nominated]))
    for place_ in Board(nodes, pods).places.values():
        assert all(place_.used.get(name, 0) <= amount for name, amount in place_.capacity.items())
        assert not any(untolerated(each, place_.node) for each in place_.pods)
