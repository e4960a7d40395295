"""HorizontalPodAutoscalers: as many pods as the figures of the present ones ask for.

``scaling_rules`` bounds how far and how fast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from apimachinery.kinds.amounts import parsed
from apimachinery.meta.errors import ApiError
from apimachinery.meta.json import Json
from apimachinery.meta.quantity import Quantity
from apimachinery.meta.selectors import LabelSelector, selector_of

from .conditions import with_condition
from .interface import ClusterView, Workload, write_status
from .moments import text_of
from .owners import is_going, labels_of
from .pods import is_ready, phase
from .scaling_rules import RecentScales, bounded

SCALERS = "horizontalpodautoscalers.autoscaling"
SYNC_SECONDS = 15.0
TOLERANCE = Fraction(1, 10)
_CONTROLLER = "the HPA controller was"
_NO_COUNT = "the HPA was unable to compute the replica count"
TARGETS = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
}
"""Kinds that can be scaled here. One of another kind is left as it is, and the status says so."""


class NoFigures(Exception):
    """Nothing can be said of a metric; the reason and the sentence of the condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


class Autoscaling:
    """The controller, with what it remembers of each autoscaler by its uid."""

    def __init__(self) -> None:
        self._pasts: dict[str, RecentScales] = {}

    async def reconcile(self, cluster: ClusterView, scaler: Json) -> float | None:
        """Scales the target of an autoscaler. Raises ApiError."""
        uid = scaler["metadata"]["uid"]
        if is_going(scaler):
            self._pasts.pop(uid, None)
            return None
        await _Look(cluster, scaler, self._pasts.setdefault(uid, RecentScales())).take()
        return SYNC_SECONDS


def workload() -> Workload:
    """The controller of one server."""
    return Workload(SCALERS, Autoscaling().reconcile)


