"""StatefulSets, DaemonSets, Jobs, CronJobs, EndpointSlices, budgets: what becomes of each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from apimachinery.workloads.job_pods import read_indexes, write_indexes
from apimachinery.workloads.schedules import ScheduleError, parse

from .objects import LABELS, Objects, template


def names(objects: Objects, plural: str) -> list[str]:
    return [each["metadata"]["name"] for each in objects.all(plural)]


def job(**spec: object) -> dict[str, object]:
    return {"template": {"spec": template(restartPolicy="Never")["spec"]}, **spec}


def ending(code: int, after: str = "0s") -> dict[str, object]:
    made = template(restartPolicy="Never")
    prefix = "node.kubewright.dev/"
    key = "fail-after" if code else "succeed-after"
    notes = {prefix + key: after, prefix + "exit-code": str(code)}
    return {"metadata": {"annotations": notes}, "spec": made["spec"]}


# StatefulSets.


def test_a_stateful_set_has_names_claims_and_an_order(objects: Objects) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    objects.workload("statefulsets", serviceName="web", replicas=3, volumeClaimTemplates=[claim])
    assert names(objects, "pods") == ["web-0", "web-1", "web-2"]
    assert names(objects, "persistentvolumeclaims") == ["data-web-0", "data-web-1", "data-web-2"]
    pod = objects.get("pods", "web-1")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "web")
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-web-1"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    objects.patch("statefulsets", "web", spec={"replicas": 1})
    assert names(objects, "pods") == ["web-0"]
    assert len(names(objects, "persistentvolumeclaims")) == 3
    status = objects.get("statefulsets", "web")["status"]
    assert (status["replicas"], status["readyReplicas"], status["currentReplicas"]) == (1, 1, 1)


@pytest.mark.parametrize(("strategy", "image"), [(None, "image:2"), ({"type": "RollingUpdate"}, "image:1")])
def test_a_pod_that_is_lost_during_an_update(objects: Objects, strategy: Any, image: str) -> None:
    """With an update strategy by default the lost pod is of the new revision at once, as in kube-controller-manager."""
    how = {"updateStrategy": strategy} if strategy else {}
    objects.workload("statefulsets", serviceName="web", replicas=3, **how)
    never = template(image="image:2")
    never["metadata"]["annotations"] = {"node.kubewright.dev/ready": "false"}
    objects.patch("statefulsets", "web", spec={"template": never})
    assert objects.images() == ["image:1", "image:1", "image:2"]
    objects.delete("pods", "web-0")
    assert objects.get("pods", "web-0")["spec"]["containers"][0]["image"] == image


def test_a_stateful_set_updates_down_to_its_partition(objects: Objects) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    objects.workload("statefulsets", serviceName="web", replicas=3, updateStrategy=rolling)
    objects.patch("statefulsets", "web", spec={"template": template(image="image:2")})
    assert [pod["spec"]["containers"][0]["image"] for pod in objects.all("pods")] == [
        "image:1",
        "image:1",
        "image:2",
    ]
    status = objects.get("statefulsets", "web")["status"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    assert status["currentRevision"] != status["updateRevision"]
    objects.delete("pods", "web-0")
    assert objects.get("pods", "web-0")["spec"]["containers"][0]["image"] == "image:1"
    objects.patch("statefulsets", "web", spec={"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    assert objects.images() == ["image:2"] * 3
    status = objects.get("statefulsets", "web")["status"]
    assert status["currentRevision"] == status["updateRevision"]


def test_pods_of_a_parallel_set_do_not_wait(objects: Objects) -> None:
    stuck = template()
    stuck["metadata"]["annotations"] = {"node.kubewright.dev/image-error": "true"}
    objects.workload("statefulsets", "one", serviceName="web", replicas=3, template=stuck)
    assert names(objects, "pods") == ["one-0"]
    objects.delete("statefulsets", "one")
    objects.workload(
        "statefulsets", "all", serviceName="web", replicas=3, template=stuck, podManagementPolicy="Parallel"
    )
    assert names(objects, "pods") == ["all-0", "all-1", "all-2"]


# DaemonSets.


def test_a_daemon_set_has_a_pod_on_each_node_that_takes_it(objects: Objects) -> None:
    objects.workload("daemonsets")
    (pod,) = objects.all("pods")
    assert pod["spec"]["nodeName"] == "kubewright-node"
    status = objects.get("daemonsets", "web")["status"]
    assert (status["desiredNumberScheduled"], status["numberAvailable"]) == (1, 1)
    objects.patch("daemonsets", "web", spec={"template": template(image="image:2")})
    assert objects.images() == ["image:2"]
    revisions = objects.all("controllerrevisions")
    assert len(revisions) == 2
    keys = [*revisions[0]["data"]["spec"]["template"]]
    assert keys == sorted(keys), "clients compare the bytes with their own"
    objects.patch("daemonsets", "web", spec={"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}})
    assert objects.all("pods") == []
    assert objects.get("daemonsets", "web")["status"]["desiredNumberScheduled"] == 0


# Jobs.


def test_a_job_completes(objects: Objects) -> None:
    objects.create("jobs", "sum", spec=job(completions=3, parallelism=2, template=ending(0)))
    found = objects.get("jobs", "sum")["status"]
    assert found["succeeded"] == 3
    assert [each["type"] for each in found["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert found["completionTime"]
    assert all(not pod["metadata"].get("finalizers") for pod in objects.all("pods"))


def test_a_job_fails_beyond_its_limit_and_waits_between(objects: Objects) -> None:
    objects.create("jobs", "bad", spec=job(backoffLimit=1, template=ending(3)))
    assert objects.get("jobs", "bad")["status"]["failed"] == 1
    objects.server.clock.advance("11s")
    objects.server.settle()
    found = objects.get("jobs", "bad")["status"]
    assert found["failed"] == 2
    assert [each["type"] for each in found["conditions"]] == ["FailureTarget", "Failed"]
    assert found["conditions"][1]["reason"] == "BackoffLimitExceeded"


def test_a_deadline_ends_a_job_and_its_pods(objects: Objects) -> None:
    objects.create("jobs", "long", spec=job(activeDeadlineSeconds=60, template=ending(0, "1h")))
    assert objects.get("jobs", "long")["status"]["active"] == 1
    objects.server.clock.advance(61)
    objects.server.settle()
    assert objects.condition("jobs", "long", "Failed")["reason"] == "DeadlineExceeded"
    assert objects.all("pods") == []


def test_a_suspended_job_has_no_pods(objects: Objects) -> None:
    objects.create("jobs", "later", spec=job(suspend=True, template=ending(0, "1h")))
    assert objects.all("pods") == []
    assert objects.condition("jobs", "later", "Suspended")["status"] == "True"
    objects.patch("jobs", "later", spec={"suspend": False})
    assert len(objects.all("pods")) == 1
    assert objects.get("jobs", "later")["status"]["startTime"]


def test_an_indexed_job_does_each_number_once(objects: Objects) -> None:
    spec = job(completions=4, parallelism=2, completionMode="Indexed", template=ending(0))
    objects.create("jobs", "numbers", spec=spec)
    assert objects.get("jobs", "numbers")["status"]["completedIndexes"] == "0-3"
    key = "batch.kubernetes.io/job-completion-index"
    assert sorted(pod["metadata"]["annotations"][key] for pod in objects.all("pods")) == ["0", "1", "2", "3"]


def test_a_policy_fails_a_job_for_an_exit_code(objects: Objects) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    objects.create("jobs", "no", spec=job(template=ending(42), podFailurePolicy={"rules": [rule]}))
    failed = objects.condition("jobs", "no", "Failed")
    assert failed["reason"] == "PodFailurePolicy"
    assert failed["message"].endswith("failed with exit code 42 matching FailJob rule at index 0")


def test_a_finished_job_goes_after_its_time_and_its_pods_with_it(objects: Objects) -> None:
    objects.create("jobs", "brief", spec=job(ttlSecondsAfterFinished=100, template=ending(0)))
    assert objects.condition("jobs", "brief", "Complete")
    objects.server.clock.advance(101)
    objects.server.settle()
    assert objects.all("jobs") == objects.all("pods") == []


def test_a_job_that_is_deleted_lets_go_of_its_pods(objects: Objects) -> None:
    objects.create("jobs", "long", spec=job(template=ending(0, "1h")))
    objects.delete("jobs", "long", propagationPolicy="Background")
    assert objects.all("pods") == []


# CronJobs.


def test_a_cron_job_makes_jobs_as_time_passes(objects: Objects) -> None:
    objects.create(
        "cronjobs", "hourly", spec={"schedule": "@hourly", "jobTemplate": {"spec": job(template=ending(0))}}
    )
    for _ in range(5):
        objects.server.clock.advance("1h")
        objects.server.settle()
    assert len(objects.all("jobs")) == 3, "successfulJobsHistoryLimit"
    status = objects.get("cronjobs", "hourly")["status"]
    assert status["lastScheduleTime"] <= status["lastSuccessfulTime"]
    assert not status.get("active")


@pytest.mark.parametrize(("policy", "left"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_jobs_that_still_run(objects: Objects, policy: str, left: int) -> None:
    spec = {"schedule": "0 * * * *", "jobTemplate": {"spec": job(template=ending(0, "24h"))}}
    objects.create("cronjobs", "slow", spec={**spec, "concurrencyPolicy": policy})
    for _ in range(3):
        objects.server.clock.advance("1h")
        objects.server.settle()
    assert len(objects.all("jobs")) == left
    assert len(objects.get("cronjobs", "slow")["status"]["active"]) == left


@pytest.mark.parametrize(
    ("schedule", "zone", "start", "expected"),
    [
        ("*/15 * * * *", "UTC", "2026-01-01T00:01:00", "2026-01-01T00:15:00+00:00"),
        ("0 9 * * mon-fri", "UTC", "2026-01-03T00:00:00", "2026-01-05T09:00:00+00:00"),
        ("0 0 13 * 5", "UTC", "2026-01-01T00:00:00", "2026-01-02T00:00:00+00:00"),
        ("0 0 29 feb *", "UTC", "2026-01-01T00:00:00", "2028-02-29T00:00:00+00:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00", "2026-03-30T02:30:00+02:00"),
        ("@every 90s", "UTC", "2026-01-01T00:00:00", "2026-01-01T00:01:30+00:00"),
        ("0 0 30 2 *", "UTC", "2026-01-01T00:00:00", ""),
    ],
)
def test_schedules(schedule: str, zone: str, start: str, expected: str) -> None:
    moment = datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp()
    found = parse(schedule).after(moment, ZoneInfo(zone))
    assert (found is None) if not expected else found == datetime.fromisoformat(expected).timestamp()


@pytest.mark.parametrize(
    "schedule", ["* * * *", "60 * * * *", "a * * * *", "*/0 * * * *", "5-1 * * * *", "@every x"]
)
def test_what_is_no_schedule(schedule: str) -> None:
    with pytest.raises(ScheduleError):
        parse(schedule)


def test_the_last_time_is_the_one_before_the_next() -> None:
    schedule, now = parse("17 3 * * *"), 1_800_000_000.0
    last = schedule.last(0.0, now)
    assert last is not None
    following = schedule.after(last)
    assert last <= now < (following or 0)
    assert schedule.last(now, now + 60) is None


def test_indexes_are_written_as_they_are_read() -> None:
    assert write_indexes({0, 2, 3, 4, 7, 8}) == "0,2-4,7,8"
    assert read_indexes("0,2-4,7,8") == {0, 2, 3, 4, 7, 8}
    assert read_indexes(None) == set()


# Services and budgets.


def test_slices_and_endpoints_follow_the_pods(objects: Objects) -> None:
    objects.create(
        "services", "web", spec={"selector": LABELS, "ports": [{"port": 80, "targetPort": "http"}]}
    )
    container = {"name": "main", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}
    pods = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    objects.workload("deployments", replicas=2, template=pods)
    (made,) = objects.all("endpointslices")
    assert made["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert [each["conditions"]["ready"] for each in made["endpoints"]] == [True, True]
    (subset,) = objects.get("endpoints", "web")["subsets"]
    assert len(subset["addresses"]) == 2
    objects.patch("deployments", "web", spec={"replicas": 0})
    assert not objects.all("endpointslices")[0].get("endpoints")
    assert not objects.get("endpoints", "web").get("subsets")
    objects.delete("services", "web")
    assert objects.all("endpointslices") == []
    assert "web" not in [each["metadata"]["name"] for each in objects.all("endpoints")]


def test_a_budget_counts_pods_that_failed(objects: Objects) -> None:
    """As kube-controller-manager does: all that its selector matches, healthy while they say that they are ready."""
    spec = {"minAvailable": 2, "selector": {"matchLabels": LABELS}}
    objects.create("poddisruptionbudgets", "web", spec=spec)
    objects.workload("replicasets", replicas=2)
    name = objects.all("pods")[0]["metadata"]["name"]
    objects.patch("pods", name, subresource="status", status={"phase": "Failed", "reason": "Evicted"})
    status = objects.get("poddisruptionbudgets", "web")["status"]
    assert (status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]) == (3, 3, 1)


def test_endpoints_are_made_again_but_not_mended(objects: Objects) -> None:
    """As kube-controller-manager does; slices it mends."""
    objects.create("services", "web", spec={"selector": LABELS, "ports": [{"port": 80}]})
    objects.workload("replicasets", replicas=1)
    before = objects.get("endpoints", "web")["subsets"]
    others = [{"addresses": [{"ip": "10.1.2.3"}]}]
    objects.patch("endpoints", "web", subsets=others)
    assert objects.get("endpoints", "web")["subsets"] == others
    objects.delete("endpoints", "web")
    assert objects.get("endpoints", "web")["subsets"] == before


def test_endpoints_that_nobody_selects_are_mirrored(objects: Objects) -> None:
    objects.create("services", "own", spec={"ports": [{"port": 80}]})
    addresses = [{"ip": "10.1.2.3", "hostname": "one"}, {"ip": "fd00::1"}]
    subset = {"addresses": addresses, "notReadyAddresses": [{"ip": "10.1.2.4"}], "ports": [{"port": 80}]}
    labels, note = {"team": "a"}, {"owner": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    objects.create("endpoints", "own", metadata={"labels": labels, "annotations": note}, subsets=[subset])
    four, six = sorted(objects.all("endpointslices"), key=lambda each: str(each["addressType"]))
    assert [four["addressType"], six["addressType"]] == ["IPv4", "IPv6"]
    assert four["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]
    assert four["metadata"]["labels"].items() >= {**labels, "kubernetes.io/service-name": "own"}.items()
    assert four["metadata"]["annotations"] == {"owner": "b"}
    assert four["metadata"]["ownerReferences"][0]["kind"] == "Endpoints"
    assert four["endpoints"] == [
        {"addresses": ["10.1.2.3"], "conditions": {"ready": True}, "hostname": "one"},
        {"addresses": ["10.1.2.4"], "conditions": {"ready": False}},
    ]
    objects.patch("endpoints", "own", subsets=[{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 81}]}])
    (made,) = objects.all("endpointslices")
    assert (made["endpoints"][0]["addresses"], made["ports"][0]["port"]) == (["10.9.9.9"], 81)
    skip = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    objects.patch("endpoints", "own", metadata={"labels": skip})
    assert objects.all("endpointslices") == []
    objects.patch("endpoints", "own", metadata={"labels": dict.fromkeys(skip)})
    assert len(objects.all("endpointslices")) == 1
    objects.delete("endpoints", "own")
    assert objects.all("endpointslices") == []


def test_a_budget_allows_what_is_more_than_it_asks_for(objects: Objects) -> None:
    objects.create(
        "poddisruptionbudgets", "web", spec={"minAvailable": "50%", "selector": {"matchLabels": LABELS}}
    )
    objects.workload("deployments", replicas=3)
    status = objects.get("poddisruptionbudgets", "web")["status"]
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (3, 2, 1)
    assert status["conditions"][0]["reason"] == "SufficientPods"
    objects.patch("deployments", "web", spec={"replicas": 2})
    status = objects.get("poddisruptionbudgets", "web")["status"]
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (2, 1, 1)
