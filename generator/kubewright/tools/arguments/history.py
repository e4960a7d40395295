"""The options of ``kubewright history``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import add_cluster_arguments

EXAMPLES = """
kubewright history deployments/web -n shop
kubewright history deployments/web -n shop --diff
kubewright history deployments/web -n shop --at 1042 > web.yaml
kubewright history configmaps -n shop -l app=web --format json
kubewright history deployments/web -n shop --audit audit.log
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    parser.add_argument(
        "object",
        nargs="+",
        metavar="OBJECT",
        help="TYPE/NAME, TYPE NAME, or TYPE for all (with -n: in a namespace)",
    )
    parser.add_argument(
        "-l", "--selector", default="", metavar="LABELS", help="of a TYPE: those with these labels"
    )
    parser.add_argument(
        "--limit", type=int, default=100, metavar="N", help="the newest so many (default %(default)s)"
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--diff", action="store_true", help="what each change changed")
    shown.add_argument(
        "--at", default="", metavar="VERSION", help="the object as it was at a version, as YAML"
    )
    parser.add_argument(
        "--audit",
        type=Path,
        metavar="FILE",
        help="read JSON lines of audit events, of any cluster, instead of asking a server; - is stdin",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to print (default text)"
    )
    add_cluster_arguments(parser)
