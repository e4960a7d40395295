"""The options of ``kubewright sdk``."""

from __future__ import annotations

import argparse
from pathlib import Path

LANGUAGES = ("python", "typescript")

EXAMPLES = r"""
kubewright sdk --from crds/ --package shop_client --output shop-client
kubewright sdk --from cluster --group example.com --package shop_client --output shop-client
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        required=True,
        metavar="SOURCE",
        help="file or folder of specs, kubernetes:1.37, cluster, or cluster:CONTEXT; may be repeated",
    )
    parser.add_argument(
        "--language", choices=LANGUAGES, default="python", help="default: python; or a project of npm"
    )
    parser.add_argument("--package", required=True, metavar="NAME", help="import name, such as mycompany_api")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="folder of the project"
    )
    parser.add_argument("--group", action="append", default=[], help="of a cluster: only these groups")
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="of a cluster (default: as kubectl finds it)"
    )
    parser.add_argument("--no-documentation", action="store_true", help="leave the specs' prose out")
