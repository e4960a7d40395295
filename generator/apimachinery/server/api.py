"""The API of a server: generated packages, CustomResourceDefinitions, and the loops that run beside them.

``build_api`` puts the parts together; the way of a request begins in ``handlers``.
"""

from __future__ import annotations

import asyncio
import contextlib

from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.namespaces import NamespaceLifecycle
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import Package, add_package
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.controllers.definitions import DEFINITIONS, Definitions
from apimachinery.server.controllers.garbage import GarbageCollector
from apimachinery.server.controllers.namespaces import NamespaceController
from apimachinery.server.describe.discovery import Discovery
from apimachinery.server.describe.openapi import OpenApi
from apimachinery.server.handlers import Descriptions, Handlers, Reads, Writes
from apimachinery.server.http.messages import Request, Response, StreamResponse
from apimachinery.server.process import Backend
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.codecs import Codecs
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SERVER = "kube-apiserver"


class Api:
    """Handlers, and the controllers beside them."""

    def __init__(self, backend: Backend, options: ApiOptions) -> None:
        self.catalog = Catalog()
        packages = [Package(name) for name in options.packages]
        for package in packages:
            add_package(self.catalog, package, options)
        self._packages = packages
        admission = NamespaceLifecycle(backend.cache)
        self.writer = Writer(backend.storage, backend.cache, admission)
        self.deleter = Deleter(self.writer, admission)
        self.handlers = Handlers(
            self.catalog,
            Reads(backend.cache, backend.watches, backend.bodies),
            Writes(self.writer, self.deleter),
            Descriptions(Discovery(self.catalog, "127.0.0.1"), OpenApi(self.catalog, packages, options)),
            Codecs([package.messages for package in packages]),
            self._is_kind,
        )
        self.handle = self.handlers.handle
        self.definitions: Definitions | None = None
        self._loops: list[NamespaceController | GarbageCollector] = []
        served = self.catalog.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        if served is not None:
            self.definitions = Definitions(
                self.catalog, backend.cache, backend.watches, served, self.writer, self.deleter
            )
        if "namespace" in options.controllers and self.catalog.find("", "v1", "namespaces"):
            self._loops.append(NamespaceController(self.catalog, backend.cache, self.writer, self.deleter))
        if "gc" in options.controllers:
            self._loops.append(GarbageCollector(self.catalog, backend.cache, self.writer, self.deleter))

    def _is_kind(self, api_version: str, kind: str) -> bool:
        return any((api_version, kind) in package.kinds for package in self._packages)

    async def start(self) -> None:
        """Makes the system's namespaces, serves the definitions that are stored, and starts the loops."""
        namespaces = self.catalog.find("", "v1", "namespaces")
        if namespaces is not None:
            for name in SYSTEM_NAMESPACES:
                target = WriteTarget(namespaces, "", name, WriteOptions(manager=SERVER))
                if self.writer.current(target) is None:
                    obj: Json = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
                    finish_form(obj, namespaces)
                    with contextlib.suppress(ApiError):
                        await self.writer.create(target, obj)
        if self.definitions is not None:
            await self.definitions.start()
        for loop in self._loops:
            loop.start()
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Stops the loops."""
        for loop in self._loops:
            await loop.stop()
        if self.definitions is not None:
            await self.definitions.stop()


def build_api(backend: Backend, options: ApiOptions) -> Api:
    """The API for a backend."""
    return Api(backend, options)


__all__ = ["DEFINITIONS", "Api", "Request", "Response", "StreamResponse", "build_api"]
