"""The options of ``kubewright owners``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import add_cluster_arguments

EXAMPLES = """
kubewright owners deployments/web -n shop
kubewright owners -f live.yaml --manager kubectl-client-side-apply
kubectl get deployment web -o yaml --show-managed-fields | kubewright owners -f -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("object", nargs="*", metavar="OBJECT", help="TYPE/NAME in the cluster, or TYPE NAME")
    parser.add_argument(
        "-f", "--filename", type=Path, metavar="FILE", help="object with managedFields; - for stdin"
    )
    parser.add_argument("--manager", metavar="NAME", help="print only the paths that this manager owns")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format (default text)"
    )
    add_cluster_arguments(parser)
