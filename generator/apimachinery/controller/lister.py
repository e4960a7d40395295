"""Reads of a cache by name, namespace and labels. Objects are shared with everybody: copy before changing one."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from apimachinery.client.informer import Store
from apimachinery.meta.selectors import LabelSelector, parse_label_selector

T = TypeVar("T")


class Lister(Generic[T]):
    """A store as a reconcile function reads it; ``namespace`` empty means all of them."""

    def __init__(self, store: Store[T], namespace: str = "") -> None:
        self._store = store
        self._namespace = namespace

    def namespaced(self, namespace: str) -> Lister[T]:
        """The same for one namespace."""
        return Lister(self._store, namespace)

    def get(self, name: str, *, namespace: str | None = None) -> T | None:
        """One object, or None where the cache has none."""
        return self._store.get(name, namespace=self._namespace if namespace is None else namespace)

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
