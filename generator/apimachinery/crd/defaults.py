"""The defaults of a CustomResourceDefinition, and what its creation and update fill in."""

from __future__ import annotations

from typing import Any


def default_crd(crd: dict[str, Any]) -> None:
    """Fill in names.singular, names.listKind, conversion.strategy and the webhook's port, in place."""
    spec = crd.get("spec")
    if not isinstance(spec, dict):
        return
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if kind and not names.get("singular"):
        names["singular"] = kind.lower()
    if kind and not names.get("listKind"):
        names["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    webhook = spec["conversion"].get("webhook") or {}
    service = (webhook.get("clientConfig") or {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443


def prepare_crd_for_create(crd: dict[str, Any]) -> None:
    """Reset the status, in place: no conditions, no accepted names, the storage version stored.

    A namespace is dropped: definitions have none, and kube-apiserver does not say so.
    """
    if isinstance(metadata := crd.get("metadata"), dict):
        metadata.pop("namespace", None)
    crd["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored_first(crd),
    }


def prepare_crd_for_update(crd: dict[str, Any], old: dict[str, Any]) -> None:
    """Keep the stored status, in place, and add a new storage version to the stored ones."""
    status = dict(old.get("status") or {})
    stored = list(status.get("storedVersions") or [])
    version = storage_version(crd)
    if version and version not in stored:
        stored.append(version)
    status["storedVersions"] = stored or None
    crd["status"] = status


def stored_first(crd: dict[str, Any]) -> list[str] | None:
    """The storage version alone, whatever it is called; ``None`` where there is none."""
    versions = (crd.get("spec") or {}).get("versions") or ()
    return [storage_version(crd)] if any(version.get("storage") for version in versions) else None


def storage_version(crd: dict[str, Any]) -> str:
    """The name of the first version marked as storage, empty where there is none."""
    for version in (crd.get("spec") or {}).get("versions") or ():
        if version.get("storage"):
            return version.get("name") or ""
    return ""
