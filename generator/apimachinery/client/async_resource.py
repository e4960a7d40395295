"""The verbs of a resource, awaited: mixed into one class a resource by generated code, or used as they are for
kinds known only at run time (AsyncDynamicResource).

A resource has only the methods of the verbs and the scope it serves, so a call that cannot work is a type error.
Common parameters: ``namespace`` None means the client's default one; ``dry_run`` changes nothing on the server;
``field_manager`` empty means the client's. All methods raise ``ApiError`` subclasses (apimachinery.client.errors)
and ``TransportError``. ``resource``, its plain twin, is made of this file by ``build/plain.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar, cast

from apimachinery.client import calls
from apimachinery.client.access import name_of, namespace_of
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_reading import AsyncLogLines as AsyncLogLines
from apimachinery.client.async_reading import AsyncPages as AsyncPages
from apimachinery.client.async_reading import AsyncWatch as AsyncWatch
from apimachinery.client.calls import (
    PAGE_SIZE,
    Codec,
    DeleteOptions,
    FieldValidation,
    ListOptions,
    LogOptions,
    PatchType,
    PropagationPolicy,
    ResourceVersionMatch,
    Target,
    WatchOptions,
    WriteOptions,
)
from apimachinery.client.discovery import find_kind, served
from apimachinery.client.scale import Scale
from apimachinery.meta.resources import Resource

if TYPE_CHECKING:
    from pathlib import Path

    from apimachinery.client.async_cluster_resource import AsyncClusterCreatable as AsyncClusterCreatable
    from apimachinery.client.async_cluster_resource import AsyncClusterEditable as AsyncClusterEditable
    from apimachinery.client.async_cluster_resource import AsyncClusterLoggable as AsyncClusterLoggable
    from apimachinery.client.async_cluster_resource import AsyncClusterPurgeable as AsyncClusterPurgeable
    from apimachinery.client.async_cluster_resource import AsyncClusterReadable as AsyncClusterReadable
    from apimachinery.client.async_cluster_resource import AsyncClusterScalable as AsyncClusterScalable
    from apimachinery.client.async_cluster_resource import (
        AsyncClusterStatusWritable as AsyncClusterStatusWritable,
    )
    from apimachinery.client.async_cluster_resource import AsyncClusterWatchable as AsyncClusterWatchable
    from apimachinery.client.async_forwarding import AsyncForwarder
    from apimachinery.client.async_informer import AsyncInformer
    from apimachinery.client.async_processes import AsyncForwarded, AsyncProcess
    from apimachinery.client.channels import ExecResult
    from apimachinery.client.reflector import ReflectorOptions

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


class AsyncResourceApi(Generic[T]):
    """What every resource class has. Generated subclasses set both class variables."""

    RESOURCE: ClassVar[Resource]
    MODEL: ClassVar[type[Any]]

    def __init__(
        self, client: AsyncClient, *, resource: Resource | None = None, codec: Codec[T] | None = None
    ) -> None:
        self._client = client
        self._resource = resource if resource is not None else self.RESOURCE
        self._codec: Codec[T] = codec if codec is not None else calls.typed_codec(cast("type[T]", self.MODEL))

    def within(self, seconds: float) -> Self:
        """These verbs with a time limit for each call as a whole. Raises ValueError for one that is not positive."""
        made = copy(self)
        made._client = self._client.within(seconds)
        return made

    def _target(self, namespace: str | None = None) -> Target:
        if not self._resource.namespaced:
            return Target(self._resource)
        return Target(self._resource, self._client.config.namespace if namespace is None else namespace)

    def _write(
        self, dry_run: bool, field_manager: str, field_validation: FieldValidation | Literal[""] = ""
    ) -> WriteOptions:
        return WriteOptions(
            dry_run=dry_run,
            field_manager=field_manager or self._client.field_manager,
            field_validation=field_validation,
        )

    def _list(self, target: Target, options: ListOptions) -> AsyncPages[T]:
        return AsyncPages(self._client, target, self._codec, options)

    async def _watch(self, target: Target, selection: ListOptions, options: WatchOptions) -> AsyncWatch[T]:
        stream = await self._client._stream(calls.watch(target, selection, options))
        return AsyncWatch(self._client, stream, self._codec)

    async def _get_subresource(self, name: str, subresource: str, target: Target) -> T:
        return await self._client.run(calls.get(target, self._codec, name, subresource=subresource))

    async def _replace_subresource(
        self, subresource: str, obj: T, target: Target, dry_run: bool, field_manager: str
    ) -> T:
        options = self._write(dry_run, field_manager)
        call = calls.update(target, self._codec, name_of(obj), obj, options, subresource=subresource)
        return await self._client.run(call)

    async def _patch_subresource(
        self,
        name: str,
        subresource: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes,
        kind: PatchType,
        target: Target,
        dry_run: bool,
        field_manager: str,
    ) -> T:
        options = self._write(dry_run, field_manager)
        call = calls.patch(target, self._codec, name, patch, kind, options, subresource=subresource)
        return await self._client.run(call)

    async def _create_subresource(
        self,
        name: str,
        subresource: str,
        body: B,
        target: Target,
        dry_run: bool,
        field_manager: str,
    ) -> B | None:
        """The answer as the body's class; None where the server answers a Status (an eviction, a binding)."""
        options = self._write(dry_run, field_manager)
        call = calls.create_subresource(target, name, subresource, body, options)
        return await self._client.run(call)


