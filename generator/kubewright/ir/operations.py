"""The operations of an ordinary OpenAPI document: what is sent, what comes back, who may ask.

Data only. The types of parameters, bodies and answers are scalars, lists, maps and references: objects that a document
writes out at an operation are definitions of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubewright.ir.types import Value
from kubewright.location import Location

EVENTS: Final = "text/event-stream"
LINES: Final = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
    | {"application/json-lines", "application/jsonlines", "application/json-seq", "application/x-json-stream"}
)
"""Media types of answers that go on: events, and lines that are JSON values each (``apimachinery.openapi.streams``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter. ``place`` is path, query, header or cookie; ``style`` and ``explode`` as OpenAPI 3 has them, an
    empty style for the usual one of the place; ``media_type`` is there where the value is JSON."""

    name: str
    place: str
    required: bool
    value: Value
    style: str = ""
    explode: bool = False
    media_type: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A body in one media type; without a ``value`` it is text or bytes. ``styles`` are those of fields of a form,
    where they are unusual."""

    media_type: str
    value: Value | None = None
    styles: tuple[tuple[str, str], ...] = ()

    @property
    def plain_type(self) -> str:
        """The media type without its parameters, in small letters."""
        return self.media_type.partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one ``status`` (``200``, ``4XX``, ``default``) comes with."""

    status: str
    contents: tuple[Content, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """How a listing goes on (``apimachinery.openapi.operation.Paging``); ``cursors`` are pairs of a query parameter and
    where its next value is."""

    link_header: bool = False
    url: str = ""
    cursors: tuple[tuple[str, str], ...] = ()
    more: str = ""
    items: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. ``name`` is its operationId, or made of method and path; ``security`` the alternatives, each the
    names of its schemes; ``server`` a URL where it is not that of the document."""

    name: str
    tag: str
    method: str
    path: str
    location: Location
    parameters: tuple[Parameter, ...] = ()
    bodies: tuple[Content, ...] = ()
    needs_body: bool = False
    answers: tuple[Answer, ...] = ()
    security: tuple[tuple[str, ...], ...] = ()
    server: str = ""
    doc: str = ""
    deprecated: bool = False
    pages: Listing | None = None

    def values(self) -> tuple[Value, ...]:
        """Every type that is named."""
        contents = (*self.bodies, *(content for answer in self.answers for content in answer.contents))
        return (
            *(parameter.value for parameter in self.parameters),
            *(content.value for content in contents if content.value is not None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityScheme:
    """A credential: after ``prefix`` in the header, query parameter or cookie called ``key``. ``is_pair`` where it is
    user and password."""

    name: str
    place: str
    key: str
    prefix: str = ""
    is_pair: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The operations of a document, with what it says of itself. ``forms`` names the definitions that are sent as
    ``multipart/form-data``: binary text in them is bytes."""

    title: str = ""
    server: str = ""
    operations: tuple[Operation, ...] = ()
    schemes: tuple[SecurityScheme, ...] = ()
    forms: frozenset[str] = frozenset()

    def sent(self) -> tuple[Value, ...]:
        """The types of all bodies that are sent."""
        contents = (content for operation in self.operations for content in operation.bodies)
        return tuple(content.value for content in contents if content.value is not None)

    def received(self) -> tuple[Value, ...]:
        """The types of all answers."""
        answers = (answer for operation in self.operations for answer in operation.answers)
        contents = (content for answer in answers for content in answer.contents)
        return tuple(content.value for content in contents if content.value is not None)
