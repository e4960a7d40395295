"""Reads of a cache by name, namespace and labels. Objects are shared with everybody: copy before changing one."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from apimachinery.client.access import key_of, namespace_of, resource_version_of, uid_of
from apimachinery.client.informer import Store
from apimachinery.controller.cached import Cached
from apimachinery.controller.kinds import as_json
from apimachinery.controller.written import Entry, Key, WrittenObjects, newer
from apimachinery.meta.resources import Resource
from apimachinery.meta.selectors import LabelSelector, parse_label_selector
from apimachinery.typed.decoders import prepare

T = TypeVar("T")


class CacheNotSynced(Exception):
    """A cache that has no first state yet was read: what it does not have may well be there."""


class OwnWrites(Generic[T]):
    """What was written of the objects that a cache selects, as the cache will have it."""

    def __init__(
        self, written: WrittenObjects, resource: Resource, options: Cached[Any], model: type[Any]
    ) -> None:
        self._written = written
        self._resource = resource
        self._options = options
        self._model = model
        self._labels = parse_label_selector(options.label_selector) if options.label_selector else None

    def over(self, stores: Sequence[Store[T]], namespace: str) -> dict[Key, T | None]:
        """The objects to read in place of those of the stores, by key; None for one that is not there any more."""
        made: dict[Key, T | None] = {}
        outdated = []
        for key, entry in self._written.of(self._resource).items():
            store = _store_of(stores, key[0])
            if store is None or (namespace and key[0] != namespace):
                continue
            held = store.get(key[1], namespace=key[0])
            if entry.object is None:
                if held is None or uid_of(held) != entry.uid:
                    outdated.append(key)
                else:
                    made[key] = None
            elif not newer(entry.version, store.version) or (
                held is not None and not newer(entry.version, resource_version_of(held))
            ):
                outdated.append(key)
            elif self._selects(entry, held):
                made[key] = self._as_cached(entry.object)
            else:
                made[key] = None
        self._written.drop(self._resource, outdated)
        return made

    def _selects(self, entry: Entry, held: T | None) -> bool:
        if held is None and self._options.field_selector:
            return False  # only the server knows
        return self._labels is None or self._labels.matches(labels_of(entry.object))

    def _as_cached(self, obj: Any) -> T:
        made = obj
        if not isinstance(made, self._model) or self._options.transform is not None:
            prepare(self._model)
            made = msgspec.convert(as_json(obj), self._model)
        return self._options.transform(made) if self._options.transform is not None else made  # type: ignore[no-any-return]


class Lister(Generic[T]):
    """Stores as a reconcile function reads them; ``namespace`` empty means all of them.

    Reads raise ``CacheNotSynced`` while ``synced`` says that a store has no first state. ``resource`` is what the
    stores hold, where that is known. With ``own_writes`` reads see what the operator's client wrote, also where the
    cache does not have it yet (objects that ``delete_collection`` takes are seen until the cache hears of it).
    """

    def __init__(
        self,
        stores: Store[T] | Sequence[Store[T]],
        namespace: str = "",
        *,
        resource: Resource | None = None,
        synced: Callable[[], bool] = lambda: True,
        own_writes: OwnWrites[T] | None = None,
    ) -> None:
        self._all = [stores] if isinstance(stores, Store) else [*stores]
        self._namespace = namespace
        self._resource = resource
        self._synced = synced
        self._own = own_writes

    def namespaced(self, namespace: str) -> Lister[T]:
        """The same for one namespace."""
        return Lister(
            self._all, namespace, resource=self._resource, synced=self._synced, own_writes=self._own
        )

    @property
    def _stores(self) -> Sequence[Store[T]]:
        if not self._synced():
            what = self._resource.plural if self._resource is not None else "objects"
            raise CacheNotSynced(f"the cache of {what} has no first state yet")
        return self._all

    def get(self, name: str, *, namespace: str | None = None) -> T | None:
        """One object, or None where the cache has none. Raises ``ValueError`` for a namespaced kind without a
        namespace: nothing can be called so."""
        wanted = self._namespace if namespace is None else namespace
        namespaced = self._resource is None or self._resource.namespaced
        if not wanted and self._resource is not None and namespaced:
            raise ValueError(
                f'{self._resource.plural} are namespaced: say which one, get("{name}", namespace=…) '
                f'or namespaced(…).get("{name}")'
            )
        key = (wanted if namespaced else "", name)
        if self._own is not None and key in (over := self._own.over(self._stores, key[0])):
            return over[key]
        for store in self._stores:
            if (found := store.get(name, namespace=key[0])) is not None:
                return found
        return None

    def list(self, selector: str | Mapping[str, str] | None = None) -> builtins.list[T]:
        """The objects whose labels a selector selects: a text (``app=web,!legacy``), or labels that must be there.

        Raises ``SelectorError`` for a text that is none.
        """
        found = self._merged(
            [
                obj
                for store in self._stores
                for obj in (store.by_index("namespace", self._namespace) if self._namespace else store.list())
            ]
        )
        if not selector:
            return found
        if isinstance(selector, Mapping):
            wanted = selector.items()
            return [obj for obj in found if wanted <= labels_of(obj).items()]
        parsed: LabelSelector = parse_label_selector(selector)
        return [obj for obj in found if parsed.matches(labels_of(obj))]

    def by_index(self, index: str, value: str) -> builtins.list[T]:
        """The objects for which an index function gave ``value``. Raises ``KeyError`` for an unknown index."""
        found = [obj for store in self._stores for obj in store.by_index(index, value)]
        if self._namespace:
            found = [obj for obj in found if namespace_of(obj) == self._namespace]
        if self._own is None:
            return found
        function = self._all[0].index_function(index)
        return [obj for obj in self._merged(found) if value in function(obj)]

    def __len__(self) -> int:
        return len(self.list())

    def _merged(self, found: builtins.list[T]) -> builtins.list[T]:
        if self._own is None or not (over := self._own.over(self._stores, self._namespace)):
            return found
        kept = [obj for obj in found if key_of(obj) not in over]
        return kept + [obj for obj in over.values() if obj is not None]


def _store_of(stores: Sequence[Store[T]], namespace: str) -> Store[T] | None:
    for store in stores:
        if store.namespace in ("", namespace):
            return store
    return None


def labels_of(obj: Any) -> Mapping[str, str]:
    """The labels of a model or JSON object."""
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else getattr(obj, "metadata", None)
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else getattr(metadata, "labels", None)
    return labels or {}