class AsyncNamespacedReadable(AsyncResourceApi[T]):
    """get and list, of a namespaced resource."""

    async def get(self, name: str, *, namespace: str | None = None, resource_version: str = "") -> T:
        """Reads one object, as new as ``resource_version`` at least where that is given."""
        return await self._client.run(
            calls.get(self._target(namespace), self._codec, name, resource_version=resource_version)
        )

    def list(
        self,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE_SIZE,
        resource_version: str = "",
        resource_version_match: ResourceVersionMatch | Literal[""] = "",
    ) -> AsyncPages[T]:
        """The objects of a selection, of one namespace or of all. ``limit`` is the size of a page."""
        options = ListOptions(
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
        )
        return self._list(self._target("" if all_namespaces else namespace), options)


class AsyncNamespacedWatchable(AsyncResourceApi[T]):
    """watch, of a namespaced resource."""

    async def watch(
        self,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
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
        return await self._watch(self._target("" if all_namespaces else namespace), selection, options)

    def informer(
        self,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        indexers: Mapping[str, Callable[[T], Iterable[str]]] | None = None,
        options: ReflectorOptions | None = None,
    ) -> AsyncInformer[T]:
        """A local copy of a selection, kept current, with handlers: see apimachinery.client.informer."""
        from apimachinery.client.async_informer import AsyncInformer
        from apimachinery.client.async_reflector import AsyncReflector

        target = self._target("" if all_namespaces else namespace)
        selection = ListOptions(label_selector=label_selector, field_selector=field_selector)
        reflector = AsyncReflector(self._client, target, self._codec, selection, options)
        return AsyncInformer(reflector, indexers=indexers)


class AsyncNamespacedCreatable(AsyncResourceApi[T]):
    """create, of a namespaced resource."""

    async def create(
        self,
        obj: T,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: FieldValidation | Literal[""] = "",
    ) -> T:
        """Creates an object and gives it as the server keeps it. Raises ``AlreadyExists``, ``Invalid``.

        Without ``namespace`` the object's own is used, then the client's default.
        """
        options = self._write(dry_run, field_manager, field_validation)
        target = self._target(namespace or namespace_of(obj))
        created: T = await self._client.run(calls.create(target, self._codec, obj, options))
        return created


class AsyncNamespacedEditable(AsyncResourceApi[T], Generic[T, A]):
    """replace, patch, apply and delete, of a namespaced resource."""

    async def replace(
        self,
        obj: T,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: FieldValidation | Literal[""] = "",
    ) -> T:
        """Writes an object back whole: also what its class does not know (apimachinery.typed.lossless).

        Raises ``Conflict`` where it changed since it was read.
        """
        options = self._write(dry_run, field_manager, field_validation)
        target = self._target(namespace or namespace_of(obj))
        return await self._client.run(calls.update(target, self._codec, name_of(obj), obj, options))

    async def patch(
        self,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes,
        kind: PatchType = PatchType.MERGE,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: FieldValidation | Literal[""] = "",
    ) -> T:
        """Sends a JSON patch (a list), a merge patch or a strategic merge patch (a mapping)."""
        options = self._write(dry_run, field_manager, field_validation)
        return await self._client.run(
            calls.patch(self._target(namespace), self._codec, name, patch, kind, options)
        )

    async def apply(
        self,
        configuration: A | T | Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = False,
        namespace: str | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | Literal[""] = "",
    ) -> T:
        """Server-side apply: makes the fields of ``configuration`` so, as ``field_manager``, and takes away those
        it had applied before and left out now.

        ``configuration`` is an apply configuration (module ``apply``), an object, or JSON; it names itself.
        Raises ``ApplyConflict`` (see its ``conflicts``) unless ``force``.
        """
        options = self._write(dry_run, field_manager, field_validation)
        target = self._target(namespace or namespace_of(configuration))
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
        namespace: str | None = None,
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
        return await self._client.run(calls.delete(self._target(namespace), self._codec, name, options))


class AsyncNamespacedPurgeable(AsyncResourceApi[T]):
    """delete_collection, of a namespaced resource."""

    async def delete_collection(
        self,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        propagation_policy: PropagationPolicy | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Deletes all objects of a selection in one namespace."""
        selection = ListOptions(label_selector=label_selector, field_selector=field_selector)
        options = DeleteOptions(
            propagation_policy=propagation_policy, grace_period_seconds=grace_period_seconds, dry_run=dry_run
        )
        await self._client.run(calls.delete_collection(self._target(namespace), selection, options))


class AsyncNamespacedStatusWritable(AsyncResourceApi[T], Generic[T, A]):
    """The status subresource, of a namespaced resource."""

    async def get_status(self, name: str, *, namespace: str | None = None) -> T:
        """Reads the object through its status subresource."""
        return await self._client.run(
            calls.get(self._target(namespace), self._codec, name, subresource="status")
        )

    async def replace_status(
        self,
        obj: T,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> T:
        """Writes the status of an object; the rest of it is ignored by the server."""
        target = self._target(namespace or namespace_of(obj))
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
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> T:
        """Patches the status of an object."""
        options = self._write(dry_run, field_manager)
        return await self._client.run(
            calls.patch(
                self._target(namespace), self._codec, name, patch, kind, options, subresource="status"
            )
        )

    async def apply_status(
        self,
        configuration: A | T | Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = False,
        namespace: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Server-side apply of the status. Raises ``ApplyConflict`` unless ``force``."""
        target = self._target(namespace or namespace_of(configuration))
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


class AsyncNamespacedLoggable(AsyncResourceApi[T]):
    """The log subresource, of a namespaced resource."""

    async def read_log(
        self,
        name: str,
        *,
        namespace: str | None = None,
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
        return await self._client.run(calls.read_log(self._target(namespace), name, options))

    async def follow_log(
        self,
        name: str,
        *,
        namespace: str | None = None,
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
        request = calls.follow_log(self._target(namespace), name, options, silence)
        return AsyncLogLines(await self._client._stream(request))


class AsyncNamespacedExecutable(AsyncResourceApi[T]):
    """exec, attach, port-forward and copying, of pods. The server must speak websockets for them (v5.channel.k8s.io,
    or v4): every kube-apiserver since 1.30 does."""

    async def exec(
        self,
        name: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str = "",
        stdin: bytes | None = None,
    ) -> ExecResult:
        """Runs a command to its end and gives its output and exit code; ``stdin`` is its input.

        Raises ``ApiError`` where it cannot be run; an exit code other than 0 is not an error.
        """
        from apimachinery.client.async_processes import async_execute

        return await async_execute(self._client, self._target(namespace), name, command, container, stdin)

    async def start_exec(
        self,
        name: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str = "",
        stdin: bool = False,
        tty: bool = False,
    ) -> AsyncProcess:
        """Starts a command, to read and write as it goes; close it."""
        from apimachinery.client.async_processes import async_start

        target = self._target(namespace)
        return await async_start(
            self._client, target, name, command, container=container, stdin=stdin, tty=tty
        )

    async def attach(
        self,
        name: str,
        *,
        namespace: str | None = None,
        container: str = "",
        stdin: bool = False,
        tty: bool = False,
    ) -> AsyncProcess:
        """Attaches to what a container runs; close it."""
        from apimachinery.client.async_processes import async_start

        target = self._target(namespace)
        return await async_start(self._client, target, name, None, container=container, stdin=stdin, tty=tty)

    async def port_forward(self, name: str, port: int, *, namespace: str | None = None) -> AsyncForwarded:
        """Connects to a port of a pod; close the connection."""
        from apimachinery.client.async_processes import async_forward

        return await async_forward(self._client, self._target(namespace), name, port)

    def forward(
        self,
        pod: str | T,
        port: int,
        *,
        local: int = 0,
        host: str = "127.0.0.1",
        namespace: str | None = None,
    ) -> AsyncForwarder:
        """Listens on a port of this machine (``local``; 0: a free one) while an ``async with`` block runs, and forwards
        every connection to a port of a pod: its ``port`` and ``address`` say where. Entering it raises ``OSError``."""
        from apimachinery.client.async_forwarding import AsyncForwarder

        name = pod if isinstance(pod, str) else name_of(pod)
        where = namespace if isinstance(pod, str) else namespace or namespace_of(pod)
        return AsyncForwarder(self._client, self._target(where), name, port, (host, local))

    async def copy_to(
        self, name: str, local: Path, remote: str, *, namespace: str | None = None, container: str = ""
    ) -> None:
        """Copies a file or folder to the path ``remote`` in a container, which needs ``tar``."""
        from apimachinery.client.async_processes import async_copy_to

        await async_copy_to(self._client, self._target(namespace), name, local, remote, container)

    async def copy_from(
        self, name: str, remote: str, local: Path, *, namespace: str | None = None, container: str = ""
    ) -> None:
        """Copies a file or folder in a container to the path ``local``."""
        from apimachinery.client.async_processes import async_copy_from

        await async_copy_from(self._client, self._target(namespace), name, remote, local, container)


class AsyncNamespacedScalable(AsyncResourceApi[T]):
    """The scale subresource, of a namespaced resource."""

    async def get_scale(self, name: str, *, namespace: str | None = None) -> Scale:
        """Reads the replica counts."""
        return await self._client.run(
            calls.get(self._target(namespace), calls.typed_codec(Scale), name, subresource="scale")
        )

    async def replace_scale(
        self,
        name: str,
        scale: Scale,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Scale:
        """Writes the wanted count."""
        codec = calls.typed_codec(Scale)
        options = self._write(dry_run, field_manager)
        return await self._client.run(
            calls.update(self._target(namespace), codec, name, scale, options, subresource="scale")
        )

    async def scale(
        self,
        name: str,
        replicas: int,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Scale:
        """Sets the wanted count to ``replicas``, whatever it is now."""
        body = {"spec": {"replicas": replicas}}
        options = self._write(dry_run, field_manager)
        return await self._client.run(
            calls.patch(
                self._target(namespace),
                calls.typed_codec(Scale),
                name,
                body,
                PatchType.MERGE,
                options,
                subresource="scale",
            )
        )


class AsyncDynamicResource(
    AsyncNamespacedReadable[dict[str, Any]],
    AsyncNamespacedWatchable[dict[str, Any]],
    AsyncNamespacedCreatable[dict[str, Any]],
    AsyncNamespacedEditable[dict[str, Any], dict[str, Any]],
    AsyncNamespacedPurgeable[dict[str, Any]],
    AsyncNamespacedStatusWritable[dict[str, Any], dict[str, Any]],
    AsyncNamespacedScalable[dict[str, Any]],
):
    """A resource known only at run time: objects are JSON, ``namespace`` is ignored where it has none."""

    def __init__(self, client: AsyncClient, resource: Resource) -> None:
        super().__init__(client, resource=resource, codec=calls.UNSTRUCTURED)

    @classmethod
    async def of(cls, client: AsyncClient, api_version: str, kind: str) -> Self:
        """The resource of a kind, asked of the server. Raises ``NotFound`` where it serves no such kind."""
        return cls(client, find_kind(await client.run(served(api_version)), api_version, kind))


def __getattr__(name: str) -> Any:
    """Gives the verbs of cluster-scoped resources, which build on this module."""
    if not name.startswith("AsyncCluster"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from apimachinery.client import async_cluster_resource

    return getattr(async_cluster_resource, name)
