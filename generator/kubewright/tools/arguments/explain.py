"""The options of ``kubewright explain``."""

from __future__ import annotations

import argparse

from kubewright.tools.arguments.several import RELEASE, add_crds, release

EXAMPLES = r"""
kubewright explain deployment.spec.strategy
kubewright explain widgets.spec --crds crds/ --recursive
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="a kind and its fields, such as deployment.spec.template")
    parser.add_argument(
        "--kubernetes",
        type=release,
        default=RELEASE,
        metavar="RELEASE",
        help=f"Kubernetes release (default {RELEASE})",
    )
    add_crds(parser)
    parser.add_argument("--api-version", default="", metavar="GROUP/VERSION", help="API version of the kind")
    parser.add_argument(
        "--recursive", action="store_true", help="print the names and types of all nested fields"
    )
