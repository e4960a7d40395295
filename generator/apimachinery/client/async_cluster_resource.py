# Made from async_resource.py by build/plain.py: edit that one.
"""The verbs of cluster-scoped resources, awaited: mixed into classes by generated code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from apimachinery.client import calls
from apimachinery.client.access import name_of
from apimachinery.client.async_reading import AsyncLogLines, AsyncPages, AsyncWatch
from apimachinery.client.async_resource import AsyncResourceApi
from apimachinery.client.calls import (
    PAGE_SIZE,
    DeleteOptions,
    FieldValidation,
    ListOptions,
    LogOptions,
    PatchType,
    PropagationPolicy,
    ResourceVersionMatch,
    WatchOptions,
)
from apimachinery.client.scale import Scale

if TYPE_CHECKING:
    from apimachinery.client.async_informer import AsyncInformer
    from apimachinery.client.reflector import ReflectorOptions

T = TypeVar("T")
A = TypeVar("A")


class AsyncClusterReadable(AsyncResourceApi[T]):
    """get and list, of a cluster-scoped resource."""

    async def get(self, name: str, *, resource_version: str = "") -> T:
        """Reads one object, as new as ``resource_version`` at least where that is given."""
        return await self._client.run(
            calls.get(self._target(), self._codec, name, resource_version=resource_version)
        )

    def list(
        self,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE_SIZE,
        resource_version: str = "",
        resource_version_match: ResourceVersionMatch | Literal[""] = "",
    ) -> AsyncPages[T]:
        """The objects of a selection. ``limit`` is the size of a page."""
        options = ListOptions(
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
        )
        return self._list(self._target(), options)


class AsyncClusterWatchable(AsyncResourceApi[T]):
    """watch, of a cluster-scoped resource."""

    async def watch(
        self,
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        bookmarks: bool = True,
        initial_events: bool = False,
        timeout_seconds: int | None = None,
        silence: float | None = None,
    ) -> AsyncWatch[T]:
        """Events from ``resource_version`` on (empty: from the current state, as ADDED events first).

        ``initial_events`` asks for a streaming list: the state, a bookmark that ends it, then changes.
        ``timeout_seconds`` is when the server ends it; ``silence`` bounds, in seconds, how long nothing may come.
        """
        selection = ListOptions(
            label_selector=label_selector, field_selector=field_selector, resource_version=resource_version
        )
        options = WatchOptions(
            bookmarks=bookmarks,
            initial_events=initial_events,
            timeout_seconds=timeout_seconds,
            silence=silence,
        )
        return await self._watch(self._target(), selection, options)

    def informer(
        self,
        *,
        label_selector: str = "",
        field_selector: str = "",
        indexers: Mapping[str, Callable[[T], Iterable[str]]] | None = None,
        options: ReflectorOptions | None = None,
    ) -> AsyncInformer[T]:
        """A local copy of a selection, kept current, with handlers: see apimachinery.client.informer."""
        from apimachinery.client.async_informer import AsyncInformer
        from apimachinery.client.async_reflector import AsyncReflector

        target = self._target()
        selection = ListOptions(label_selector=label_selector, field_selector=field_selector)
        reflector = AsyncReflector(self._client, target, self._codec, selection, options)
        return AsyncInformer(reflector, indexers=indexers)


class AsyncClusterCreatable(AsyncResourceApi[T]):
    """create, of a cluster-scoped resource."""

    async def create(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: FieldValidation | Literal[""] = "",
    ) -> T:
        """Creates an object and gives it as the server keeps it. Raises ``AlreadyExists``, ``Invalid``."""
        options = self._write(dry_run, field_manager, field_validation)
        target = self._target()
        created: T = await self._client.run(calls.create(target, self._codec, obj, options))
        return created


class AsyncClusterEditable(AsyncResourceApi[T], Generic[T, A]):
    """replace, patch, apply and delete, of a cluster-scoped resource."""

    async def replace(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: FieldValidation | Literal[""] = "",
    ) -> T:
        """Writes an object back whole: also what its class does not know (apimachinery.typed.lossless).

        Raises ``Conflict`` where it changed since it was read.
        """
        options = self._write(dry_run, field_manager, field_validation)
        target = self._target()
        return await self._client.run(calls.update(target, self._codec, name_of(obj), obj, options))

    async def patch(
        self,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes,
        kind: PatchType = PatchType.MERGE,
        *,
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: FieldValidation | Literal[""] = "",
    ) -> T:
        """Sends a JSON patch (a list), a merge patch or a strategic merge patch (a mapping)."""
        options = self._write(dry_run, field_manager, field_validation)
        return await self._client.run(calls.patch(self._target(), self._codec, name, patch, kind, options))

    async def apply(
        self,
        configuration: A | T | Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
        field_validation: FieldValidation | Literal[""] = "",
    ) -> T:
        """Server-side apply: makes the fields of ``configuration`` so, as ``field_manager``, and takes away those
        it had applied before and left out now.

        ``configuration`` is an apply configuration (module ``apply``), an object, or JSON; it names itself.
        Raises ``ApplyConflict`` (see its ``conflicts``) unless ``force``.
        """
        options = self._write(dry_run, field_manager, field_validation)
        target = self._target()
        return await self._client.run(
            calls.patch(
                target,
                self._codec,
                name_of(configuration),
                configuration,
                PatchType.APPLY,
                options,
                force=force,
            )
        )

    async def delete(
        self,
        name: str,
        *,
        propagation_policy: PropagationPolicy | None = None,
        grace_period_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> T | None:
        """Deletes an object. Gives it where it stays for now (finalizers, grace), None where it is gone.

        ``uid`` and ``resource_version`` are preconditions: ``Conflict`` where they differ.
        """
        options = DeleteOptions(
            propagation_policy=propagation_policy,
            grace_period_seconds=grace_period_seconds,
            uid=uid,
            resource_version=resource_version,
            dry_run=dry_run,
        )
        return await self._client.run(calls.delete(self._target(), self._codec, name, options))


class AsyncClusterPurgeable(AsyncResourceApi[T]):
    """delete_collection, of a cluster-scoped resource."""

    async def delete_collection(
        self,
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation_policy: PropagationPolicy | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Deletes all objects of a selection."""
        selection = ListOptions(label_selector=label_selector, field_selector=field_selector)
        options = DeleteOptions(
            propagation_policy=propagation_policy, grace_period_seconds=grace_period_seconds, dry_run=dry_run
        )
        await self._client.run(calls.delete_collection(self._target(), selection, options))


