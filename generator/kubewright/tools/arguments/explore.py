"""The options of ``kubewright explore``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import port_number

EXAMPLES = """
kubewright explore
kubewright explore --kubeconfig prod.yaml --context reader --port 8001
kubewright explore --url https://127.0.0.1:6443 --certificate-authority ca.crt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="as for kubectl; the page acts with this user's rights",
    )
    parser.add_argument("--context", default="", metavar="NAME", help="as for kubectl")
    parser.add_argument(
        "--url",
        dest="server",
        default="",
        metavar="URL",
        help="server to show, without a kubeconfig: the page asks for a token",
    )
    parser.add_argument(
        "--certificate-authority",
        default="",
        metavar="FILE",
        help="with --url: CA of the server's certificate",
    )
    parser.add_argument(
        "--port", type=port_number, default=0, metavar="PORT", help="port on 127.0.0.1 (default: a free one)"
    )
    parser.add_argument("--with-parent", action="store_true", help=argparse.SUPPRESS)
