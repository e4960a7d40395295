"""AlwaysPullImages: every image is pulled again, so that nobody runs an image of others without its credentials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.kinds.fields import items
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import forbidden
from apimachinery.meta.field_errors import not_supported
from apimachinery.server.admission.interface import Operation, Plugin

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
ALWAYS = "Always"


class AlwaysPullImages(Plugin):
    """Sets the pull policy of containers and of volumes that are images."""

    resources = frozenset({("", "pods")})

    def admit(self, operation: Operation) -> None:
        """Sets every policy to Always, unless the operation is an update that brings no new image."""
        if _is_about(operation):
            for holder, key, _ in _policies((operation.obj or {}).get("spec") or {}):
                holder[key] = ALWAYS

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403 where a later plugin changed a policy."""
        if not _is_about(operation):
            return
        for holder, key, path in _policies((operation.obj or {}).get("spec") or {}):
            if holder.get(key) != ALWAYS:
                fault = not_supported(path, holder.get(key) or "", (ALWAYS,))
                raise forbidden("pods", "", operation.said_name, str(fault))


def _is_about(operation: Operation) -> bool:
    if operation.obj is None or operation.target.subresource:
        return False
    if operation.verb != "UPDATE" or operation.old is None:
        return True
    return bool(_images(operation.obj) - _images(operation.old))


def _images(pod: Json) -> set[str]:
    spec = pod.get("spec") or {}
    return {str(each.get("image")) for kind in CONTAINERS for each in items(spec, kind)}


def _policies(spec: Json) -> Iterator[tuple[dict[str, Any], str, str]]:
    for kind in CONTAINERS:
        for number, container in enumerate(items(spec, kind)):
            yield container, "imagePullPolicy", f"spec.{kind}[{number}].imagePullPolicy"
    for number, volume in enumerate(items(spec, "volumes")):
        image = volume.get("image")
        if isinstance(image, dict):
            yield image, "pullPolicy", f"spec.volumes[{number}].image.pullPolicy"
