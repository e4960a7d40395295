"""Priority: a new pod gets the number and the preemption policy of its PriorityClass, and one class at most is the
default."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import forbidden
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache

PODS = ("", "pods")
CLASSES = ("scheduling.k8s.io", "priorityclasses")
PREEMPTS = "PreemptLowerPriority"
_COMPUTED = "priority admission controller computed {} from the given PriorityClass name"


class Priority(Plugin):
    """Resolves the priority of pods."""

    resources = frozenset({PODS, CLASSES})

    def __init__(self, cache: WatchCache) -> None:
        self._classes = Objects(cache, "/scheduling.k8s.io/priorityclasses/")
        self._known_default: tuple[int, Json | None] = (-1, None)

    def admit(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        obj, served = operation.obj, operation.target.served
        if obj is None or operation.target.subresource or (served.group, served.plural) != PODS:
            return
        spec = obj.setdefault("spec", {})
        if operation.old is not None:
            # What the class said when the pod was made; its later changes do not reach the pod.
            before = operation.old.get("spec") or {}
            for key in ("priority", "preemptionPolicy"):
                if spec.get(key) is None and key in before:
                    spec[key] = before[key]
            return
        name, number, policy = self._resolved(operation, spec)
        if name:
            spec["priorityClassName"] = name
        given = spec.get("priority")
        if given is not None and given != number:
            why = f"the integer value of priority ({given}) must not be provided in pod spec; "
            raise self._refusal(operation, why + _COMPUTED.format(number))
        spec["priority"] = number
        given = spec.get("preemptionPolicy")
        if given is not None and given != policy:
            why = f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
            raise self._refusal(operation, why + _COMPUTED.format(policy))
        spec["preemptionPolicy"] = policy

    def _resolved(self, operation: Operation, spec: Json) -> tuple[str, int, str]:
        """Name, number and preemption policy of the class that a pod is of."""
        name = spec.get("priorityClassName") or ""
        found = self._classes.get(name) if name else self._default()
        if found is None:
            if name:
                raise self._refusal(operation, f"no PriorityClass with name {name} was found")
            return "", 0, PREEMPTS
        return found["metadata"]["name"], found.get("value") or 0, found.get("preemptionPolicy") or PREEMPTS

    def _default(self) -> Json | None:
        """The class of pods that name none: of several defaults that with the lowest number."""
        stamp, found = self._known_default
        if (now := self._classes.stamp) is None or now != stamp:
            defaults = [each for each in self._classes.every() if each.get("globalDefault")]
            found = min(defaults, key=lambda each: each.get("value") or 0, default=None)
            self._known_default = (-1 if now is None else now, found)
        return found

    def _refusal(self, operation: Operation, why: str) -> Exception:
        served = operation.target.served
        return forbidden(served.plural, served.group, operation.name, why)

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403 for a second default."""
        obj, served = operation.obj, operation.target.served
        if obj is None or (served.group, served.plural) != CLASSES or not obj.get("globalDefault"):
            return
        present = self._default()
        if present is None or (operation.old is not None and present["metadata"]["name"] == operation.name):
            return
        why = f"PriorityClass {present['metadata']['name']} is already marked as default. Only one default can exist"
        raise self._refusal(operation, why)
