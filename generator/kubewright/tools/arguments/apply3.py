"""The options of ``kubewright apply3``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import (
    add_object_arguments,
)

EXAMPLES = r"""
kubewright apply3 --original applied-last.yaml --modified wanted.yaml --current live.yaml
kubewright apply3 --original old.yaml --modified new.yaml --current live.yaml --crds crds/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--original", type=Path, metavar="FILE", help="the last applied configuration (default: none)"
    )
    parser.add_argument(
        "-m", "--modified", type=Path, required=True, metavar="FILE", help="the configuration to apply"
    )
    parser.add_argument("-c", "--current", type=Path, required=True, metavar="FILE", help="the live object")
    parser.add_argument("--result", action="store_true", help="print the patched object instead of the patch")
    parser.add_argument(
        "--no-overwrite", action="store_true", help="fail if others changed the same fields since"
    )
    add_object_arguments(parser)
