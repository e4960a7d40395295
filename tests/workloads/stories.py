"""Stories of workloads, drawn from a seed: what somebody does to them, step by step."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from .objects import LABELS, Objects, template

NOTE = "node.kubewright.dev/"
Step = tuple[str, Callable[[Objects], object]]
"""What happens, in words and as a call."""


def draw(seed: int) -> list[Step]:
    """A story of one workload."""
    chance = random.Random(seed)
    kinds = [deployment, stateful_set, daemon_set, job, service, mirrored, autoscaler, replication, cron_job]
    return list(kinds[seed % len(kinds)](chance))


def image(name: str, notes: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    made = template(image=name, **spec)
    if notes:
        made["metadata"]["annotations"] = {NOTE + key: value for key, value in notes.items()}
    return made


def deployment(chance: random.Random) -> Iterator[Step]:
    strategy: dict[str, Any] = {"type": "Recreate"}
    if chance.random() < 0.8:
        surge, unavailable = chance.choice([("25%", "25%"), (1, 0), (0, 1), ("50%", 2)])
        strategy = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
        }
    count = chance.randrange(1, 6)
    limit = chance.choice([0, 1, 10])
    yield (
        f"create {count} {strategy['type']}",
        lambda objects: objects.workload(
            "deployments", replicas=count, strategy=strategy, revisionHistoryLimit=limit, settle=False
        ),
    )
    yield from budget(chance)
    images = ["image:1", "image:2", "image:3"]
    for _ in range(chance.randrange(3, 7)):
        what = chance.choice(
            ["scale", "image", "image", "stuck", "pause", "resume", "lose", "zero", "annotate"]
        )
        number, name = chance.randrange(0, 7), chance.choice(images)
        if what in ("scale", "zero"):
            size = 0 if what == "zero" else number
            yield f"scale to {size}", patched("deployments", spec={"replicas": size})
        elif what == "image":
            made = image(name)
            made["metadata"]["annotations"] = None
            yield f"image {name}", patched("deployments", spec={"template": made})
        elif what == "stuck":
            never = image("never:1", {"image-error": "true"})
            yield "an image that is never pulled", patched("deployments", spec={"template": never})
        elif what in ("pause", "resume"):
            yield what, patched("deployments", spec={"paused": what == "pause"})
        elif what == "annotate":
            yield "annotate", patched("deployments", metadata={"annotations": {"team": name}})
        else:
            yield "lose a pod", lose
    yield "resume", patched("deployments", spec={"paused": False})
    if chance.random() < 0.3:
        yield "delete", lambda objects: objects.delete("deployments", "web")


def budget(chance: random.Random) -> Iterator[Step]:
    if chance.random() < 0.4:
        spec: dict[str, Any] = chance.choice(
            [{"minAvailable": 2}, {"minAvailable": "50%"}, {"maxUnavailable": 1}]
        )
        yield (
            f"a budget {spec}",
            lambda objects: objects.create(
                "poddisruptionbudgets",
                "web",
                spec={**spec, "selector": {"matchLabels": LABELS}},
                settle=False,
            ),
        )


def stateful_set(chance: random.Random) -> Iterator[Step]:
    policy, count = chance.choice(["OrderedReady", "Parallel"]), chance.randrange(1, 5)
    yield (
        f"create {count} {policy}",
        lambda objects: objects.workload(
            "statefulsets", serviceName="web", replicas=count, podManagementPolicy=policy, settle=False
        ),
    )
    yield from budget(chance)
    for _ in range(chance.randrange(3, 6)):
        what = chance.choice(["scale", "image", "partition", "lose", "stuck"])
        number = chance.randrange(0, 5)
        if what == "scale":
            yield f"scale to {number}", patched("statefulsets", spec={"replicas": number})
        elif what in ("image", "stuck"):
            notes = {"image-error": "true"} if what == "stuck" else None
            name = f"never:{number}" if notes else f"image:{number}"
            made = image(name, notes)
            if notes is None:
                made["metadata"]["annotations"] = None
            yield name, patched("statefulsets", spec={"template": made})
        elif what == "partition":
            rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}
            yield f"partition {number}", patched("statefulsets", spec={"updateStrategy": rolling})
        else:
            yield "lose a pod", lose


def daemon_set(chance: random.Random) -> Iterator[Step]:
    yield "create", lambda objects: objects.workload("daemonsets", settle=False)
    for number in range(chance.randrange(2, 5)):
        what = chance.choice(["image", "away", "back", "lose"])
        if what == "image":
            yield f"image:{number}", patched("daemonsets", spec={"template": image(f"image:{number}")})
        elif what == "lose":
            yield "lose a pod", lose
        else:
            chosen = {"disk": "ssd"} if what == "away" else None
            yield what, patched("daemonsets", spec={"template": {"spec": {"nodeSelector": chosen}}})


def job(chance: random.Random) -> Iterator[Step]:
    code = chance.choice([0, 0, 1, 42])
    notes = {
        ("fail-after" if code else "succeed-after"): chance.choice(["0s", "200ms"]),
        "exit-code": str(code),
    }
    spec: dict[str, Any] = {
        "parallelism": chance.randrange(1, 4),
        "completions": chance.choice([1, 3, 5]),
        "backoffLimit": 0,
        "suspend": chance.random() < 0.2,
        "template": {
            **image("image:1", notes, restartPolicy="Never"),
            "metadata": {"annotations": {NOTE + k: v for k, v in notes.items()}},
        },
    }
    if chance.random() < 0.4:
        spec["completionMode"] = "Indexed"
        if chance.random() < 0.5:
            spec |= {"backoffLimitPerIndex": 0, "maxFailedIndexes": chance.randrange(0, 3)}
            del spec["backoffLimit"]
    elif chance.random() < 0.4:
        action = chance.choice(["FailJob", "Ignore", "Count"]) if code != 42 else "FailJob"
        rule = {"action": action, "onExitCodes": {"operator": "In", "values": [42]}}
        spec["podFailurePolicy"] = {"rules": [rule]}
    yield f"create {spec}", lambda objects: objects.create("jobs", "web", spec=spec, settle=False)
    if spec["suspend"]:
        yield "resume", patched("jobs", spec={"suspend": False})
    yield "suspend", patched("jobs", spec={"suspend": True})


def service(chance: random.Random) -> Iterator[Step]:
    headless = {"clusterIP": "None"} if chance.random() < 0.3 else {}
    ports = [{"name": "http", "port": 80, "targetPort": chance.choice([8080, "http"])}]
    yield (
        "create",
        lambda objects: objects.create(
            "services", "web", spec={"selector": LABELS, "ports": ports, **headless}, settle=False
        ),
    )
    made = image("image:1")
    made["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": 9090}]
    yield "pods", lambda objects: objects.workload("replicasets", replicas=3, template=made, settle=False)
    yield "scale", patched("replicasets", spec={"replicas": chance.randrange(0, 5)})
    yield "select others", patched("services", spec={"selector": {"app": chance.choice(["web", "none"])}})
    yield "label", patched("services", metadata={"labels": {"team": "a"}})


def mirrored(chance: random.Random) -> Iterator[Step]:
    """Endpoints that somebody writes by hand, for a Service without a selector."""

    def subsets() -> list[dict[str, Any]]:
        drawn = []
        for _ in range(chance.randrange(0, 3)):
            pool = ["10.1.2.3", "10.1.2.4", "10.9.0.1", "fd00::1", "fd00:0:0::2"]
            addresses: list[dict[str, Any]] = [
                {"ip": ip} for ip in chance.sample(pool, chance.randrange(1, 4))
            ]
            if chance.random() < 0.4:
                addresses[0]["hostname"] = "one"
            subset: dict[str, Any] = {"addresses": addresses}
            if len(addresses) > 1 and chance.random() < 0.5:
                subset["notReadyAddresses"] = [addresses.pop()]
            names = chance.sample(["http", "metrics", "dns"], chance.randrange(1, 3))
            subset["ports"] = [{"name": name, "port": chance.randrange(80, 90)} for name in names]
            if chance.random() < 0.3:
                subset["ports"][0] |= {"protocol": "UDP", "appProtocol": "x"}
            drawn.append(subset)
        return drawn

    def service(objects: Objects) -> object:
        ports = [{"name": "http", "port": 80}]
        return objects.create("services", "web", spec={"ports": ports}, settle=False)

    def endpoints(given: list[dict[str, Any]]) -> Callable[[Objects], object]:
        return lambda objects: objects.create("endpoints", "web", subsets=given, settle=False)

    yield "service", service
    yield "endpoints", endpoints(subsets())
    for _ in range(chance.randrange(3, 7)):
        what = chance.choice(
            ["subsets", "subsets", "skip", "mirror", "label", "annotate", "select", "unselect"]
        )
        skip = "endpointslice.kubernetes.io/skip-mirror"
        if what == "subsets":
            yield what, patched("endpoints", subsets=subsets())
        elif what in ("skip", "mirror"):
            value = "true" if what == "skip" else None
            yield what, patched("endpoints", metadata={"labels": {skip: value}})
        elif what in ("label", "annotate"):
            key = "labels" if what == "label" else "annotations"
            yield what, patched("endpoints", metadata={key: {"team": chance.choice(["a", "b", None])}})
        elif what == "select":
            yield what, patched("services", spec={"selector": LABELS})
        else:
            yield what, patched("services", spec={"selector": None})
    yield "delete", lambda objects: objects.delete("endpoints", "web")


def busy(used: str, request: str | None = "100m") -> dict[str, Any]:
    """Pods that use so much of a processor."""
    made = image("image:1", {"cpu": used})
    container = made["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": request}} if request else None
    return made


def autoscaler(chance: random.Random) -> Iterator[Step]:
    count = chance.randrange(1, 5)
    loads = ["10m", "30m", "50m", "70m", "120m"]
    yield (
        f"create {count}",
        lambda objects: objects.workload("deployments", replicas=count, template=busy("50m"), settle=False),
    )
    at_once = {
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}],
    }
    target = {"type": "Utilization", "averageUtilization": chance.choice([40, 50, 80])}
    if chance.random() < 0.3:
        target = {"type": "AverageValue", "averageValue": "40m"}
    resource = {"name": "cpu", "target": target}
    metric: dict[str, Any] = {"type": "Resource", "resource": resource}
    if chance.random() < 0.3:
        metric = {"type": "ContainerResource", "containerResource": {**resource, "container": "main"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": chance.randrange(1, 3),
        "maxReplicas": chance.randrange(3, 9),
        "metrics": [metric],
        "behavior": {"scaleUp": at_once, "scaleDown": at_once},
    }
    yield (
        f"scale by {spec}",
        lambda objects: objects.create("horizontalpodautoscalers", "web", spec=spec, settle=False),
    )
    for _ in range(chance.randrange(2, 5)):
        what = chance.choice(["load", "load", "bounds", "off", "on", "no requests", "away"])
        used, most = chance.choice(loads), chance.randrange(3, 7)
        if what == "load":
            yield f"{what} {used}", patched("deployments", spec={"template": busy(used)})
        elif what == "bounds":
            yield f"{what} {most}", patched("horizontalpodautoscalers", spec={"maxReplicas": most})
        elif what in ("off", "on"):
            yield what, patched("deployments", spec={"replicas": 0 if what == "off" else 2})
        elif what == "no requests":
            yield what, patched("deployments", spec={"template": busy(used, None)})
        else:
            name = chance.choice(["web", "none"])
            yield (
                f"target {name}",
                patched("horizontalpodautoscalers", spec={"scaleTargetRef": {"name": name}}),
            )


def replication(chance: random.Random) -> Iterator[Step]:
    """A ReplicaSet or ReplicationController, with pods that it adopts, lets go and loses."""
    plural = chance.choice(["replicasets", "replicationcontrollers"])
    selected = {"matchLabels": LABELS} if plural == "replicasets" else LABELS
    count = chance.randrange(0, 5)
    if chance.random() < 0.5:
        own = template()
        yield "a pod", lambda objects: objects.create("pods", "alone", **own, settle=False)
    spec = {"replicas": count, "selector": selected, "template": image("image:1")}
    if chance.random() < 0.3:
        spec["minReadySeconds"] = 1
    yield f"create {plural} {count}", lambda objects: objects.create(plural, "web", spec=spec, settle=False)
    yield from budget(chance)
    for _ in range(chance.randrange(2, 6)):
        what = chance.choice(["scale", "lose", "let go", "image", "fail"])
        number = chance.randrange(0, 6)
        if what == "scale":
            yield f"scale to {number}", patched(plural, spec={"replicas": number})
        elif what == "lose":
            yield "lose a pod", lose
        elif what == "let go":
            yield "let go of a pod", let_go
        elif what == "image":
            yield f"image:{number}", patched(plural, spec={"template": image(f"image:{number}")})
        else:
            yield "a pod fails", fail
    options = {"propagationPolicy": chance.choice(["Orphan", "Background", "Foreground"])}
    yield f"delete {options}", lambda objects: objects.delete(plural, "web", **options)


def cron_job(chance: random.Random) -> Iterator[Step]:
    """A CronJob between its times: only what needs no time to pass is the same in two runs."""
    made = template(restartPolicy="Never")
    spec = {
        "schedule": chance.choice(["0 0 1 1 *", "@yearly", "30 2 29 2 *"]),
        "suspend": chance.random() < 0.3,
        "concurrencyPolicy": chance.choice(["Allow", "Forbid", "Replace"]),
        "successfulJobsHistoryLimit": chance.randrange(0, 3),
        "failedJobsHistoryLimit": chance.randrange(0, 2),
        "jobTemplate": {"spec": {"template": {"spec": made["spec"]}}},
    }
    yield (
        f"create {spec['schedule']}",
        lambda objects: objects.create("cronjobs", "web", spec=spec, settle=False),
    )

    def by_hand(name: str, code: int) -> Callable[[Objects], object]:
        def act(objects: Objects) -> object:
            owner = objects.get("cronjobs", "web")["metadata"]
            reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "web", "uid": owner["uid"]}
            notes = {"fail-after" if code else "succeed-after": "0s", "exit-code": str(code)}
            pods = image("image:1", notes, restartPolicy="Never")
            return objects.create(
                "jobs",
                name,
                metadata={"ownerReferences": [{**reference, "controller": True}]},
                spec={
                    "backoffLimit": 0,
                    "template": {**pods, "metadata": {"annotations": pods["metadata"]["annotations"]}},
                },
                settle=False,
            )

        return act

    for number in range(chance.randrange(2, 6)):
        code = chance.choice([0, 0, 1])
        yield f"a job that ends with {code}", by_hand(f"web-{number}", code)
    yield "suspend", patched("cronjobs", spec={"suspend": True})
    yield "delete", lambda objects: objects.delete("cronjobs", "web")


def let_go(objects: Objects) -> None:
    pods = objects.all("pods")
    if pods:
        objects.patch("pods", pods[0]["metadata"]["name"], metadata={"labels": {"app": "other"}})


def fail(objects: Objects) -> None:
    """As a kubelet that evicts a pod writes it: what a container's restarts bring depends on the moment."""
    pods = objects.all("pods")
    if pods:
        failed = {"phase": "Failed", "reason": "Evicted"}
        objects.patch("pods", pods[0]["metadata"]["name"], subresource="status", status=failed)


def patched(plural: str, **fields: Any) -> Callable[[Objects], object]:
    return lambda objects: objects.patch(plural, "web", **fields)


def lose(objects: Objects) -> None:
    pods = objects.all("pods")
    if pods:
        objects.delete("pods", pods[0]["metadata"]["name"])
