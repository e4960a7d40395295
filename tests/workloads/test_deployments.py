"""Deployments and ReplicaSets: rollouts, pauses, undoing, scaling in the middle, deadlines."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.server.catalog.options import WORKLOADS, OptionError, parse_controllers
from apimachinery.workloads.rollouts import in_proportion, limits, newest_size, replicas, share, shrunk
from apimachinery.workloads.table import workloads

from .objects import LABELS, Objects, template

NEVER = {"node.kubewright.dev/image-error": "true"}


def image(name: str) -> dict[str, Any]:
    return {"template": template(image=name)}


def never(name: str) -> dict[str, Any]:
    made = template(image=name)
    made["metadata"]["annotations"] = NEVER
    return {"template": made}


def test_a_deployment_makes_its_pods_available(objects: Objects) -> None:
    objects.workload("deployments", replicas=3)
    status = objects.get("deployments", "web")["status"]
    assert (status["replicas"], status["availableReplicas"], status["updatedReplicas"]) == (3, 3, 3)
    assert objects.condition("deployments", "web", "Available")["status"] == "True"
    assert objects.condition("deployments", "web", "Progressing")["reason"] == "NewReplicaSetAvailable"
    (replica_set,) = objects.all("replicasets")
    assert replica_set["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    labels = replica_set["spec"]["template"]["metadata"]["labels"]
    assert all(pod["metadata"]["labels"] == labels for pod in objects.all("pods"))


def test_a_rollout_replaces_all_pods_and_undoing_it_takes_the_old_set_again(objects: Objects) -> None:
    objects.workload("deployments", replicas=3)
    objects.patch("deployments", "web", spec=image("image:2"))
    assert objects.images() == ["image:2"] * 3
    first = {each["metadata"]["name"] for each in objects.all("replicasets")}
    objects.patch("deployments", "web", spec=image("image:1"))
    assert objects.images() == ["image:1"] * 3
    assert {each["metadata"]["name"] for each in objects.all("replicasets")} == first
    notes = [each["metadata"]["annotations"] for each in objects.all("replicasets")]
    revisions = sorted(each["deployment.kubernetes.io/revision"] for each in notes)
    assert revisions == ["2", "3"]
    assert [each.get("deployment.kubernetes.io/revision-history") for each in notes if len(each) == 4] == [
        "1"
    ]


def test_recreate_ends_the_old_pods_first(objects: Objects) -> None:
    objects.workload("deployments", replicas=2, strategy={"type": "Recreate"})
    objects.patch("deployments", "web", spec=image("image:2"))
    assert objects.images() == ["image:2"] * 2
    assert objects.condition("deployments", "web", "Available")["status"] == "True"


def test_a_rollout_that_stands_still_keeps_the_old_pods_until_its_deadline_and_beyond(
    objects: Objects,
) -> None:
    objects.workload("deployments", replicas=4, progressDeadlineSeconds=60)
    objects.patch("deployments", "web", spec=never("image:2"))
    status = objects.get("deployments", "web")["status"]
    assert (status["availableReplicas"], status["updatedReplicas"], status["replicas"]) == (3, 2, 5)
    assert objects.condition("deployments", "web", "Progressing")["status"] == "True"
    objects.server.clock.advance("2m")
    objects.server.settle()
    condition = objects.condition("deployments", "web", "Progressing")
    assert (condition["status"], condition["reason"]) == ("False", "ProgressDeadlineExceeded")
    objects.patch(
        "deployments",
        "web",
        spec={"template": {**template(), "metadata": {"labels": LABELS, "annotations": None}}},
    )
    assert objects.images() == ["image:1"] * 4
    assert objects.condition("deployments", "web", "Progressing")["status"] == "True"


def test_a_paused_deployment_scales_and_does_not_roll_out(objects: Objects) -> None:
    objects.workload("deployments", replicas=2)
    objects.patch("deployments", "web", spec={"paused": True, **image("image:2")})
    objects.patch("deployments", "web", spec={"replicas": 3})
    assert objects.images() == ["image:1"] * 3
    assert objects.condition("deployments", "web", "Progressing")["reason"] == "DeploymentPaused"
    objects.patch("deployments", "web", spec={"paused": False})
    assert objects.images() == ["image:2"] * 3


def test_old_sets_beyond_the_history_go(objects: Objects) -> None:
    objects.workload("deployments", replicas=1, revisionHistoryLimit=1)
    for number in range(2, 5):
        objects.patch("deployments", "web", spec=image(f"image:{number}"))
    left = {each["spec"]["template"]["spec"]["containers"][0]["image"] for each in objects.all("replicasets")}
    assert left == {"image:3", "image:4"}


def test_deleting_a_deployment_deletes_what_it_made(objects: Objects) -> None:
    objects.workload("deployments", replicas=2)
    objects.delete("deployments", "web")
    assert objects.all("replicasets") == objects.all("pods") == []


def test_a_replica_set_adopts_what_matches_and_lets_go_of_what_does_not(objects: Objects) -> None:
    objects.create("pods", "loose", metadata={"labels": LABELS}, spec=template()["spec"])
    objects.workload("replicasets", replicas=2)
    assert len(objects.all("pods")) == 2
    assert objects.get("pods", "loose")["metadata"]["ownerReferences"][0]["name"] == "web"
    objects.patch("pods", "loose", metadata={"labels": {"app": "other"}})
    assert not objects.get("pods", "loose")["metadata"].get("ownerReferences")
    assert len(objects.all("pods")) == 3
    objects.patch("replicasets", "web", spec={"replicas": 0})
    assert [pod["metadata"]["name"] for pod in objects.all("pods")] == ["loose"]


def test_a_pod_that_is_refused_is_shown_in_the_status(objects: Objects) -> None:
    quota = {"spec": {"hard": {"pods": "1"}}, "metadata": {"name": "few"}}
    objects.server.request("POST", f"/api/v1/namespaces/{objects.namespace}/resourcequotas", quota)
    objects.server.settle()
    objects.workload("deployments", replicas=2, settle=False)
    for _ in range(200):
        failure = objects.get("deployments", "web").get("status") and objects.condition(
            "deployments", "web", "ReplicaFailure"
        )
        if failure:
            break
    assert failure["reason"] == "FailedCreate"
    assert "exceeded quota" in failure["message"]
    objects.delete("deployments", "web")


def test_replication_controllers_do_the_same(objects: Objects) -> None:
    objects.create(
        "replicationcontrollers", "old", spec={"replicas": 2, "selector": LABELS, "template": template()}
    )
    assert objects.get("replicationcontrollers", "old")["status"]["readyReplicas"] == 2


def test_least_missed_pods_go_first(objects: Objects) -> None:
    objects.workload("replicasets", replicas=3)
    kept = objects.all("pods")[0]["metadata"]["name"]
    cost = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "10"}}
    objects.patch("pods", kept, metadata=cost)
    objects.patch("replicasets", "web", spec={"replicas": 1})
    assert [pod["metadata"]["name"] for pod in objects.all("pods")] == [kept]


def test_names_of_controllers() -> None:
    assert set(WORKLOADS) == set(workloads())
    assert parse_controllers("workloads") == frozenset(WORKLOADS)
    assert parse_controllers("all,workloads,node") >= {"gc", "deployment", "node"}
    with pytest.raises(OptionError, match="'workload' is none; use all, none, workloads, or namespace"):
        parse_controllers("workload")


def deployment(wanted: int, surge: Any = "25%", unavailable: Any = "25%", before: int = 0) -> dict[str, Any]:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"spec": {"replicas": wanted, "strategy": strategy}, "status": {"replicas": before}}


def replica_set(name: str, wanted: int, available: int = 0) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": name},
        "spec": {"replicas": wanted},
        "status": {"availableReplicas": available},
    }


@pytest.mark.parametrize(
    ("wanted", "surge", "unavailable", "expected"),
    [(10, "25%", "25%", (3, 2)), (1, 0, 0, (0, 1)), (1, "1%", "1%", (1, 0)), (4, 1, 9, (1, 4))],
)
def test_limits_are_rounded_so_that_something_can_move(
    wanted: int, surge: Any, unavailable: Any, expected: tuple[int, int]
) -> None:
    assert limits(deployment(wanted, surge, unavailable)) == expected


def test_a_scaled_rollout_keeps_its_proportions() -> None:
    sets = [replica_set("a", 5), replica_set("b", 5)]
    assert in_proportion(deployment(20, 0, 1, before=10), sets) == {"a": 10, "b": 10}
    assert sum(in_proportion(deployment(7, 0, 1, before=10), sets).values()) == 7
    assert in_proportion(deployment(0, 0, 1, before=10), sets) == {"a": 0, "b": 0}


def test_every_rollout_ends_within_its_limits() -> None:
    """Steps of all small rollouts, with pods that become available one step later."""
    for wanted in range(1, 7):
        for surge in range(3):
            for unavailable in range(3):
                shape = deployment(wanted, surge, unavailable)
                above, below = limits(shape)
                new, old = replica_set("new", 0), replica_set("old", wanted, wanted)
                for _ in range(4 * wanted + 4):
                    new["spec"]["replicas"] = newest_size(shape, new, [old, new])
                    for uid, size in shrunk(shape, new, [old]).items():
                        assert uid == "old"
                        old["spec"]["replicas"] = size
                    old["status"]["availableReplicas"] = replicas(old)
                    assert replicas(old) + replicas(new) <= wanted + above
                    assert (
                        old["status"]["availableReplicas"] + new["status"]["availableReplicas"]
                        >= wanted - below
                    )
                    new["status"]["availableReplicas"] = replicas(new)
                assert (replicas(old), replicas(new)) == (0, wanted)


def test_shares() -> None:
    assert [
        share("25%", 10, up=True),
        share("25%", 10, up=False),
        share(3, 10, up=True),
        share(None, 1, up=True),
    ] == [3, 2, 3, 0]


@pytest.mark.parametrize("text", ["5", "x%", "%", "-1%", "", "2026-01-01T00:00:00Z"])
def test_what_no_request_could_store_is_no_share(text: str) -> None:
    assert share(text, 10, up=True) == 0
