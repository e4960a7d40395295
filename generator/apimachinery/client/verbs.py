# Made from async_verbs.py by build/plain.py: edit that one.
"""What every client does with objects of any kind, for threads; loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pathlib import Path

    from apimachinery.client.connection import Client
    from apimachinery.client.objects import KindApi
    from apimachinery.typed.object import Object

    O = TypeVar("O", bound=Object)  # noqa: E741 - an object
T = TypeVar("T")


class AnyKind:
    """Verbs of a client that take objects of any kind: models, or JSON."""

    def api(self, model: type[O]) -> KindApi[O]:
        """The verbs of a kind by its class: ``client.api(Website).get("a")``. Raises ``UnknownResourceError``."""
        from apimachinery.client.objects import KindApi

        return KindApi(cast("Client", self), model)

    def wait(self, obj: T, until: str | Callable[[T], bool], *, timeout: float = 60.0) -> T:
        """Waits until an object, by its name, is as ``until`` says, and gives it as it is then.

        ``until`` is written as for ``kubectl wait``: ``condition=Ready``, ``condition=Ready=False``, ``delete``,
        ``create``, ``jsonpath={.status.phase}=Running``; or a function. Raises ``TimeoutError`` with what it was last.
        """
        from apimachinery.client.objects import wait

        return wait(cast("Client", self), obj, until, timeout)

    def apply_all(
        self,
        objects: Iterable[Any],
        *,
        field_manager: str = "",
        force: bool = False,
        namespace: str | None = None,
    ) -> list[dict[str, Any]]:
        """Server-side apply of objects of many kinds, in order, as JSON or models; gives them as the server keeps
        them. A kind may follow its definition. ``namespace`` is that of those that name none."""
        from apimachinery.client.objects import apply_all

        client = cast("Client", self)
        return apply_all(client, objects, field_manager=field_manager, force=force, namespace=namespace)

    def apply_file(
        self, path: str | Path, *, field_manager: str = "", force: bool = False, namespace: str | None = None
    ) -> list[dict[str, Any]]:
        """As ``apply_all``, of all documents of a YAML or JSON file, or of all such files of a folder by name. Nothing
        is sent before all are read; raises ``BadRequest`` for one that is no object, and ``OSError``."""
        from apimachinery.client.objects import apply_file

        client = cast("Client", self)
        return apply_file(client, path, field_manager=field_manager, force=force, namespace=namespace)
