"""Tables of nodes and of what is about them: events, leases, classes."""

from __future__ import annotations

from fractions import Fraction

from apimachinery.kinds.amounts import parsed
from apimachinery.kinds.cell import (
    NONE,
    UNKNOWN,
    Cell,
    at,
    flag_at,
    get,
)
from apimachinery.kinds.durations import since
from apimachinery.meta.json import Json
from apimachinery.meta.quantity import Quantity


def _last_seen(event: Json) -> str:
    series = get(event, "series.lastObservedTime")
    seen = (
        series or event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or event.get("eventTime")
    )
    return since(seen)


def _first_seen(event: Json) -> str:
    return since(
        event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    )


def _event_object(event: Json) -> str:
    involved = event.get("involvedObject") or event.get("regarding") or {}
    kind, name = str(involved.get("kind", "")).lower(), str(involved.get("name", ""))
    return f"{kind}/{name}" if kind else name


def _event_source(event: Json) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController")
    host = source.get("host") or event.get("reportingInstance")
    return f"{component or ''}, {host}" if host else str(component or "")


def _event_count(event: Json) -> int:
    return get(event, "series.count") or event.get("count") or event.get("deprecatedCount") or 1


def _node_status(node: Json) -> str:
    conditions = {c.get("type"): c.get("status") for c in get(node, "status.conditions") or ()}
    ready = conditions.get("Ready")
    shown = ["Ready" if ready == "True" else "NotReady" if ready else "Unknown"]
    if get(node, "spec.unschedulable"):
        shown.append("SchedulingDisabled")
    return ",".join(shown)


_ROLE = "node-role.kubernetes.io/"


def _roles(node: Json) -> str:
    labels = node["metadata"].get("labels") or {}
    found = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    found.add(labels.get("kubernetes.io/role") or "")
    return ",".join(sorted(name for name in found if name)) or NONE


def _kernel(node: Json) -> str:
    info = get(node, "status.nodeInfo") or {}
    kernel = str(info.get("kernelVersion") or UNKNOWN)
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel


def _node_address(kind: str) -> Cell:
    def cell(node: Json) -> str:
        for address in get(node, "status.addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address", ""))
        return NONE

    return cell


def _health(key: str, nothing: str) -> Cell:
    def cell(status: Json) -> str:
        for condition in status.get("conditions") or ():
            if condition.get("type") == "Healthy":
                healthy = "Healthy" if condition.get("status") == "True" else "Unhealthy"
                return healthy if key == "status" else str(condition.get(key) or "")
        return nothing

    return cell


def _used(metric: str) -> Cell:
    """What a node uses, or all containers of a pod."""

    def cell(measured: Json) -> str:
        parts = measured.get("containers") or [measured]
        amounts = [parsed((part.get("usage") or {}).get(metric, "0")) for part in parts]
        known = [amount for amount in amounts if amount is not None]
        return (
            str(Quantity(sum((each.value for each in known), Fraction(0)), known[0].form)) if known else "0"
        )

    return cell


_MEASURED = {"cpu": _used("cpu"), "memory": _used("memory"), "Window": at("window")}
NODES: dict[str, dict[str, Cell]] = {
    "ComponentStatus": {
        "Status": _health("status", "Unknown"),
        "Message": _health("message", ""),
        "Error": _health("error", ""),
    },
    "Event": {
        "Last Seen": _last_seen,
        "Type": at("type"),
        "Reason": at("reason"),
        "Object": _event_object,
        "Subobject": lambda e: get(e, "involvedObject.fieldPath") or get(e, "regarding.fieldPath") or "",
        "Source": _event_source,
        "Message": lambda e: str(e.get("message") or e.get("note") or "").strip(),
        "First Seen": _first_seen,
        "Count": _event_count,
    },
    "Lease": {"Holder": at("spec.holderIdentity")},
    "Node": {
        "Status": _node_status,
        "Roles": _roles,
        "Version": at("status.nodeInfo.kubeletVersion"),
        "Internal-IP": _node_address("InternalIP"),
        "External-IP": _node_address("ExternalIP"),
        "OS-Image": at("status.nodeInfo.osImage", UNKNOWN),
        "Kernel-Version": _kernel,
        "Container-Runtime": at("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
    },
    "NodeMetrics": _MEASURED,
    "PodMetrics": _MEASURED,
    "PriorityClass": {
        "Value": at("value", 0),
        "Global-Default": flag_at("globalDefault"),
        "PreemptionPolicy": at("preemptionPolicy"),
    },
    "RuntimeClass": {"Handler": at("handler")},
}
