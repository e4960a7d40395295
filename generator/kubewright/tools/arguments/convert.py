"""The options of ``kubewright convert``."""

from __future__ import annotations

import argparse

from kubewright.tools.arguments.several import add_conversions, add_package

EXAMPLES = r"""
kubewright convert -f ingress.yaml --output-version networking.k8s.io/v1
kubewright convert -f w.yaml --output-version example.com/v1 --crds crds/ --rules .
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--filename", action="append", required=True, metavar="PATH", help="file, folder or -"
    )
    parser.add_argument("--output-version", required=True, metavar="GROUP/VERSION", help="such as apps/v1")
    add_package(parser, "generated package with the conversions")
    add_conversions(parser)
