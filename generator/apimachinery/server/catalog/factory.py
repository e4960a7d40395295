"""What both factories of ``Served`` make alike, whether a kind comes from a CRD or from a generated package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from apimachinery.kinds.hooks import Json
from apimachinery.merge.errors import UnknownVersion
from apimachinery.merge.field_set import FieldSet, from_paths
from apimachinery.merge.typed import MergeType


class KindVersions:
    """The versions of one kind, for managedFields that were written through others of them; merge types are made once.

    ``names`` are the apiVersions there are, ``make_type`` gives the merge type of one, ``convert_to`` an object of
    another version at one. ``unknown`` is what a version that is not there raises: of built-in kinds its owners are
    left out.
    """

    def __init__(
        self,
        names: Iterable[str],
        make_type: Callable[[str], MergeType],
        convert_to: Callable[[Json, str], Json],
        unknown: Callable[[str], Exception] = UnknownVersion,
    ) -> None:
        self.names = tuple(names)
        self._make_type = make_type
        self._convert_to = convert_to
        self._unknown = unknown
        self._types: dict[str, MergeType] = {}

    def type_of(self, api_version: str) -> MergeType:
        merge_type = self._types.get(api_version)
        if merge_type is None:
            self._known(api_version)
            merge_type = self._types[api_version] = self._make_type(api_version)
        return merge_type

    def convert(self, value: Json, api_version: str) -> Json:
        if value.get("apiVersion") == api_version:
            return value
        self._known(api_version)
        return self._convert_to(value, api_version)

    def _known(self, api_version: str) -> None:
        if api_version not in self.names:
            raise self._unknown(api_version)


def unowned_by_main(
    api_versions: Iterable[str], *, has_status: bool, fields: Iterable[str] = ()
) -> Mapping[str, FieldSet]:
    """What writers of the object do not own, by version: ``fields``, and the status where it is a subresource."""
    names = [*fields, *(["status"] if has_status else [])]
    return dict.fromkeys(api_versions, from_paths([(f"f:{name}",) for name in names]))


def unowned_by_status(
    api_versions: Iterable[str], fields: Iterable[str], metadata: Iterable[str] = ()
) -> Mapping[str, FieldSet]:
    """What writers of the status do not own, by version: the top-level ``fields`` and those of metadata that the
    subresource leaves alone."""
    places = [(f"f:{name}",) for name in fields]
    return dict.fromkeys(
        api_versions, from_paths([*places, *(("f:metadata", f"f:{name}") for name in metadata)])
    )


def deprecation(api_version: str, kind: str, *, since: str = "", until: str = "", instead: str = "") -> str:
    """The text of the Warning header for a deprecated version, as kube-apiserver words it."""
    text = f"{api_version} {kind} is deprecated"
    if since:
        text += f" in v{since}+"
    if until:
        text += f", unavailable in v{until}+"
    return f"{text}; use {instead}" if instead else text
