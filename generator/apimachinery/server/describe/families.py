"""What documents say of each family.

kube-apiserver makes the documents of built-in kinds from its routes, and those of custom kinds with a builder of its
own, which knows less of them: no watches by path, fewer media types, codes and parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apimachinery.server.catalog.family import BUILT_IN, CUSTOM, Family
from apimachinery.server.describe.openapi_parameters import BUILTIN_PARAMETERS, CUSTOM_PARAMETERS, Parameter
from apimachinery.server.request.codecs import MEDIA_TYPES
from apimachinery.server.request.media_types import (
    APPLY_CBOR_PATCH,
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)

JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE, _ = MEDIA_TYPES
ANY = ("*/*",)
STREAMED = (
    *MEDIA_TYPES,
    f"{JSON_TYPE};stream=watch",
    f"{PROTOBUF_TYPE};stream=watch",
    "application/cbor-seq",
)
_CUSTOM_TYPES = (JSON_TYPE, YAML_TYPE)


@dataclass(frozen=True, slots=True)
class Documented:
    """Facts of one family.

    ``listed`` are the media types of lists, ``patched`` the codes of a patch. ``watches``: whether the old paths of
    watches are operations. ``groups``: whether each group has an operation and a document. ``clears_by_options``:
    whether deletecollection takes DeleteOptions. ``names_subresources``: whether an operation on a subresource is of
    the subresource's kind rather than the resource's. ``names_own_version``: whether discovery names group and version
    of answers also where they are the resource's own.
    """

    types: tuple[str, ...]
    consumes: tuple[str, ...]
    listed: tuple[str, ...]
    patches: tuple[str, ...]
    patched: tuple[int, ...]
    parameters: Mapping[str, Mapping[str, Parameter]]
    watches: bool
    groups: bool
    clears_by_options: bool
    names_subresources: bool
    names_own_version: bool


DOCUMENTED: Mapping[Family, Documented] = {
    BUILT_IN: Documented(
        types=MEDIA_TYPES,
        consumes=ANY,  # routes take any type and refuse it when they decode
        listed=STREAMED,  # the path of a list is that of a watch, by a parameter
        patches=(JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH, APPLY_CBOR_PATCH),
        patched=(200, 201),  # an apply may create
        parameters=BUILTIN_PARAMETERS,
        watches=True,
        groups=True,
        clears_by_options=True,
        names_subresources=True,
        names_own_version=False,
    ),
    CUSTOM: Documented(
        types=_CUSTOM_TYPES,  # there are no protobuf messages, and the builder leaves out CBOR
        consumes=_CUSTOM_TYPES,
        listed=_CUSTOM_TYPES,
        patches=(JSON_PATCH, MERGE_PATCH, APPLY_PATCH),  # no Go struct says how lists merge strategically
        patched=(200,),
        parameters=CUSTOM_PARAMETERS,
        watches=False,
        groups=False,  # a document of a CRD is of one version of it
        clears_by_options=False,
        names_subresources=False,  # a Scale is read and written under the resource's own kind
        names_own_version=True,
    ),
}
