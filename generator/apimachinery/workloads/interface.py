"""The contract between workload controllers and what runs them.

What ``get`` and ``objects`` give is shared and must not be changed. Writes answer once the next ``get`` shows them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from apimachinery.meta.json import Json

Change = Callable[[Json], Json | None]
"""Makes the new object of a copy of the present one; None where nothing is to be written. May be called again."""


class ClusterView(Protocol):
    """What a controller sees, and what it may do. Resources are named ``PLURAL`` or ``PLURAL.GROUP``.

    Writes raise ApiError as the API does; 404 and 409 of what somebody else did meanwhile mean that the controller is
    to look again.
    """

    def now(self) -> float:
        """Seconds since 1970."""

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        """An object, None where there is none."""

    def objects(self, resource: str, namespace: str = "") -> list[Json]:
        """The objects of a namespace, or all, by name."""

    def usage(self, pod: Json, metric: str) -> Mapping[str, Fraction]:
        """What each container of a pod uses of ``cpu`` (cores) or ``memory`` (bytes); empty where nobody measures."""

    async def create(self, resource: str, obj: Json) -> Json:
        """Creates an object; as it is stored."""

    async def update(self, resource: str, obj: Json, change: Change, subresource: str = "") -> Json:
        """Changes the object of that namespace, name and uid; as it is stored."""

    async def delete(
        self, resource: str, obj: Json, *, foreground: bool = False, at_once: bool = False
    ) -> None:
        """Deletes the object of that uid, ``at_once`` without grace; nothing where it is gone."""


@dataclass(frozen=True, slots=True)
class Follows:
    """A resource whose changes make objects due: ``keys`` gives their ``(namespace, name)``. It is called with each
    object as it was and as it is."""

    resource: str
    keys: Callable[[ClusterView, Json], Iterable[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A controller of a resource. ``reconcile`` makes of an object's surroundings what they should be, and says after
    how many seconds it wants to look again without an event. May raise ApiError, to be called again."""

    resource: str
    reconcile: Callable[[ClusterView, Json], Awaitable[float | None]]
    follows: tuple[Follows, ...] = ()


async def write_status(cluster: ClusterView, resource: str, obj: Json, status: Json) -> None:
    """Writes the status of an object, unless it is so."""
    if (obj.get("status") or {}) != status:
        await cluster.update(resource, obj, lambda new: {**new, "status": status}, "status")
