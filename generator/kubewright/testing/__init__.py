"""A private API server for tests: real behaviour, in this process, ready in a fraction of a second.

    from kubewright.testing import ApiServer

    with ApiServer(crds=["deploy/crds"]) as server:
        client = server.client()
        with server.namespace() as namespace:
            ...

``faults`` puts faults between clients and the server, ``history`` checks what informers heard. The pytest plugin
(``kubewright.testing.plugin``) gives the same as fixtures.

Nothing of it is imported before it is asked for: pytest loads the plugin in every environment that has kubewright, and
most of them have no server extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubewright.testing.faults import FaultProxy
    from kubewright.testing.history import History, HistoryError
    from kubewright.testing.server import ApiServer
    from kubewright.testing.thread import StartError

__all__ = ["ApiServer", "FaultProxy", "History", "HistoryError", "StartError"]

_MODULES = {
    "ApiServer": "server",
    "FaultProxy": "faults",
    "History": "history",
    "HistoryError": "history",
    "StartError": "thread",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in ("kubewright", "apimachinery"):
            raise
        raise ModuleNotFoundError(
            f"{__name__}.{name} needs the module {missing.name!r}: pip install 'kubewright[server]'",
            name=missing.name,
        ) from None
