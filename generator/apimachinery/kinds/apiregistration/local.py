"""What the creation of an APIService does to it: one without a Service is this server's own, and available at once."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json

LOCALLY_AVAILABLE: Json = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


def mark_local(obj: Json) -> None:
    """Says in the status of a new APIService that it is available, where it names no Service."""
    obj["status"] = {}
    if (obj.get("spec") or {}).get("service") is None:
        obj["status"] = {"conditions": [locally_available(obj["metadata"]["creationTimestamp"])]}


def locally_available(since: str) -> Json:
    """The condition of a local APIService."""
    entry = {"type": "Available", "status": "True", "lastTransitionTime": since}
    return {**entry, **{key: value for key, value in LOCALLY_AVAILABLE.items() if key not in entry}}
