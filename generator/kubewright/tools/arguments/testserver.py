"""The options of ``kubewright testserver``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import RELEASE, port_number

EXAMPLES = r"""
kubewright testserver                               # prints the kubeconfig once the server is ready
kubewright testserver --kubeconfig build/kubeconfig
kubewright testserver -- cargo test                 # with KUBECONFIG set, and a server that ends with it
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="write the kubeconfig to a file (default: print it)",
    )
    add("--port", type=port_number, default=0, help="port on 127.0.0.1 (default: a free one)")
    add(
        "--controllers",
        default="all",
        metavar="all|none|NAME,NAME",
        help="controllers to run (default all)",
    )
    add(
        "--packages",
        default="",
        metavar="NAME,NAME",
        help="generated packages to serve (default kubernetes_api)",
    )
    add("--emulated-version", default=RELEASE, help="Kubernetes release to answer as (default %(default)s)")
    add("--stay", action="store_true", help="keep running after the parent process has exited")
    add(
        "program",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="run this with KUBECONFIG set, and end the server afterwards",
    )
