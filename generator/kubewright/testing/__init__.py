"""A private API server for tests: real behaviour, in this process, ready in a fraction of a second.

    from kubewright.testing import ApiServer

    with ApiServer(crds=["deploy/crds"]) as server:
        client = server.client()
        with server.namespace() as namespace:
            ...

``faults`` puts faults between clients and the server, ``history`` checks what informers heard. The pytest plugin
(``kubewright.testing.plugin``) gives the same as fixtures.
"""

from kubewright.testing.faults import FaultProxy
from kubewright.testing.history import History, HistoryError
from kubewright.testing.server import ApiServer, StartError

__all__ = ["ApiServer", "FaultProxy", "History", "HistoryError", "StartError"]
