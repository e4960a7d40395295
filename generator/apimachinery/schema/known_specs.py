"""Specs that were read before: pods of one template come with equal ones, and an update sends most of what is there.

To read an object of a built-in kind is to look for values of wrong types, to drop what is unknown and to bring what is
left into typed form. Each looks at a value alone, so a spec that all three left as it was is in form wherever it comes.
It is set aside while they look at the rest of its object.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from apimachinery.meta.digests import digest_of

Json: TypeAlias = dict[str, Any]
MOST = 4096
"""Specs of one resource; with one more, all are forgotten."""
_INNER = frozenset({dict, list})


class KnownSpecs:
    """The specs of one resource that are in form."""

    def __init__(self) -> None:
        self._in_form: set[bytes] = set()

    def set_aside(self, obj: Json) -> Aside | None:
        """Takes the spec out of an object, where it is known, and leaves an empty one; None where there is nothing to
        be gained."""
        spec = obj.get("spec")
        # A spec that has nothing within, as those of Leases, is read as fast as it is recognized.
        if type(spec) is not dict or _INNER.isdisjoint(map(type, spec.values())):
            return None
        if (digest := digest_of(spec)) is None:
            return None
        known = digest in self._in_form
        if known:
            obj["spec"] = {}
        return Aside(self, digest, spec if known else None)

    def add(self, digest: bytes) -> None:
        """Notes that a spec is in form."""
        if len(self._in_form) >= MOST:
            self._in_form.clear()
        self._in_form.add(digest)


class Aside:
    """What was set aside of an object: its spec where that is known, else None."""

    __slots__ = ("_digest", "_known", "_spec")

    def __init__(self, known: KnownSpecs, digest: bytes, spec: Json | None) -> None:
        self._known = known
        self._digest = digest
        self._spec = spec

    def put_back(self, obj: Json) -> None:
        """Gives the object its spec again."""
        if self._spec is not None:
            obj["spec"] = self._spec

    def learn(self, obj: Json) -> None:
        """Notes a spec that was not known, and is as it was: the object is in form, and nothing in it was empty."""
        if self._spec is None and digest_of(obj.get("spec")) == self._digest:
            self._known.add(self._digest)
