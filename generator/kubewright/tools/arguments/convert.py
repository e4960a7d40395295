"""The options of ``kubewright convert``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import add_crds, add_package

EXAMPLES = r"""
kubewright convert -f ingress.yaml --output-version networking.k8s.io/v1
kubewright convert -f w.yaml --output-version example.com/v1 --crds crds/ --rules .
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    parser.add_argument(
        "-f", "--filename", action="append", required=True, metavar="PATH", help="file, folder or -"
    )
    parser.add_argument("--output-version", required=True, metavar="GROUP/VERSION", help="such as apps/v1")
    add_package(parser, "the generated package")
    add_crds(parser, "CRDs of custom kinds; may be repeated")
    parser.add_argument(
        "--rules", type=Path, metavar="DIR", help="folder with the CRDs' `conversions/` (docs/rules.md)"
    )
    parser.add_argument(
        "--modules",
        type=Path,
        metavar="DIR",
        help="folder of the Python modules that `call` rules name; their code is executed",
    )
