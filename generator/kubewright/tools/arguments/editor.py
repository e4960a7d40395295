"""The options of ``kubewright editor``."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLES = r"""
kubewright editor manifests/ --crds crds/ --kubernetes 1.37
kubewright editor manifests/ --crds crds/ --modelines
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of manifests")
    parser.add_argument(
        "--crds",
        action="append",
        default=[],
        metavar="PATH",
        help="CRDs or other descriptions of kinds; may be repeated",
    )
    parser.add_argument(
        "--kubernetes", metavar="RELEASE", help="add the built-in kinds of a release, such as 1.37"
    )
    parser.add_argument(
        "--schemas",
        type=Path,
        metavar="DIR",
        help="folder for the schemas; its contents are replaced (default: FOLDER/.schemas)",
    )
    parser.add_argument(
        "--modelines",
        action="store_true",
        help="also name the schema at the head of each document, for other editors",
    )
