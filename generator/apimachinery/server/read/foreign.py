"""Objects as a kube-apiserver stored them, made into what this server would have stored.

Rules (the storage codecs of kube-apiserver): a built-in kind is protobuf in its envelope, or JSON; a custom resource is
JSON, or CBOR behind its self-described tag. What was stored by an older release may be of an older version, and lack
what has become a default since: it is converted and defaulted when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from apimachinery.kinds.hooks import Json
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import add_package
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.served import Served
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.codecs import CBOR, JSON, PROTOBUF_TYPE, Codecs, WireCodec
from apimachinery.storage.layout import package_prefix, place_of, written_as_custom
from apimachinery.wire.json import encode

PROTOBUF = b"k8s\x00"
SELF_DESCRIBED_CBOR = b"\xd9\xd9\xf7"


class ForeignObjects:
    """Reads stored objects; of a kind that no package has it keeps what is there."""

    def __init__(self, options: ApiOptions) -> None:
        self._packages = [ServedPackage(name) for name in options.packages]
        catalog = Catalog(options.emulated_version)
        # Everything that exists may be stored, whether or not it is served.
        everything = ApiOptions(
            packages=options.packages,
            emulated_version=options.emulated_version,
            runtime_config={"api/all": True},
        )
        for package in self._packages:
            add_package(catalog, package, everything)
        self._served = _by_prefix(catalog)
        self._codecs = Codecs([package.messages for package in self._packages])

    def read(self, key: str, data: bytes) -> bytes:
        """The JSON of a stored object. Raises ValueError, which says what is wrong."""
        group, plural, custom = place_of(key)
        served = None if custom else self._served.get(package_prefix(group, plural))
        if served is not None and written_as_custom(data):
            raise ValueError("a custom object, stored where those of a built-in kind are")
        # Stored as this server stores it: most objects need no decoding.
        if data.startswith(b"{") and (served is None or data.startswith(served.opening)):
            return data
        obj = self._decoded(data)
        if served is None:
            return encode(_in_order(obj))
        stored_at = obj.get("apiVersion")
        if stored_at != served.api_version:
            obj = self._converted(served, obj, str(stored_at))
        obj = {**obj, "kind": served.kind, "apiVersion": served.api_version}
        finish_form(obj, served)
        # The revision is that of the storage, never of the stored bytes.
        obj["metadata"].pop("resourceVersion", None)
        return encode(served.family.in_order(obj))

    def _decoded(self, data: bytes) -> Json:
        codec: WireCodec | None = JSON
        if data.startswith(PROTOBUF):
            codec = self._codecs.reading(PROTOBUF_TYPE)
        elif data.startswith(SELF_DESCRIBED_CBOR):
            codec = CBOR
        elif not data.startswith(b"{"):
            raise ValueError("neither JSON nor CBOR nor protobuf of Kubernetes")
        assert codec is not None
        obj = codec.decode(data, [])
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
            raise ValueError("no object with metadata")
        return obj

    def _converted(self, served: Served, obj: Json, stored_at: str) -> Json:
        for package in self._packages:
            function = package.conversion(served.kind, stored_at, served.api_version)
            if function is not None:
                return function(obj)
        raise ValueError(f"stored as {stored_at} {obj.get('kind')}, which this server cannot convert")


def _by_prefix(catalog: Iterable[Served]) -> dict[str, Served]:
    """Of each resource the version that it is stored at."""
    found: dict[str, Served] = {}
    for served in catalog:
        if served.prefix and served.api_version == served.storage_version:
            found[served.prefix] = served
    return found


def _in_order(obj: Json) -> Json:
    """A custom resource as it is stored here."""
    metadata = {key: value for key, value in sorted(obj["metadata"].items()) if key != "resourceVersion"}
    first = {"apiVersion": obj.get("apiVersion", ""), "kind": obj.get("kind", "")}
    rest = {key: value for key, value in {**obj, "metadata": metadata}.items() if key not in first}
    return {**first, **dict(sorted(rest.items()))}
