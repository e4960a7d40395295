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
    make = [deployment, deployment, stateful_set, daemon_set, job, service][seed % 6]
    return list(make(chance))


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


def patched(plural: str, **fields: Any) -> Callable[[Objects], object]:
    return lambda objects: objects.patch(plural, "web", **fields)


def lose(objects: Objects) -> None:
    pods = objects.all("pods")
    if pods:
        objects.delete("pods", pods[0]["metadata"]["name"])
