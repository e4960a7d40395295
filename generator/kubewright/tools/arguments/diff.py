"""The options of ``kubewright diff``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import FORMATS, add_quiet

EXAMPLES = r"""
kubewright diff git:main:crds crds
kubewright diff kubernetes:1.36 kubernetes:1.37 --least warning
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="PATH, git:REVISION:PATH or kubernetes:RELEASE")
    parser.add_argument("new", metavar="NEW", help="the same for the newer state")
    parser.add_argument(
        "--facts",
        type=Path,
        metavar="FOLDER",
        help="conversions and protobuf numbers kept next to the specs (for git:, at that revision)",
    )
    parser.add_argument(
        "--old-facts", type=Path, metavar="FOLDER", help="those of OLD, if they are in another folder"
    )
    parser.add_argument(
        "--exceptions", type=Path, metavar="FILE", help="TOML file: code → patterns of paths that may change"
    )
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "note"),
        default="error",
        help="exit with 1 from this severity on",
    )
    parser.add_argument(
        "--least", choices=("error", "warning", "note"), default="note", help="lowest severity to report"
    )
    add_quiet(parser)
    parser.add_argument(
        "--each", action="store_true", help="report every change by itself instead of grouping related ones"
    )
    parser.add_argument("--documentation", action="store_true", help="report changed descriptions too")
    parser.add_argument(
        "--format", choices=sorted([*FORMATS, "markdown"]), default="text", help="output format"
    )
