"""The smallest API over the storage: ConfigMaps without rules, to test and measure what is beneath the handlers."""

from __future__ import annotations

import uuid

from apimachinery.http.messages import Request, Response, StreamResponse
from apimachinery.meta.errors import ApiError
from apimachinery.server.answer.view import JsonView, Selection, decode, encode, labels_of
from apimachinery.server.backend import Backend
from apimachinery.server.read.listing import check_seen, list_records
from apimachinery.server.request.list_options import read_list_options
from apimachinery.server.write.driver import Driver
from apimachinery.storage.interface import REVISION_MARK, KeyExists, Value

PREFIX = "/core/configmaps/"


class ToyApi:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.cache = backend.cache.resource(PREFIX)
        self.view = JsonView("v1", "ConfigMap", typed=True)

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    def takes_upgrade(self, request: Request) -> bool:
        return False

    async def handle(self, request: Request) -> Response | StreamResponse:
        parts = request.path.split("/")
        if parts[1:4] != ["api", "v1", "namespaces"] or len(parts) < 6 or parts[5] != "configmaps":
            if request.path == "/fail":
                raise RuntimeError("a bug")
            return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
        scope = f"{PREFIX}{parts[4]}/"
        if len(parts) == 7:
            return await self.one(request, scope + parts[6])
        if request.method == "POST":
            return await self.create(request, scope, parts[4])
        options = read_list_options(request.query)
        selection = None
        if wanted := request.first("labelSelector"):
            key, _, value = wanted.partition("=")
            selection = Selection(wanted, lambda record: labels_of(record).get(key) == value)
        if options.watch:
            return self.backend.watches.start(self.cache, scope, options, self.view, selection)
        listed = list_records(self.cache, scope, options, self.view, selection, self.backend.bodies)
        return await Driver(self.backend.storage, self.backend.cache).run(listed)

    async def one(self, request: Request, key: str) -> Response:
        if wanted := request.first("resourceVersion"):
            check_seen(self.cache, wanted)
        record = self.cache.get(key)
        if record is None:
            raise ApiError(404, "NotFound", "configmaps not found")
        if request.method == "GET":
            return Response(200, record.value)
        shown = decode(record.value)
        if request.method == "DELETE":
            return Response(200, (await self.backend.storage.delete(key, record.revision, cut(shown))).value)
        for name, change in decode(request.body).items():
            if isinstance(change, dict):
                shown.setdefault(name, {}).update(change)
            else:
                shown[name] = change
        return Response(200, (await self.backend.storage.update(key, record.revision, cut(shown))).value)

    async def create(self, request: Request, scope: str, namespace: str) -> Response:
        sent = decode(request.body)
        metadata = sent.pop("metadata")
        metadata |= {"namespace": namespace, "uid": str(uuid.uuid4())}
        shown = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata} | sent
        try:
            record = await self.backend.storage.create(scope + metadata["name"], cut(shown))
        except KeyExists:
            raise ApiError(409, "AlreadyExists", "configmaps exists") from None
        return Response(201, record.value)


def cut(shown: dict) -> Value:
    shown["metadata"]["resourceVersion"] = REVISION_MARK
    return Value.cut(encode(shown))
