"""The options of ``kubewright history``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import add_cluster_arguments

EXAMPLES = """
kubewright history deployments/web -n shop
kubewright history deployments/web -n shop --diff
kubewright history deployments/web -n shop --at 1042 > web.yaml
kubewright history -n shop
kubewright history -l app=web
kubewright history configmaps,secrets -n shop -l app=web --format json
kubewright history deployments/web -n shop --audit audit.log
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "object",
        nargs="*",
        metavar="OBJECT",
        help="TYPE/NAME, TYPE NAME, TYPE[,TYPE] for all objects of types; default all types but Events and Leases",
    )
    parser.add_argument(
        "-l", "--selector", default="", metavar="LABELS", help="without NAME: only objects with these labels"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=100,
        metavar="N",
        help="number of changes, newest first (default %(default)s)",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--diff", action="store_true", help="show what each change changed")
    shown.add_argument(
        "--at", default="", metavar="VERSION", help="print the object as of a resourceVersion, as YAML"
    )
    parser.add_argument(
        "--audit",
        type=Path,
        metavar="FILE",
        help="read an audit log (JSON lines) of any cluster instead; - for stdin",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format (default text)"
    )
    add_cluster_arguments(parser)
