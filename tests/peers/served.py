"""The server of other people's suites, until its stdin ends: containers of nginx answer as nginx does.

python tests/peers/served.py KUBECONFIG
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apimachinery.server.node.behaviour import NodeBehaviour
from kubewright.testing import ApiServer

PAGE = b"<html><body><h1>Welcome to nginx!</h1></body></html>\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
CLOSED = 1236
"""The port that the official client's suite expects nobody to listen at."""


def answer(pod: Mapping[str, Any], port: int, data: bytes) -> bytes:
    """What a port of a pod answers: nginx its page, everybody else what they got."""
    is_nginx = any("nginx" in container["image"] for container in pod["spec"]["containers"])
    return HEAD % len(PAGE) + PAGE if is_nginx else data


def main() -> None:
    node = NodeBehaviour(forward=answer, listens=lambda pod, port: port != CLOSED)
    with ApiServer(tls=True, controllers="all,workloads", node=node) as server:
        wanted = Path(sys.argv[1])
        part = wanted.with_suffix(".part")
        part.write_text(Path(server.kubeconfig).read_text())
        part.rename(wanted)
        sys.stdin.read()


if __name__ == "__main__":
    main()
