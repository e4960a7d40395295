"""Which objects a cache holds, and how much of each: the options of a kind, for those who watch or read it. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

from apimachinery.client.partial import PartialObjectMetadata
from apimachinery.typed.object import Object

O = TypeVar("O", bound=Object)  # noqa: E741 - an object
K = TypeVar("K", bound=Object)


@dataclass(frozen=True, slots=True)
class Cached(Generic[O]):
    """A kind with options of its cache, wherever a controller takes a kind (``for_``, ``owns``, ``Watch``, ``reads``).

    ``namespaces``: these alone; empty means the operator's. ``transform`` may change each object before it is kept, to
    hold less of it. ``indexes`` are functions by name: ``Lister.by_index`` gives the objects for which one of their
    values is asked. ``cluster`` names one of the operator's other clusters; without, it is that of the controller's
    main kind. For metadata alone see ``metadata_of``.
    """

    model: type[O]
    namespaces: Sequence[str] = ()
    label_selector: str = ""
    field_selector: str = ""
    transform: Callable[[O], O] | None = None
    indexes: Mapping[str, Callable[[O], Iterable[str]]] = field(default_factory=dict)
    cluster: str = ""
    metadata_only: bool = False

    @property
    def selective(self) -> bool:
        """Whether the cache lacks objects, or parts of objects, that the operator's namespaces have."""
        options = (self.namespaces, self.label_selector, self.field_selector, self.transform)
        return self.metadata_only or any(options)


def metadata_of(
    model: type[Object],
    *,
    namespaces: Sequence[str] = (),
    label_selector: str = "",
    field_selector: str = "",
    indexes: Mapping[str, Callable[[PartialObjectMetadata], Iterable[str]]] | None = None,
    cluster: str = "",
) -> Cached[PartialObjectMetadata]:
    """A kind of whose objects the server sends, and the cache holds, the metadata alone."""
    kind = cast("type[Any]", model)
    return Cached(
        kind, namespaces, label_selector, field_selector, None, indexes or {}, cluster, metadata_only=True
    )


def cached(kind: type[O] | Cached[O]) -> Cached[O]:
    """The options of a kind that may have been given without any."""
    return kind if isinstance(kind, Cached) else Cached(kind)


def choose(kind: type[K] | Cached[K], declared: Iterable[Cached[Any]], home: str = "") -> Cached[K]:
    """Which of the ``declared`` caches of the cluster ``home`` is meant: the only one of a class, or the one that has
    all of it.

    Raises ``ValueError`` where several have a part of it.
    """
    if isinstance(kind, Cached):
        return kind
    of_kind = [
        one for one in declared if one.model is kind and not one.metadata_only and one.cluster in ("", home)
    ]
    whole = [one for one in of_kind if not one.selective]
    if whole or not of_kind:
        return whole[0] if whole else Cached(kind)
    if any(replace(one, cluster="") != replace(of_kind[0], cluster="") for one in of_kind):
        text = f"{kind.KIND} is cached in several selections: name one by its Cached(…)"
        raise ValueError(text)
    return of_kind[0]


def known(cluster: str, clusters: Iterable[str]) -> str:
    """The name of a cluster. Raises ``ValueError`` for one that nobody named."""
    names = sorted(name for name in clusters if name)
    if cluster and cluster not in names:
        raise ValueError(f'there is no cluster "{cluster}"; known: {", ".join(names) or "none"}')
    return cluster
