"""Admission: who may still refuse or change an object after the request is understood and before it is stored.

Every plugin, built in or configured, is a ``Plugin``. One that knows its answer at once returns None; one that must ask
somebody else (a webhook) returns steps: a generator that yields what it waits for and is resumed with the answer. So a
plugin is plain code that never names the event loop or a thread; ``write.driver`` runs its steps as it runs those of
the write they belong to, and other requests go on meanwhile. An update that waited may find that somebody was faster;
it then starts again with the newest object, plugins included.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from apimachinery.http.messages import User
from apimachinery.http.steps import Asking, Waiting
from apimachinery.server.request.options import DeletionOptions
from apimachinery.server.request.target import WriteTarget


class Operation(msgspec.Struct):
    """``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``; ``obj`` is None in a deletion, ``old`` in a creation.

    Plugins change ``obj`` in place. ``name`` is empty where a request names no object. ``target`` has the resource as
    requested (``served``; its ``prefix`` and ``storage_version`` say how it is stored), the subresource, the user and
    the options; ``deletion`` those of a deletion. Plugins that may change an object go two rounds where one of them
    ``wants_second_round``; ``memory`` is theirs, by name.
    """

    verb: str
    target: WriteTarget
    obj: dict[str, Any] | None
    old: dict[str, Any] | None
    name: str
    deletion: DeletionOptions | None = None
    wants_second_round: bool = False
    second_round: bool = False
    memory: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def user(self) -> User | None:
        """Who asks; None for the server's own writes."""
        return self.target.user

    @property
    def said_name(self) -> str:
        """The name for messages: a deletion of a collection and a name that is yet to be generated have one too."""
        metadata = (self.obj or {}).get("metadata") or {}
        return self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return self.target.options.dry_run

    def warn(self, text: str) -> None:
        """Adds a Warning header to the answer."""
        self.target.warnings.append(text)

    def annotate(self, key: str, value: str) -> None:
        """Adds an annotation to the request's audit event; the first value of a key stays."""
        self.target.annotations.setdefault(key, value)


class Admission(Protocol):
    """``admit`` may change the object, then ``validate`` may refuse it. Both are steps of the write: they answer
    whether anything had to be waited for, and raise ApiError."""

    def admit(self, operation: Operation) -> Asking[bool]:
        """Runs before defaulted fields are checked."""

    def validate(self, operation: Operation) -> Asking[bool]:
        """Runs after validation."""


class Plugin:
    """A plugin: it defines the steps that it has, and is not asked for the other.

    ``resources``, (group, plural) pairs, are those it is asked about; None means all.
    """

    resources: frozenset[tuple[str, str]] | None = None

    def admit(self, operation: Operation) -> Waiting:
        """See Admission; nothing is changed."""

    def validate(self, operation: Operation) -> Waiting:
        """See Admission; nothing is refused."""
