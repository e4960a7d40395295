"""componentstatuses: how the parts of a control plane are, asked of them when somebody reads it. Nothing is stored.

The scheduler and the controller manager are asked on loopback, where they serve /healthz unless they are told
otherwise; the storage answers for etcd.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from apimachinery.meta.errors import ApiError, not_found
from apimachinery.server.catalog.served import Served
from apimachinery.storage.interface import Record
from apimachinery.wire.json import encode

COMPONENTS = ("", "v1", "componentstatuses")
SECONDS = 5.0
HEAD_BYTES = 4096
PORTS = {"scheduler": 10259, "controller-manager": 10257}
"""Where kube-scheduler and kube-controller-manager serve."""


class Components:
    """The resource componentstatuses. ``fault`` says what is wrong with the storage, empty where nothing is."""

    def __init__(self, fault: Callable[[], str]) -> None:
        self._fault = fault

    async def records(self, served: Served, scope: str) -> list[Record]:
        """The components, in kube-apiserver's order."""
        said = await asyncio.gather(*(_asked(port) for port in PORTS.values()))
        of_storage = (not self._fault(), self._fault() or "ok")
        made = [
            _record(served.prefix, name, healthy, message)
            for name, (healthy, message) in zip((*PORTS, "etcd-0"), (*said, of_storage), strict=True)
        ]
        return [each for each in made if each.key.startswith(scope)]

    def missing(self, served: Served, namespace: str, name: str) -> ApiError:
        return not_found(served.hooks.called, served.group, name)


def _record(prefix: str, name: str, healthy: bool, message: str) -> Record:
    condition = {"type": "Healthy", "status": "True" if healthy else "False", "message": message}
    shown = {
        "kind": "ComponentStatus",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "conditions": [condition],
    }
    return Record(prefix + name, 0, 0, encode(shown))


async def _asked(port: int) -> tuple[bool, str]:
    """Whether a component on loopback is healthy, and what it or the connection says."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Its certificate is its own, and it is sent nothing but the question.
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    asked = f'Get "https://127.0.0.1:{port}/healthz": dial tcp 127.0.0.1:{port}: '
    try:
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            try:
                writer.write(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                answer = await reader.read(HEAD_BYTES)
            finally:
                writer.close()
    except ConnectionRefusedError:
        return False, f"{asked}connect: connection refused"
    except TimeoutError:
        return False, f"{asked}i/o timeout"
    except (OSError, ssl.SSLError) as fault:
        return False, f"{asked}{fault.strerror or fault}"
    # As kube-apiserver: 200 alone is not healthy, the text must be ok.
    head, _, body = answer.partition(b"\r\n\r\n")
    text = body.decode(errors="replace").strip()
    return head.split(b" ")[1:2] == [b"200"] and text == "ok", text
