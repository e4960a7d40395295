# Made from async_cluster_resource.py by build/plain.py: edit that one.
"""The verbs of cluster-scoped resources, for threads: mixed into classes by generated code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from apimachinery.client import calls
from apimachinery.client.access import name_of
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
from apimachinery.client.reading import LogLines, Pages, Watch
from apimachinery.client.resource import ResourceApi
from apimachinery.client.scale import Scale

if TYPE_CHECKING:
    from apimachinery.client.informer import Informer
    from apimachinery.client.reflector import ReflectorOptions

T = TypeVar("T")
A = TypeVar("A")


class ClusterReadable(ResourceApi[T]):
    """get and list, of a cluster-scoped resource."""

    def get(self, name: str, *, resource_version: str = "") -> T:
        """Reads one object, as new as ``resource_version`` at least where that is given."""
        return self._client.run(
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
    ) -> Pages[T]:
        """The objects of a selection. ``limit`` is the size of a page."""
        options = ListOptions(
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
        )
        return self._list(self._target(), options)


class ClusterWatchable(ResourceApi[T]):
    """watch, of a cluster-scoped resource."""

    def watch(
        self,
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        bookmarks: bool = True,
        initial_events: bool = False,
        timeout_seconds: int | None = None,
        silence: float | None = None,
    ) -> Watch[T]:
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
        return self._watch(self._target(), selection, options)

    def informer(
        self,
        *,
        label_selector: str = "",
        field_selector: str = "",
        indexers: Mapping[str, Callable[[T], Iterable[str]]] | None = None,
        options: ReflectorOptions | None = None,
    ) -> Informer[T]:
        """A local copy of a selection, kept current, with handlers: see apimachinery.client.informer."""
        from apimachinery.client.informer import Informer
        from apimachinery.client.reflector import Reflector

        target = self._target()
        selection = ListOptions(label_selector=label_selector, field_selector=field_selector)
        reflector = Reflector(self._client, target, self._codec, selection, options)
        return Informer(reflector, indexers=indexers)


class ClusterCreatable(ResourceApi[T]):
    """create, of a cluster-scoped resource."""

    def create(
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
        created: T = self._client.run(calls.create(target, self._codec, obj, options))
        return created


class ClusterEditable(ResourceApi[T], Generic[T, A]):
    """replace, patch, apply and delete, of a cluster-scoped resource."""

    def replace(
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
        return self._client.run(calls.update(target, self._codec, name_of(obj), obj, options))

    def patch(
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
        return self._client.run(calls.patch(self._target(), self._codec, name, patch, kind, options))

    def apply(
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
        return self._client.run(
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

    def delete(
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
        return self._client.run(calls.delete(self._target(), self._codec, name, options))


class ClusterPurgeable(ResourceApi[T]):
    """delete_collection, of a cluster-scoped resource."""

    def delete_collection(
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
        self._client.run(calls.delete_collection(self._target(), selection, options))


class ClusterStatusWritable(ResourceApi[T], Generic[T, A]):
    """The status subresource, of a cluster-scoped resource."""

    def get_status(self, name: str) -> T:
        """Reads the object through its status subresource."""
        return self._client.run(calls.get(self._target(), self._codec, name, subresource="status"))

    def replace_status(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> T:
        """Writes the status of an object; the rest of it is ignored by the server."""
        target = self._target()
        options = self._write(dry_run, field_manager)
        return self._client.run(
            calls.update(target, self._codec, name_of(obj), obj, options, subresource="status")
        )

    def patch_status(
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
        return self._client.run(
            calls.patch(self._target(), self._codec, name, patch, kind, options, subresource="status")
        )

    def apply_status(
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
        return self._client.run(
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


class ClusterLoggable(ResourceApi[T]):
    """The log subresource, of a cluster-scoped resource."""

    def read_log(
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
        return self._client.run(calls.read_log(self._target(), name, options))

    def follow_log(
        self,
        name: str,
        *,
        container: str = "",
        since_seconds: int | None = None,
        tail_lines: int | None = None,
        timestamps: bool = False,
        silence: float | None = None,
    ) -> LogLines:
        """The log as it is written, a line at a time, until closed; ``silence`` as in ``watch``."""
        options = LogOptions(
            container=container, since_seconds=since_seconds, tail_lines=tail_lines, timestamps=timestamps
        )
        request = calls.follow_log(self._target(), name, options, silence)
        return LogLines(self._client._stream(request))


class ClusterScalable(ResourceApi[T]):
    """The scale subresource, of a cluster-scoped resource."""

    def get_scale(self, name: str) -> Scale:
        """Reads the replica counts."""
        return self._client.run(
            calls.get(self._target(), calls.typed_codec(Scale), name, subresource="scale")
        )

    def replace_scale(
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
        return self._client.run(
            calls.update(self._target(), codec, name, scale, options, subresource="scale")
        )

    def scale(
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
        return self._client.run(
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
