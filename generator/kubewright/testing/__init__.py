"""A private API server for tests: real behaviour, in this process, ready in a fraction of a second.

    from kubewright.testing import ApiServer

    with ApiServer(crds=["deploy/crds"]) as server:
        client = server.client()
        with server.namespace() as namespace:
            ...

The pytest plugin (``kubewright.testing.plugin``) gives the same as fixtures.
"""

from kubewright.testing.server import ApiServer, StartError

__all__ = ["ApiServer", "StartError"]
