"""The writes of objects of any resource, for whoever awaits them: controllers, plugins, other writes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from apimachinery.kinds.hooks import Json
from apimachinery.server.admission.interface import Admission, Operation
from apimachinery.server.request.target import WriteTarget, Written
from apimachinery.server.write.allocating import Allocator
from apimachinery.server.write.driver import Driver, WritableStorage
from apimachinery.server.write.effects import Steps
from apimachinery.server.write.pipeline import Pipeline, Transform
from apimachinery.storage.interface import Record
from apimachinery.storage.watch_cache import WatchCache


class Writer:
    """Writes objects. ``pipeline`` has the same as steps of a longer write, which ``driver`` runs."""

    def __init__(
        self,
        storage: WritableStorage,
        cache: WatchCache,
        admission: Admission,
        allocators: Mapping[str, Allocator] | None = None,
    ) -> None:
        """``allocators`` are by the prefix of their resource."""
        self.driver = Driver(storage, cache, allocators)
        self.pipeline = Pipeline(admission, allocators or {})

    def current(self, target: WriteTarget) -> Record | None:
        """The present record."""
        return self.driver.current(target)

    async def admitted(self, operation: Operation) -> None:
        """Sends through admission what is not stored as it comes: a call, a connection. Raises ApiError."""
        await self.driver.run(self._admit(operation))

    def _admit(self, operation: Operation) -> Steps[None]:
        yield from self.pipeline.admission.admit(operation)
        yield from self.pipeline.admission.validate(operation)

    def create(self, target: WriteTarget, obj: Json) -> Coroutine[Any, Any, Written]:
        return self.driver.run(self.pipeline.create(target, obj))

    def update(
        self,
        target: WriteTarget,
        transform: Transform,
        *,
        uid: str = "",
        creates: Callable[[], Json] | None = None,
    ) -> Coroutine[Any, Any, Written]:
        return self.driver.run(self.pipeline.update(target, transform, uid=uid, creates=creates))

    def replace(self, target: WriteTarget, record: Record, new: Json) -> Coroutine[Any, Any, Record]:
        return self.driver.run(self.pipeline.replace(target, record, new))

    def remove(self, target: WriteTarget, record: Record, last: Json) -> Coroutine[Any, Any, Record]:
        return self.driver.run(self.pipeline.remove(target, record, last))
