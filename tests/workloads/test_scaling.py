"""HorizontalPodAutoscalers: up and down in a test, within their bounds and windows."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.workloads.scaling_rules import RecentScales, bounded

from .objects import LABELS, Objects

CPU = "node.kubewright.dev/cpu"


def scaled(objects: Objects, used: str, **spec: Any) -> None:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    pods = {"metadata": {"labels": LABELS, "annotations": {CPU: used}}, "spec": {"containers": [container]}}
    objects.workload("deployments", replicas=2, template=pods)
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    objects.create(
        "horizontalpodautoscalers",
        "web",
        spec={"scaleTargetRef": target, "maxReplicas": 10, "metrics": [metric], **spec},
    )


def replicas(objects: Objects) -> int:
    return int(objects.get("deployments", "web")["spec"]["replicas"])


def advance(objects: Objects, duration: str) -> None:
    objects.server.clock.advance(duration)
    objects.server.settle()


def test_pods_that_are_busy_get_company(objects: Objects) -> None:
    scaled(objects, "100m")
    assert replicas(objects) == 4
    status = objects.get("horizontalpodautoscalers", "web")["status"]
    assert status["desiredReplicas"] == 4
    (metric,) = status["currentMetrics"]
    assert metric["resource"]["current"] == {"averageUtilization": 100, "averageValue": "100m"}
    assert objects.condition("horizontalpodautoscalers", "web", "ScalingActive")["status"] == "True"
    advance(objects, "20s")
    assert replicas(objects) == 8
    advance(objects, "20s")
    assert replicas(objects) == 10
    limited = objects.condition("horizontalpodautoscalers", "web", "ScalingLimited")
    assert (limited["status"], limited["reason"]) == ("True", "TooManyReplicas")


def test_idle_pods_go_after_the_window(objects: Objects) -> None:
    scaled(objects, "50m")
    assert replicas(objects) == 2
    for pod in objects.all("pods"):
        objects.patch("pods", pod["metadata"]["name"], metadata={"annotations": {CPU: "10m"}})
    advance(objects, "20s")
    assert replicas(objects) == 2
    able = objects.condition("horizontalpodautoscalers", "web", "AbleToScale")
    assert able["reason"] == "ScaleDownStabilized"
    for _ in range(4):
        advance(objects, "100s")
    assert replicas(objects) == 1


def test_what_has_no_figures_says_so(objects: Objects) -> None:
    scaled(
        objects,
        "50m",
        metrics=[
            {
                "type": "Resource",
                "resource": {"name": "gpu", "target": {"type": "AverageValue", "averageValue": "1"}},
            }
        ],
    )
    active = objects.condition("horizontalpodautoscalers", "web", "ScalingActive")
    assert (active["status"], active["reason"]) == ("False", "FailedGetResourceMetric")


def test_figures_are_shown_where_they_decided(objects: Objects) -> None:
    scaled(objects, "50m")
    assert objects.get("horizontalpodautoscalers", "web")["status"]["currentMetrics"]
    objects.patch("deployments", "web", spec={"replicas": 0})
    advance(objects, "20s")
    assert not objects.get("horizontalpodautoscalers", "web")["status"]["currentMetrics"]
    objects.patch("horizontalpodautoscalers", "web", spec={"scaleTargetRef": {"name": "none"}})
    advance(objects, "20s")
    able = objects.condition("horizontalpodautoscalers", "web", "AbleToScale")
    assert able["message"].endswith(' current scale: deployments.apps "none" not found')


def scaler(**spec: Any) -> dict[str, Any]:
    return {"spec": {"minReplicas": 1, "maxReplicas": 100, **spec}}


@pytest.mark.parametrize(
    ("behavior", "present", "proposed", "expected", "reason"),
    [
        ({}, 10, 30, 20, "ScaleUpLimit"),
        ({}, 1, 30, 5, "ScaleUpLimit"),
        (
            {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
            10,
            30,
            11,
            "ScaleUpLimit",
        ),
        ({"scaleUp": {"selectPolicy": "Disabled"}}, 10, 30, 10, "ScaleUpLimit"),
        ({"scaleDown": {"selectPolicy": "Disabled"}}, 10, 3, 10, "ScaleDownLimit"),
        (
            {"scaleDown": {"policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}]}},
            10,
            3,
            9,
            "ScaleDownLimit",
        ),
        ({}, 10, 3, 3, "DesiredWithinRange"),
        ({}, 10, 0, 1, "TooFewReplicas"),
        ({}, 90, 130, 100, "TooManyReplicas"),
    ],
)
def test_policies(behavior: Any, present: int, proposed: int, expected: int, reason: str) -> None:
    found = bounded(scaler(behavior=behavior), RecentScales(), present, proposed, 1000.0)
    assert (found.replicas, found.why[0]) == (expected, reason)


def test_what_was_added_lately_counts() -> None:
    past = RecentScales(changes=[(990.0, 4)])
    behavior = {"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}}
    assert bounded(scaler(behavior=behavior), past, 8, 30, 1000.0).replicas == 8
    assert bounded(scaler(behavior=behavior), past, 8, 30, 1100.0).replicas == 12
