"""Reads of a cache by name, namespace and labels. Objects are shared with everybody: copy before changing one."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from apimachinery.client.informer import Store
from apimachinery.meta.resources import Resource
from apimachinery.meta.selectors import LabelSelector, parse_label_selector

T = TypeVar("T")


class CacheNotSynced(Exception):
    """A cache that has no first state yet was read: what it does not have may well be there."""


class Lister(Generic[T]):
    """A store as a reconcile function reads it; ``namespace`` empty means all of them.

    Reads raise ``CacheNotSynced`` while ``synced`` says that the store has no first state. ``resource`` is what the
    store holds, where that is known.
    """

    def __init__(
        self,
        store: Store[T],
        namespace: str = "",
        *,
        resource: Resource | None = None,
        synced: Callable[[], bool] = lambda: True,
    ) -> None:
        self._whole = store
        self._namespace = namespace
        self._resource = resource
        self._synced = synced

    def namespaced(self, namespace: str) -> Lister[T]:
        """The same for one namespace."""
        return Lister(self._whole, namespace, resource=self._resource, synced=self._synced)

    @property
    def _store(self) -> Store[T]:
        if not self._synced():
            what = self._resource.plural if self._resource is not None else "objects"
            raise CacheNotSynced(f"the cache of {what} has no first state yet")
        return self._whole

    def get(self, name: str, *, namespace: str | None = None) -> T | None:
        """One object, or None where the cache has none. Raises ``ValueError`` for a namespaced kind without a
        namespace: nothing can be called so."""
        wanted = self._namespace if namespace is None else namespace
        if not wanted and self._resource is not None and self._resource.namespaced:
            raise ValueError(
                f'{self._resource.plural} are namespaced: say which one, get("{name}", namespace=…) '
                f'or namespaced(…).get("{name}")'
            )
        return self._store.get(name, namespace=wanted)

    def list(self, selector: str | Mapping[str, str] | None = None) -> list[T]:
        """The objects whose labels a selector selects: a text (``app=web,!legacy``), or labels that must be there.

        Raises ``SelectorError`` for a text that is none.
        """
        found = self._store.by_index("namespace", self._namespace) if self._namespace else self._store.list()
        if not selector:
            return list(found)
        if isinstance(selector, Mapping):
            wanted = selector.items()
            return [obj for obj in found if wanted <= labels_of(obj).items()]
        parsed: LabelSelector = parse_label_selector(selector)
        return [obj for obj in found if parsed.matches(labels_of(obj))]

    def by_index(self, index: str, value: str) -> builtins.list[T]:
        """The objects for which an index function gave ``value``. Raises ``KeyError`` for an unknown index."""
        return list(self._store.by_index(index, value))

    def __len__(self) -> int:
        return len(self.list())


def labels_of(obj: Any) -> Mapping[str, str]:
    """The labels of a model or JSON object."""
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else getattr(obj, "metadata", None)
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else getattr(metadata, "labels", None)
    return labels or {}
