"""Bindings and evictions of pods: calls that change or delete a pod.

A binding gives a pod its node (``pods/NAME/binding``, or ``bindings`` with the name in the body); it is written as it
is, without owning fields. An eviction deletes a pod unless a PodDisruptionBudget needs it: the budget's status counts
down first, and remembers the pod until a controller sees it gone. Texts are kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from apimachinery.http.messages import Request, Response
from apimachinery.kinds.hooks import Json
from apimachinery.meta.asked import Route
from apimachinery.meta.clock import now
from apimachinery.meta.errors import (
    ApiError,
    Cause,
    bad_request,
    conflict,
    forbidden,
    not_found,
    plain_failure,
)
from apimachinery.meta.field_errors import FieldError, invalid, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import go_quote
from apimachinery.meta.selectors import SelectorError, selector_of
from apimachinery.server.admission.interface import Admission, Operation
from apimachinery.server.admission.order import PluginsInOrder
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.family import IsKind
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import read_sent
from apimachinery.server.request.codecs import Codecs, whole
from apimachinery.server.request.negotiation import negotiate
from apimachinery.server.request.options import (
    IGNORES_READ_ERRORS,
    DeletionOptions,
    WriteOptions,
    checked_delete_options,
    read_write_options,
    stated_delete_options,
)
from apimachinery.server.request.target import WriteTarget, match_namespace, metadata_of
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.effects import Current, Steps
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import KeyNotFound, Record, RevisionConflict
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

TRIES = 12
BUDGETS = "/policy/poddisruptionbudgets/"
MOST_DISRUPTED = 2000
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_OVER = ("Failed", "Pending", "Succeeded")
"""Phases in which a pod is of no use to anybody who counts on it."""


SAME = {"eviction": ("policy/v1beta1",)}
"""No release serves this version any more; clients of old ones evict by it all the same, and are understood."""


class PodCalls:
    """Answers bindings and evictions. ``kinds`` are what their bodies are read by, by subresource."""

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        writer: Writer,
        admission: Admission,
        codecs: Codecs,
        is_kind: IsKind,
        kinds: dict[str, Served],
    ) -> None:
        self._catalog = catalog
        self._cache = cache
        self._pipeline = writer.pipeline
        self._admission = admission
        # Nobody is asked about the deletion of a pod who was asked about its eviction.
        self._deleter = Deleter(writer, PluginsInOrder(()))
        self._codecs = codecs
        self._is_kind = is_kind
        self._kinds = kinds

    def answers(self, route: Route, served: Served) -> bool:
        """Whether a call is one of these."""
        if served.group:
            return False
        if served.plural == "bindings":
            return not route.subresource and "binding" in self._kinds
        return served.plural == "pods" and route.subresource in self._kinds

    def answer(self, request: Request, route: Route, served: Served) -> Steps[Response]:
        """Answers a create. Raises ApiError 400 to 500."""
        subresource = route.subresource or "binding"
        kind = self._kinds[subresource]
        form = negotiate(request.headers.get("accept", ""), self._codecs, tables=False)
        options = read_write_options(request, "CreateOptions")
        same = SAME.get(subresource, ())
        obj, _ = read_sent(
            request, self._codecs, kind, self._is_kind, options.validation, request.warnings, same
        )
        # Plugins see what it is, where the client did not say so.
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, **obj}
        metadata = metadata_of(obj)
        match_namespace(metadata, route.namespace)
        if not route.subresource:
            metadata.pop("uid", None)  # as of whatever is created in a collection
        if not route.name and not metadata.get("name"):
            for fault in _binding_faults(obj.get("target") or {}):
                raise plain_failure(str(fault))
            raise bad_request("Name parameter required.")
        target = WriteTarget.asked(
            request, served, route.namespace, route.name or metadata["name"], options, route.subresource
        )
        operation = Operation("CREATE", target, obj, None, target.name)
        yield from self._admission.admit(operation)
        if metadata_of(obj).get("name") != target.name:
            raise bad_request(f"name in URL does not match name in {kind.kind} object")
        if subresource == "binding":
            yield from self._bind(operation, obj)
        else:
            yield from self._evict(operation, obj)
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return Response(201, whole(form.codec, status), form.codec.media_type)

    def _pods(self) -> Served:
        served = self._catalog.find("", "v1", "pods")
        assert served is not None  # their subresources are served
        return served

    def _bind(self, operation: Operation, binding: Json) -> Steps[None]:
        target, metadata = operation.target, binding["metadata"]
        node = binding.get("target") or {}
        for fault in _binding_faults(node):
            raise plain_failure(str(fault))
        yield from self._admission.validate(operation)
        name = node["name"]

        def assign(pod: Json) -> None:
            self._check_preconditions(target, pod, metadata)
            spec, of_pod = pod["spec"], pod["metadata"]
            why = ""
            if "deletionTimestamp" in of_pod:
                why = f"pod {target.name} is being deleted, cannot be assigned to a host"
            elif spec.get("nodeName"):
                why = f"pod {target.name} is already assigned to node {go_quote(spec['nodeName'])}"
            elif spec.get("schedulingGates"):
                why = f"pod {target.name} has non-empty .spec.schedulingGates"
            if why:
                raise conflict("pods/binding", "", target.name, why)
            spec["nodeName"] = name
            # A scheduler that preempted for this pod reserved a node; the binding settles it (since 1.34).
            (pod.get("status") or {}).pop("nominatedNodeName", None)
            for key in ("annotations", "labels"):
                if metadata.get(key):
                    of_pod[key] = {**(of_pod.get(key) or {}), **metadata[key]}
            _set_condition(pod, {"type": "PodScheduled", "status": "True"})

        yield from self._change(target, assign)

    def _check_preconditions(self, target: WriteTarget, pod: Json, wanted: Json) -> None:
        for name, key in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
            if wanted.get(key) and wanted[key] != pod["metadata"].get(key):
                place = self._pods().registry_key(target.namespace, target.name)
                if target.options.dry_run:
                    place = place.removeprefix("/registry")
                raise conflict(
                    "pods",
                    "",
                    target.name,
                    f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: "
                    f"Precondition failed: {name} in precondition: {wanted[key]}, "
                    f"{name} in object meta: {pod['metadata'].get(key)}",
                )

    def _change(self, target: WriteTarget, change: Callable[[Json], None]) -> Steps[None]:
        """Changes the pod that a target names, as it is then."""
        served = self._pods()
        whole_pod = WriteTarget(served, target.namespace, target.name, target.options)
        for _ in range(TRIES):
            record: Record | None = yield Current(whole_pod)
            if record is None:
                raise not_found("pods", "", target.name)
            pod = served.read(record)
            change(pod)
            served.form(pod)
            try:
                yield from self._pipeline.replace(whole_pod, record, pod)
            except (KeyNotFound, RevisionConflict):
                continue
            return
        raise conflict("pods", "", target.name)

    def _evict(self, operation: Operation, eviction: Json) -> Steps[None]:
        target = operation.target
        given = eviction.get("deleteOptions") or {}
        _check_options(given, operation)
        options = stated_delete_options(given)
        options = replace(options, dry_run=options.dry_run or target.options.dry_run)
        served = self._pods()
        whole_pod = WriteTarget(
            served, target.namespace, target.name, WriteOptions(dry_run=options.dry_run), user=target.user
        )
        record: Record | None = yield Current(whole_pod)
        if record is None:
            raise not_found("pods", "", target.name)
        yield from self._admission.validate(operation)
        pod = served.read(record)
        if not _is_over(pod):
            yield from self._count_down(whole_pod, pod)
        self._deleter.check(whole_pod, pod, options)
        options = checked_delete_options(options)
        if not options.dry_run and "deletionTimestamp" not in pod["metadata"]:
            yield from self._change(whole_pod, _mark_evicted)
            if options.resource_version is not None:
                # It was that of the pod before it was marked.
                options = DeletionOptions(
                    grace_seconds=options.grace_seconds, policy=options.policy, uid=options.uid
                )
        yield from self._deleter.steps(whole_pod, options)

    def _count_down(self, target: WriteTarget, pod: Json) -> Steps[None]:
        """Takes one disruption from the budget that a pod is of. Raises ApiError 429 where none is left."""
        served = self._catalog.find("policy", "v1", "poddisruptionbudgets")
        budgets = [] if served is None else self._budgets_of(pod)
        if served is None or not budgets:
            return
        if len(budgets) > 1:
            raise plain_failure(SEVERAL)
        budget = budgets[0]
        status, policy = budget.get("status") or {}, budget["spec"].get("unhealthyPodEvictionPolicy")
        if not _is_ready(pod):
            if policy == "AlwaysAllow":
                return
            desired = status.get("desiredHealthy") or 0
            if (status.get("currentHealthy") or 0) >= desired > 0:
                return
        name = budget["metadata"]["name"]
        options = WriteOptions(dry_run=target.options.dry_run, manager="kube-apiserver")
        place = WriteTarget(served, target.namespace, name, options, "status")
        yield from self._pipeline.update(
            place, lambda old: _counted_down(old, target.name, dry_run=options.dry_run)
        )

    def _budgets_of(self, pod: Json) -> list[Json]:
        """The budgets whose selector takes a pod in."""
        found = []
        labels = pod["metadata"].get("labels") or {}
        scope = f"{BUDGETS}{pod['metadata']['namespace']}/"
        for record in self._cache.resource(BUDGETS).snapshot(scope).records:
            budget = decode(record.value)
            selector = (budget.get("spec") or {}).get("selector")
            if selector is None:
                continue
            try:
                if selector_of(selector).matches(labels):
                    found.append(budget)
            except SelectorError:
                continue
        return found


def _binding_faults(node: Json) -> list[FieldError]:
    faults = []
    if node.get("kind") not in (None, "", "Node"):
        faults.append(not_supported("target.kind", node["kind"], ("Node", "<empty>")))
    if not node.get("name"):
        faults.append(required_error("target.name"))
    return faults


def _check_options(given: Json, operation: Operation) -> None:
    """Raises ApiError 422 or 500 for options of a deletion that an eviction cannot have."""
    if given.get(IGNORES_READ_ERRORS):
        detail = "can not be set for pod eviction, try after removing the option"
        fault = invalid_value(f"deleteOptions.{IGNORES_READ_ERRORS}", True, detail)
        raise invalid("Eviction", "policy", operation.target.name, [fault])
    asked, content = operation.target.options.stated.get("dryRun") or (), given.get("dryRun") or ()
    if asked and content and list(asked) != list(content):
        shown = f"[{' '.join(asked)}] and [{' '.join(content)}]"
        raise plain_failure(f"Non-matching dry-run options in request and content: {shown}")


def _is_over(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"] or (pod.get("status") or {}).get("phase") in _OVER


def _is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _mark_evicted(pod: Json) -> None:
    _set_condition(
        pod,
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        },
    )


def _set_condition(pod: Json, condition: Json) -> None:
    status = pod.setdefault("status", {})
    conditions = status.get("conditions") or []
    others = [each for each in conditions if each.get("type") != condition["type"]]
    present: Json = next((each for each in conditions if each.get("type") == condition["type"]), {})
    same = present.get("status") == condition["status"]
    moment = present.get("lastTransitionTime") if same else now()
    status["conditions"] = [*others, {**condition, "lastProbeTime": None, "lastTransitionTime": moment}]


def _counted_down(budget: Json, pod: str, *, dry_run: bool) -> Json:
    """A budget with one disruption less. Raises ApiError 403, 429."""
    metadata, status = budget["metadata"], budget.setdefault("status", {})
    name, allowed = metadata["name"], status.get("disruptionsAllowed") or 0
    if (status.get("observedGeneration") or 0) < (metadata.get("generation") or 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, retry_after=10)
    disrupted = status.get("disruptedPods") or {}
    if allowed < 0:
        raise forbidden("poddisruptionbudget", "", name, "pdb disruptions allowed is negative")
    if len(disrupted) > MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("poddisruptionbudget", "", name, why)
    if not allowed:
        raise _too_many(_why_none(name, status))
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        status["conditions"] = _none_allowed(status.get("conditions") or [], metadata.get("generation") or 0)
    if not dry_run:
        status["disruptedPods"] = {**disrupted, pod: now()}
    return budget


def _why_none(name: str, status: Json) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "DisruptionAllowed" and condition.get("reason") == "SyncFailed":
            told = f"The disruption budget {name} does not allow evicting pods currently because it failed sync: "
            return told + str(condition.get("message") or "")
    desired, current = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
    return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"


def _none_allowed(conditions: list[Any], generation: int) -> list[Any]:
    """The conditions of a budget that allows no more."""
    kind = "DisruptionAllowed"
    present = next((each for each in conditions if each.get("type") == kind), None)
    condition = {
        "type": kind,
        "status": "False",
        "observedGeneration": generation,
        "lastTransitionTime": now(),
        "reason": "InsufficientPods",
        "message": "",
    }
    if present is None:
        return [*conditions, condition]
    if present.get("status") == "False":
        condition["lastTransitionTime"] = present.get("lastTransitionTime")
    return [condition if each is present else each for each in conditions]


def _too_many(why: str, retry_after: int = 0) -> ApiError:
    cause = Cause("DisruptionBudget", why)
    return ApiError(429, "TooManyRequests", VIOLATES, causes=(cause,), retry_after=retry_after)
