"""What a write is about, and whether an object is the one that the path names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from apimachinery.http.messages import Request, User
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import bad_request, undeterminable_name
from apimachinery.meta.field_errors import FieldError
from apimachinery.schema.typed_form import Empties, with_empties
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.options import WriteOptions
from apimachinery.storage.interface import Record


class Allocation(Protocol):
    """What one write is given that no two objects may have, until it is stored or fails."""

    async def secure(self, name: str) -> None:
        """Takes the allocation right before the object is stored. Raises ApiError if another server was faster."""

    async def keep(self) -> None:
        """Frees what the object no longer has, after it was stored."""

    async def drop(self) -> None:
        """Frees what the object was given, if it was not stored."""


def _hold_nothing(data: bytes, **_: Any) -> None:
    """Holds nothing: of the server's own writes few are under way at once."""


class WriteTarget(msgspec.Struct):
    """What a write is about. ``warnings`` collects texts for the answer, ``annotations`` for the audit event.

    ``shown_as`` is what admission sees of the object, where a subresource has a kind of its own (a Scale), and
    ``takes`` puts into the object what admission made of that. ``large`` says that the request or the object
    is. ``allocation`` is what its object is given meanwhile. ``hold`` counts what an object takes that is
    read from bytes, as ``Request.hold``; it raises Crowded. ``empties`` is what is sent and empty, for whoever judges
    the object.
    ``faults`` are those that only what is around the object shows, reported with its own.
    ``has_empties``: the object is stored with empty collections in its metadata that reading it does not show: this
    write is made whatever it changes, and the next one too. ``applying``: what is written comes of a server-side apply.
    """

    served: Served
    namespace: str
    name: str
    options: WriteOptions
    subresource: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)
    user: User | None = None
    duplicates: list[str] = msgspec.field(default_factory=list)
    shown_as: Callable[[Json], Json] | None = None
    takes: Callable[[Json, Json], None] | None = None
    large: bool = False
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    allocation: Allocation | None = None
    hold: Callable[..., None] = _hold_nothing
    empties: Empties = ()
    has_empties: bool = False
    applying: bool = False
    faults: list[FieldError] = msgspec.field(default_factory=list)

    @classmethod
    def asked(
        cls,
        request: Request,
        served: Served,
        namespace: str,
        name: str,
        options: WriteOptions,
        subresource: str = "",
    ) -> WriteTarget:
        """What a request asks for."""
        return cls(
            served,
            namespace,
            name,
            options,
            subresource,
            request.warnings,
            request.user,
            large=request.large,
            annotations=request.annotations,
            hold=request.hold,
        )

    def as_sent(self, obj: Json) -> Json:
        """The object with what was sent and is empty."""
        return with_empties(obj, self.empties) if self.empties else obj

    @property
    def key(self) -> str:
        """The storage key."""
        return self.served.key(self.namespace, self.name)


class Written(msgspec.Struct, frozen=True):
    """The object after a write, as a record, and whether the write created it."""

    record: Record
    created: bool = False


def metadata_of(obj: Json) -> Json:
    """``metadata``, put there where it is missing or null."""
    metadata: Json | None = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    return metadata


def match_namespace(metadata: Json, namespace: str) -> None:
    """Sees to it that the object is of the namespace of the path. Raises ApiError 400."""
    given = metadata.get("namespace") or ""
    if given == namespace or not given or not namespace:
        if namespace:
            metadata["namespace"] = namespace
        elif given:
            del metadata["namespace"]  # nobody else's: the kind has none
        return
    raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def match_name(obj: Json, name: str) -> None:
    """Sees to it that the object has the name of the path. Raises ApiError 400."""
    given = metadata_of(obj).get("name") or ""
    if not given:
        raise undeterminable_name(name)
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
