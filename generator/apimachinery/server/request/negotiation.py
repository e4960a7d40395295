"""What form a client wants its answer in: ``Accept`` against the media types and transforms that are served.

Rules. Clauses are tried by falling ``q``, then in order; ``*/*`` and ``application/*`` mean the first codec. A clause
with ``as``, ``g`` and ``v`` asks for a Table, or for metadata alone; one that asks for what is not served is
passed over. Paths of built-in resources are first held to the media types their router knows (RFC 9110 section
12.5.1 says more than kube-apiserver does: types are compared by letter, so ``Application/YAML`` is not YAML).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from apimachinery.meta.errors import ApiError, not_acceptable
from apimachinery.server.request.codecs import JSON, MEDIA_TYPES, PROTOBUF_TYPE, YAML, WireCodec

LONGEST_KEPT = 1_000
"""A longer ``Accept`` is read each time."""
META_VERSIONS = ("v1", "v1beta1")
TABLE, METADATA, METADATA_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
AGGREGATED = "APIGroupDiscoveryList"
TRANSFORMS = frozenset({TABLE, METADATA, METADATA_LIST})
_STREAMS = (
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/cbor-seq",
)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """A codec, and the Kind of meta.k8s.io to show objects as (empty: as they are)."""

    codec: WireCodec
    shown_as: str = ""
    version: str = "v1"


PLAIN = AnswerForm(JSON)


@dataclass(frozen=True, slots=True)
class _Clause:
    kind: str
    subtype: str
    parameters: tuple[tuple[str, str], ...]
    quality: float


def _clauses(accept: str) -> tuple[_Clause, ...]:
    return _kept_clauses(accept) if len(accept) < LONGEST_KEPT else _kept_clauses.__wrapped__(accept)


@lru_cache(maxsize=512)
def _kept_clauses(accept: str) -> tuple[_Clause, ...]:
    found = []
    for part in accept.split(","):
        pieces = [piece.strip() for piece in part.split(";")]
        kind, slash, subtype = pieces[0].partition("/")
        if not slash:
            if kind != "*":
                continue
            subtype = "*"
        quality, parameters = 1.0, []
        for piece in pieces[1:]:
            name, _, value = piece.partition("=")
            if name == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 1.0
            else:
                parameters.append((name.strip(), value.strip()))
        found.append(_Clause(kind, subtype, tuple(parameters), quality))
    return tuple(sorted(found, key=lambda clause: -clause.quality))


def check_routed(accept: str, listed: Iterable[str] = MEDIA_TYPES, *, watch: bool = False) -> None:
    """Raises ApiError 406 where the router of built-in paths knows none of the types; ``watch`` is for paths whose
    answer may be a stream."""
    if not accept or (accept == "application/json" and listed is MEDIA_TYPES):
        return
    listed = [*listed, *(_STREAMS if watch else ())]
    for part in accept.split(","):
        media_type = part.partition(";")[0].strip()
        if media_type in listed or media_type == "*/*":
            return
    raise not_acceptable(
        f"406: Not Acceptable\n\nAvailable representations: {', '.join(listed)}", has_details=True
    )


def negotiate(
    accept: str,
    codecs: Iterable[WireCodec],
    *,
    transforms: bool = True,
    has_messages: bool = True,
    tables: bool = True,
) -> AnswerForm:
    """The form of an answer in one of ``codecs``, the first where the client does not care; ``has_messages``: there
    are protobuf messages of the kind. Raises ApiError 406."""
    if not accept or accept == "application/json":
        return PLAIN
    for clause in _clauses(accept):
        for codec in codecs:
            main, _, subtype = codec.media_type.partition("/")
            if clause.kind not in (main, "*") or clause.subtype not in (subtype, "*"):
                continue
            form = _form(codec, dict(clause.parameters), transforms)
            if form is not None and _can_show(form, has_messages) and (tables or form.shown_as != TABLE):
                return form
    raise refused([codec.media_type for codec in codecs])


def negotiate_discovery(accept: str, codecs: Iterable[WireCodec]) -> AnswerForm:
    """The same for discovery, which may be asked for as one document of all groups (``AGGREGATED``, KEP-3352)."""
    for clause in _clauses(accept) if accept else ():
        for codec in codecs:
            main, _, subtype = codec.media_type.partition("/")
            if clause.kind not in (main, "*") or clause.subtype not in (subtype, "*"):
                continue
            parameters = dict(clause.parameters)
            gvk = tuple(parameters.get(name) for name in ("g", "v", "as"))
            if gvk == ("apidiscovery.k8s.io", "v2", AGGREGATED):
                return AnswerForm(codec, AGGREGATED, "v2")
            if (form := _form(codec, parameters, transforms=False)) is not None:
                return form
    if not accept:
        return PLAIN
    raise refused([codec.media_type for codec in codecs])


def preferred(accept: str, media_types: Iterable[str]) -> str | None:
    """The media type that a client asks for first, whatever its parameters; None where it asks for none of them, empty
    where it asks for nothing that can be read."""
    clauses = _clauses(accept)
    for clause in clauses:
        for media_type in media_types:
            main, _, subtype = media_type.partition("/")
            if clause.kind in (main, "*") and clause.subtype in (subtype, "*"):
                return media_type
    return None if clauses else ""


def check_streamed(form: AnswerForm) -> None:
    """Raises ApiError 406 for a watch in a form that is no stream: YAML is none."""
    if form.codec is YAML:
        raise refused(_STREAMS)


def _can_show(form: AnswerForm, has_messages: bool) -> bool:
    """Whether a codec can write a form: Tables are text alone, and metadata has protobuf messages for all kinds."""
    if form.shown_as == TABLE:
        return form.codec in (JSON, YAML)
    return form.codec.media_type != PROTOBUF_TYPE or has_messages or bool(form.shown_as)


def refused(media_types: Iterable[str]) -> ApiError:
    """406: none of what is asked for."""
    return not_acceptable(f"only the following media types are accepted: {', '.join(media_types)}")


def _form(codec: WireCodec, parameters: dict[str, str], transforms: bool) -> AnswerForm | None:
    if "stream" in parameters and (parameters["stream"] != "watch" or codec is YAML):
        return None
    shown_as = parameters.get("as", "")
    if not shown_as:
        return AnswerForm(codec)
    version = parameters.get("v", "")
    if not transforms or shown_as not in TRANSFORMS or parameters.get("g") != "meta.k8s.io":
        return None
    return AnswerForm(codec, shown_as, version) if version in META_VERSIONS else None


def for_error(accept: str, codecs: Iterable[WireCodec]) -> WireCodec:
    """The codec of a failure: what was asked for where that is served, else JSON."""
    for clause in _clauses(accept) if accept else ():
        for codec in codecs:
            kind, _, subtype = codec.media_type.partition("/")
            if clause.kind in (kind, "*") and clause.subtype in (subtype, "*"):
                # A Status is never shown as something else: such a clause does not speak of failures.
                form = _form(codec, dict(clause.parameters), transforms=False)
                return JSON if form is None else form.codec
    return JSON
