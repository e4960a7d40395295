"""The options of ``kubewright envtest``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import add_quiet

EXAMPLES = r"""
kubewright envtest -- go test ./...
kubewright envtest --output bin/assets && KUBEBUILDER_ASSETS=$PWD/bin/assets go test ./...
kubewright envtest --controllers none -- make test
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add("-o", "--output", type=Path, metavar="DIR", help="folder to write the programs to")
    add(
        "--controllers",
        default="all,-gc,gc-known-owners",
        metavar="all|none|NAME,NAME",
        help="controllers to run in each server (default: all, but objects whose owner never existed are kept); none "
        "behaves like envtest",
    )
    add_quiet(parser)
    add(
        "program",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="run this with KUBEBUILDER_ASSETS set, and clean up afterwards",
    )