class _Look:
    """One look at an autoscaler."""

    def __init__(self, cluster: ClusterView, scaler: Json, past: RecentScales) -> None:
        self.cluster, self.scaler, self.spec, self.past = cluster, scaler, scaler["spec"], past
        self.status: Json = dict(scaler.get("status") or {})
        self.namespace = scaler["metadata"]["namespace"]

    def _condition(self, kind: str, value: str, reason: str, message: str) -> None:
        made = {"type": kind, "status": value, "lastTransitionTime": text_of(self.cluster.now())}
        made |= {"reason": reason, "message": message}
        self.status["conditions"] = with_condition(self.status.get("conditions"), made)

    async def take(self) -> None:
        """Reads the figures, scales, and says so."""
        wanted = self.spec["scaleTargetRef"]
        resource = TARGETS.get(wanted["kind"], "")
        target = self.cluster.get(resource, self.namespace, wanted["name"]) if resource else None
        if target is None:
            missing = f'{resource or wanted["kind"]} "{wanted["name"]}" not found'
            text = f"{_CONTROLLER} unable to get the target's current scale: {missing}"
            self._condition("AbleToScale", "False", "FailedGetScale", text)
        else:
            await self._scale(resource, target)
        self.status["observedGeneration"] = self.scaler["metadata"].get("generation", 0)
        if not self.status["observedGeneration"]:
            del self.status["observedGeneration"]
        await write_status(self.cluster, SCALERS, self.scaler, self.status)

    async def _scale(self, resource: str, target: Json) -> None:
        self._condition(
            "AbleToScale",
            "True",
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )
        present = target["spec"].get("replicas", 1)
        least, most = self.spec.get("minReplicas", 1), self.spec["maxReplicas"]
        self.status["currentReplicas"] = (target.get("status") or {}).get("replicas", 0)
        self.status.pop("currentMetrics", None)  # shown if they decided
        if present == 0 and least:
            self.status["desiredReplicas"] = 0
            self._condition(
                "ScalingActive",
                "False",
                "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )
            return
        if not least <= present <= most:
            desired = min(max(present, least), most)
        else:
            try:
                proposed = self._proposed(resource, target, present)
            except NoFigures as missing:
                self.status["desiredReplicas"] = present
                self._condition("ScalingActive", "False", missing.reason, missing.message)
                return
            desired = self._bounded(present, proposed)
        if desired != present:
            await self._resize(resource, target, present, desired)
        self.status["desiredReplicas"] = desired

    async def _resize(self, resource: str, target: Json, present: int, desired: int) -> None:
        def change(obj: Json) -> Json:
            obj["spec"]["replicas"] = desired
            return obj

        try:
            await self.cluster.update(resource, target, change)
        except ApiError as error:
            text = f"{_CONTROLLER} unable to update the target scale: {error.message}"
            self._condition("AbleToScale", "False", "FailedUpdateScale", text)
            return
        text = f"{_CONTROLLER} able to update the target scale to {desired}"
        self._condition("AbleToScale", "True", "SucceededRescale", text)
        self.status["lastScaleTime"] = text_of(self.cluster.now())
        self.past.changes.append((self.cluster.now(), desired - present))

    def _bounded(self, present: int, proposed: int) -> int:
        result = bounded(self.scaler, self.past, present, proposed, self.cluster.now())
        self._condition("AbleToScale", "True", *result.able)
        self._condition("ScalingLimited", "True" if result.limited else "False", *result.why)
        return result.replicas

    def _proposed(self, resource: str, target: Json, present: int) -> int:
        """The most that any metric asks for."""
        selects = _selector(target)
        pods = [
            pod for pod in self.cluster.objects("pods", self.namespace) if selects.matches(labels_of(pod))
        ]
        if not pods:
            raise NoFigures(
                "FailedGetResourceMetric", "no pods returned by selector while calculating replica count"
            )
        proposals: list[int] = []
        shown: list[Json] = []
        missing: NoFigures | None = None
        name = ""
        for metric in self.spec.get("metrics") or ():
            try:
                count, figure = self._of_metric(metric, pods, present)
            except NoFigures as fault:
                missing = fault
                continue
            if not proposals or count > max(proposals):
                name = _described(metric)
            proposals.append(count)
            shown.append(figure)
        if missing is not None and (not proposals or max(proposals) < present):
            raise missing
        if shown:
            self.status["currentMetrics"] = shown
        self._condition(
            "ScalingActive",
            "True",
            "ValidMetricFound",
            f"the HPA was able to successfully calculate a replica count from {name}",
        )
        return max(proposals, default=present)

    def _of_metric(self, metric: Json, pods: Sequence[Json], present: int) -> tuple[int, Json]:
        kind = metric["type"]
        if kind not in ("Resource", "ContainerResource"):
            text = f"{_NO_COUNT}: unable to get metric: no {kind} metrics are served"
            raise NoFigures(f"FailedGet{kind}Metric", text)
        key = "resource" if kind == "Resource" else "containerResource"
        source = metric[key]
        name, target = source["name"], source["target"]
        figures = _figures(self.cluster, pods, name, source.get("container", ""))
        if not figures.used:
            text = (
                f"{_NO_COUNT}: failed to get {name} utilization: unable to get metrics for resource {name}: "
                "no metrics returned from resource metrics API"
            )
            raise NoFigures("FailedGetResourceMetric", text)
        total = sum(figures.used.values(), Fraction(0))
        average = total / len(figures.used)
        current: Json = {"averageValue": _spelled(average, name)}
        if target["type"] == "Utilization":
            requested = sum((figures.requests.get(uid, Fraction(0)) for uid in figures.used), Fraction(0))
            if not requested:
                text = f"{_NO_COUNT}: failed to get {name} utilization: missing request for {name}"
                raise NoFigures("FailedGetResourceMetric", text)
            utilization = int(total * 100 / requested)
            current["averageUtilization"] = utilization
            goal, requests = Fraction(target["averageUtilization"], 100), figures.requests
            ratio_of = _by_request(goal, requests)
        else:
            amount = parsed(target.get("averageValue") or target.get("value"))
            goal = amount.value if amount is not None else Fraction(1)
            ratio_of = _by_value(goal)
        shown = {"type": kind, key: {"name": name, "current": current}}
        if kind == "ContainerResource":
            shown[key]["container"] = source["container"]
        return figures.count(ratio_of, present), shown


class _Figures:
    """What the pods of a target use, by uid; ``unready`` and ``missing`` are those that do not count as they are."""

    def __init__(self) -> None:
        self.used: dict[str, Fraction] = {}
        self.requests: dict[str, Fraction] = {}
        self.unready: set[str] = set()
        self.missing: set[str] = set()

    def count(self, ratio_of: Ratio, present: int) -> int:
        """The number of pods that brings the ratio to one. Pods without figures count for little when it is to grow,
        for all they may use when it is to shrink; a small difference changes nothing."""
        ratio = ratio_of(self.used)
        if not self.missing and not (ratio > 1 and self.unready):
            if abs(ratio - 1) <= TOLERANCE:
                return present
            return math.ceil(ratio * len(self.used))
        used = dict(self.used)
        for uid in self.missing:
            used[uid] = ratio_of.whole(uid) if ratio < 1 else Fraction(0)
        if ratio > 1:
            used |= dict.fromkeys(self.unready, Fraction(0))
        again = ratio_of(used)
        if abs(again - 1) <= TOLERANCE or (ratio < 1 < again) or (ratio > 1 > again):
            return present
        count = math.ceil(again * len(used))
        return present if (again < 1 and count > present) or (again > 1 and count < present) else count


class Ratio:
    """What is used, as a part of what should be."""

    def __init__(self, goal: Fraction, requests: dict[str, Fraction] | None) -> None:
        self._goal, self._requests = goal, requests

    def whole(self, uid: str) -> Fraction:
        """What a pod may use at most: all that it requests, or the goal."""
        return self._goal if self._requests is None else self._requests.get(uid, Fraction(0))

    def __call__(self, used: dict[str, Fraction]) -> Fraction:
        """The ratio of what pods use."""
        total = sum(used.values(), Fraction(0))
        if self._requests is None:
            return total / len(used) / self._goal
        asked = sum((self._requests.get(uid, Fraction(0)) for uid in used), Fraction(0))
        return total / asked / self._goal if asked else Fraction(1)


def _by_request(goal: Fraction, requests: dict[str, Fraction]) -> Ratio:
    return Ratio(goal, requests)


def _by_value(goal: Fraction) -> Ratio:
    return Ratio(goal, None)


def _figures(cluster: ClusterView, pods: Sequence[Json], name: str, container: str) -> _Figures:
    """What pods use and request of a resource: a ``container`` of theirs, or all where none is named."""
    made = _Figures()
    for pod in pods:
        uid = pod["metadata"]["uid"]
        if is_going(pod) or phase(pod) == "Failed":
            continue
        made.requests[uid] = _requested(pod, name, container)
        used = {of: amount for of, amount in cluster.usage(pod, name).items() if container in ("", of)}
        if phase(pod) == "Pending" or (name == "cpu" and not is_ready(pod)):
            made.unready.add(uid)
        elif not used:
            made.missing.add(uid)
        else:
            made.used[uid] = sum(used.values(), Fraction(0))
    return made


def _requested(pod: Json, name: str, container: str) -> Fraction:
    amounts = [
        parsed((each.get("resources") or {}).get("requests", {}).get(name, 0))
        for each in pod["spec"]["containers"]
        if container in ("", each["name"])
    ]
    return sum((amount.value for amount in amounts if amount is not None), Fraction(0))


def _spelled(amount: Fraction, name: str) -> str:
    if name == "cpu":
        return f"{math.ceil(amount * 1000)}m"
    return str(Quantity(Fraction(math.ceil(amount)), "decimal"))


def _described(metric: Json) -> str:
    if metric["type"] == "Resource":
        source = metric["resource"]
        what = (
            "resource utilization (percentage of request)"
            if source["target"]["type"] == "Utilization"
            else "resource"
        )
        return f"{source['name']} {what}"
    source = metric["containerResource"]
    return f"{source['name']} container resource utilization (percentage of request)"


def _selector(target: Json) -> LabelSelector:
    given = target["spec"].get("selector") or {}
    return selector_of({"matchLabels": given} if target["kind"] == "ReplicationController" else given)
