"""How Scales of both families differ.

kube-apiserver has a storage of its own for the Scale of each built-in kind, and one handler for those of custom
resources. That one looks the replicas up by a path that may lead nowhere, and its scheme does not know the kind Scale:
what would be decoded into one, or converted, fails inside.
"""

from __future__ import annotations

from collections.abc import Mapping

from apimachinery.kinds.hooks import Json
from apimachinery.meta.accessors import accessor_error
from apimachinery.meta.errors import ApiError, bad_request, internal, plain_failure
from apimachinery.meta.field_errors import invalid, invalid_value
from apimachinery.server.catalog.family import BUILT_IN, CUSTOM, Family, Named

UNSET = -(1 << 31)
"""Stands for the replicas of a custom object that has none, so that a patch of its Scale is seen to set them."""
_NO_MANAGER = "failed to create manager for existing fields: "
_NO_CONVERTER = (
    "failed to convert {} object ({}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an "
    "invalid group/version: autoscaling/v1"
)
_NO_KIND = (
    "no kind is registered for the type v1.Scale in scheme "
    '"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781"'
)
_NAMES = frozenset({"name", "namespace"})


class BuiltInScale:
    """Scales of built-in kinds. ``path`` is where an object keeps its replicas; messages name ``go_type``."""

    go_type = "*autoscaling.Scale"
    name_format, age_type = "", "string"  # of a Table's columns

    def check_types(self, obj: Json, paths: tuple[str, str, str]) -> None:
        """Accepts every object: what is stored fits its struct."""

    def shown_replicas(self, replicas: int | None, path: str, *, demands: bool) -> int | None:
        """The replicas of a Scale: a struct's field has a value, or zero."""
        return replicas

    def check_replicas(self, named: Named, name: str, replicas: int, path: str) -> None:
        """Raises ApiError 422: a fault of the Scale."""
        if replicas < 0:
            fault = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid("Scale", "autoscaling", name, [fault])

    def undecoded(self, error: ApiError) -> ApiError:
        """The refusal of a body that cannot be read as a Scale."""
        return error

    def check_live(self, live: Json) -> None:
        """Accepts every live Scale: one can apply to all of them."""

    def check_applied(self, applied: Json) -> None:
        """Accepts everything that is applied: all of it can be converted."""


class CustomScale:
    """Scales of custom resources."""

    go_type = "*v1.Scale"
    name_format, age_type = "name", "date"

    def check_types(self, obj: Json, paths: tuple[str, str, str]) -> None:
        """Raises ApiError 500: the definition may be younger than the object, whose values have other types then."""
        for path, wanted in zip(paths, (int, int, str), strict=True):
            if path and (text := accessor_error(obj, path, wanted)):
                raise plain_failure(text)

    def shown_replicas(self, replicas: int | None, path: str, *, demands: bool) -> int | None:
        """The path may lead nowhere, which a write may mend. Raises ApiError 500 where one ``demands`` replicas."""
        if replicas is None and demands:
            raise internal(f'the spec replicas field "{path}" does not exist')
        return UNSET if replicas is None else replicas

    def check_replicas(self, named: Named, name: str, replicas: int, path: str) -> None:
        """Raises ApiError 400, 422: a fault of the object itself."""
        if replicas == UNSET:
            raise bad_request(f'the spec replicas field "{path}" cannot be empty')
        if replicas < 0:
            fault = invalid_value(path, replicas, "should be a non-negative integer")
            raise invalid(named.kind, named.group, name, [fault])

    def undecoded(self, error: ApiError) -> ApiError:
        """What is wrong with the body is said in terms of a kind that the handler does not know, so it says that."""
        return bad_request(_NO_KIND) if error.code == 400 else error

    def check_live(self, live: Json) -> None:
        """Raises ApiError 500: field managers convert what nobody has owned yet."""
        if "managedFields" not in live["metadata"]:
            raise plain_failure(_NO_MANAGER + _NO_CONVERTER.format("live", "/"))

    def check_applied(self, applied: Json) -> None:
        """Raises ApiError 500: the missing converter is noticed once there is something to convert."""
        metadata = applied.get("metadata") or {}
        if applied.get("spec") or metadata.keys() - _NAMES:
            raise plain_failure(
                _NO_CONVERTER.format("new", f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}")
            )


SCALES: Mapping[Family, BuiltInScale | CustomScale] = {BUILT_IN: BuiltInScale(), CUSTOM: CustomScale()}
