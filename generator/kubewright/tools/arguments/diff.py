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
    """Adds the options of the sub-command."""
    parser.add_argument("old", help="PATH, git:REVISION:PATH or kubernetes:RELEASE")
    parser.add_argument("new", help="the same")
    parser.add_argument(
        "--facts",
        type=Path,
        metavar="FOLDER",
        help="rules next to the specs: version conversions, protobuf numbers (of a git state: in its revision)",
    )
    parser.add_argument(
        "--old-facts", type=Path, metavar="FOLDER", help="those of OLD, if they are elsewhere"
    )
    parser.add_argument(
        "--exceptions", type=Path, metavar="FILE", help="TOML: code → path patterns that may change"
    )
    parser.add_argument(
        "--fail-on", choices=("error", "warning", "note"), default="error", help="what makes the exit code 1"
    )
    parser.add_argument(
        "--least", choices=("error", "warning", "note"), default="note", help="report from here on"
    )
    add_quiet(parser)
    parser.add_argument(
        "--each", action="store_true", help="report every place alone, not one finding for one idea"
    )
    parser.add_argument("--documentation", action="store_true", help="report changed descriptions too")
    parser.add_argument(
        "--format", choices=sorted([*FORMATS, "markdown"]), default="text", help="how to print findings"
    )
