"""The options of ``kubewright explore``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import port_number

EXAMPLES = """
kubewright explore
kubewright explore --kubeconfig prod.yaml --context reader --port 8001
kubewright explore --server https://127.0.0.1:6443 --certificate-authority ca.crt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="as kubectl's; the page has its user's rights"
    )
    parser.add_argument("--context", default="", metavar="NAME", help="as kubectl's")
    parser.add_argument(
        "--url",
        dest="server",
        default="",
        metavar="URL",
        help="no kubeconfig: whoever opens the page logs in to this server",
    )
    parser.add_argument(
        "--certificate-authority",
        default="",
        metavar="FILE",
        help="with --url: who signed its certificate",
    )
    parser.add_argument(
        "--port", type=port_number, default=0, metavar="PORT", help="on 127.0.0.1 (default: a free one)"
    )
    parser.add_argument("--with-parent", action="store_true", help=argparse.SUPPRESS)
