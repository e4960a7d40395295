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
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        required=True,
        metavar="SOURCE",
        help="file or folder of specs, kubernetes:1.37, cluster, or cluster:CONTEXT; may be repeated",
    )
    parser.add_argument(
        "--language",
        choices=LANGUAGES,
        default="python",
        help="default: python; typescript writes an npm package",
    )
    parser.add_argument("--package", required=True, metavar="NAME", help="import name, such as mycompany_api")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="folder to write the project to"
    )
    parser.add_argument(
        "--group", action="append", default=[], help="with a cluster: only this API group; may be repeated"
    )
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the cluster (default: kubectl's)"
    )
    parser.add_argument("--no-documentation", action="store_true", help="leave out descriptions")
