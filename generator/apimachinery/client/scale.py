"""autoscaling/v1 Scale, the same for every resource that has the scale subresource."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, UnsetType

from apimachinery.typed.object import Object, Part


class ScaleSpec(Part, kw_only=True):
    """How many replicas are wanted."""

    replicas: int | UnsetType = UNSET


class ScaleStatus(Part, kw_only=True):
    """How many there are, and the label selector that finds them (in query form)."""

    replicas: int = 0
    selector: str | UnsetType = UNSET


class Scale(Object, kw_only=True):
    """The replica count of another object."""

    API_VERSION: ClassVar[str] = "autoscaling/v1"
    KIND: ClassVar[str] = "Scale"

    api_version: Literal["autoscaling/v1"] = msgspec.field(default="autoscaling/v1", name="apiVersion")
    kind: Literal["Scale"] = "Scale"
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    spec: ScaleSpec = msgspec.field(default_factory=ScaleSpec)
    status: ScaleStatus | UnsetType = UNSET
