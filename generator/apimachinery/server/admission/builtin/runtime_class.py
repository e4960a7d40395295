"""RuntimeClass: a pod gets the overhead, the node selector and the tolerations of its RuntimeClass."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError, forbidden, plain_failure
from apimachinery.meta.names import path_segment_faults
from apimachinery.meta.printing import go_quote
from apimachinery.meta.quantity import canonical
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache

_OTHER = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_NONE = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Plugin):
    """Fills in what a RuntimeClass says of its pods."""

    resources = frozenset({("", "pods")})

    def __init__(self, cache: WatchCache) -> None:
        self._classes = Objects(cache, "/node.k8s.io/runtimeclasses/")

    def admit(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        found = self._class_of(operation)
        if found is None or operation.obj is None:
            return
        spec = operation.obj["spec"]
        overhead = _overhead(found)
        if overhead:
            if spec.get("overhead") and _canonical(spec["overhead"]) != _canonical(overhead):
                raise _refusal(operation, _OTHER)
            spec["overhead"] = dict(overhead)
        scheduling = found.get("scheduling") or {}
        selector = scheduling.get("nodeSelector") or {}
        if selector:
            given = spec.get("nodeSelector") or {}
            for key, value in sorted(selector.items()):
                if key in given and given[key] != value:
                    raise _refusal(
                        operation,
                        f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                        f"pod.spec.nodeSelector[{key}] = {given[key]}",
                    )
            spec["nodeSelector"] = {**given, **selector}
        present = spec.get("tolerations") or []
        added = [each for each in scheduling.get("tolerations") or () if each not in present]
        if added:
            spec["tolerations"] = [*present, *added]

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403 for a new pod whose overhead is not that of its runtime class."""
        if operation.verb != "CREATE" or operation.target.subresource or operation.obj is None:
            return
        found = self._class_of(operation)
        given = (operation.obj.get("spec") or {}).get("overhead") or {}
        overhead = _overhead(found) if found is not None else None
        if overhead:
            if _canonical(given) != _canonical(overhead):
                raise _refusal(operation, _OTHER)
        elif given:
            raise _refusal(operation, _NONE)

    def _class_of(self, operation: Operation) -> Json | None:
        """The class of a new pod; None where it names none."""
        if operation.verb != "CREATE" or operation.target.subresource or operation.obj is None:
            return None
        name = (operation.obj.get("spec") or {}).get("runtimeClassName")
        if name is None:
            return None
        found = self._classes.get(name)
        if found is None:
            if faults := path_segment_faults(name):
                raise plain_failure(f"invalid resource name {go_quote(name)}: [{' '.join(faults)}]")
            raise _refusal(operation, f"pod rejected: RuntimeClass {go_quote(name)} not found")
        return found


def _overhead(found: Json) -> Json | None:
    overhead: Json | None = (found.get("overhead") or {}).get("podFixed")
    return overhead


def _canonical(amounts: Json) -> dict[str, str]:
    return {name: canonical(amount) for name, amount in amounts.items()}


def _refusal(operation: Operation, why: str) -> ApiError:
    return forbidden("pods", "", operation.name, why)
