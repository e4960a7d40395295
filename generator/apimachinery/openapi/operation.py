"""One operation of an HTTP API as data: what goes into its request, and what each of its answers holds.

The words are those of OpenAPI 3.1. Generated modules have one ``Operation`` for each operation of a document; a client
turns it and the arguments of a call into a request (``encoding``), and the response into a value (``answers``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

T = TypeVar("T")
Place: TypeAlias = Literal["path", "query", "header", "cookie"]
Token: TypeAlias = str | Callable[[], str]
"""A token or key, or a function that is asked for it before each request."""
Credential: TypeAlias = Token | tuple[str, str]
"""A token, or user and password."""


class Left(Enum):
    """The type of ``LEFT_OUT``."""

    OUT = "left out"


LEFT_OUT: Final = Left.OUT
"""The body of a call that sends none; ``None`` is a body too: JSON's null."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its name on the wire, and how a value becomes text. An empty ``style`` is the usual one of its
    place: ``simple`` in paths and headers, ``form`` in queries and cookies. With a ``media_type`` it is JSON."""

    name: str
    place: Place
    style: str = ""
    explode: bool = False
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """A body in one media type; ``styles`` are those of a form's fields that are written in an unusual way."""

    media_type: str
    styles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paging:
    """How a listing goes on. The URL of the next page is in the Link header, or in the body at the JSON pointer
    ``url``; or ``cursors`` gives for query parameters where their next values are: a pointer, or ``header`` and a name.
    ``more`` points to what is true while there is a next page. ``items`` is the field that has the items, empty where
    the body is a list of them."""

    link_header: bool = False
    url: str = ""
    cursors: Mapping[str, str] = field(default_factory=dict)
    more: str = ""
    items: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[T]):
    """One operation; calls of it give ``T``. ``answers``: status (``200``, ``4XX``, ``default``) → media type → type.
    ``security`` lists the alternatives, each the names of the schemes that it takes; ``server`` is there where the
    operation is at another one than the rest."""

    name: str
    method: str
    path: str
    parameters: tuple[Parameter, ...] = ()
    bodies: tuple[Body, ...] = ()
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    security: tuple[tuple[str, ...], ...] = ()
    server: str = ""
    pages: Paging | None = None


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """Where a credential goes: after ``prefix`` in the header, query parameter or cookie called ``key``."""

    place: Place
    key: str
    prefix: str = ""