class AsyncClusterStatusWritable(AsyncResourceApi[T], Generic[T, A]):
    """The status subresource, of a cluster-scoped resource."""

    async def get_status(self, name: str) -> T:
        """Reads the object through its status subresource."""
        return await self._client.run(calls.get(self._target(), self._codec, name, subresource="status"))

    async def replace_status(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> T:
        """Writes the status of an object; the rest of it is ignored by the server."""
        target = self._target()
        options = self._write(dry_run, field_manager)
        return await self._client.run(
            calls.update(target, self._codec, name_of(obj), obj, options, subresource="status")
        )

    async def patch_status(
        self,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes,
        kind: PatchType = PatchType.MERGE,
        *,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> T:
        """Patches the status of an object."""
        options = self._write(dry_run, field_manager)
        return await self._client.run(
            calls.patch(self._target(), self._codec, name, patch, kind, options, subresource="status")
        )

    async def apply_status(
        self,
        configuration: A | T | Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Server-side apply of the status. Raises ``ApplyConflict`` unless ``force``."""
        target = self._target()
        options = self._write(dry_run, field_manager)
        return await self._client.run(
            calls.patch(
                target,
                self._codec,
                name_of(configuration),
                configuration,
                PatchType.APPLY,
                options,
                force=force,
                subresource="status",
            )
        )


class AsyncClusterLoggable(AsyncResourceApi[T]):
    """The log subresource, of a cluster-scoped resource."""

    async def read_log(
        self,
        name: str,
        *,
        container: str = "",
        previous: bool = False,
        since_seconds: int | None = None,
        tail_lines: int | None = None,
        timestamps: bool = False,
    ) -> str:
        """The log of one container as text, undecodable bytes replaced."""
        options = LogOptions(
            container=container,
            previous=previous,
            since_seconds=since_seconds,
            tail_lines=tail_lines,
            timestamps=timestamps,
        )
        return await self._client.run(calls.read_log(self._target(), name, options))

    async def follow_log(
        self,
        name: str,
        *,
        container: str = "",
        since_seconds: int | None = None,
        tail_lines: int | None = None,
        timestamps: bool = False,
        silence: float | None = None,
    ) -> AsyncLogLines:
        """The log as it is written, a line at a time, until closed; ``silence`` as in ``watch``."""
        options = LogOptions(
            container=container, since_seconds=since_seconds, tail_lines=tail_lines, timestamps=timestamps
        )
        request = calls.follow_log(self._target(), name, options, silence)
        return AsyncLogLines(await self._client._stream(request))


class AsyncClusterScalable(AsyncResourceApi[T]):
    """The scale subresource, of a cluster-scoped resource."""

    async def get_scale(self, name: str) -> Scale:
        """Reads the replica counts."""
        return await self._client.run(
            calls.get(self._target(), calls.typed_codec(Scale), name, subresource="scale")
        )

    async def replace_scale(
        self,
        name: str,
        scale: Scale,
        *,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Scale:
        """Writes the wanted count."""
        codec = calls.typed_codec(Scale)
        options = self._write(dry_run, field_manager)
        return await self._client.run(
            calls.update(self._target(), codec, name, scale, options, subresource="scale")
        )

    async def scale(
        self,
        name: str,
        replicas: int,
        *,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Scale:
        """Sets the wanted count to ``replicas``, whatever it is now."""
        body = {"spec": {"replicas": replicas}}
        options = self._write(dry_run, field_manager)
        return await self._client.run(
            calls.patch(
                self._target(),
                calls.typed_codec(Scale),
                name,
                body,
                PatchType.MERGE,
                options,
                subresource="scale",
            )
        )
