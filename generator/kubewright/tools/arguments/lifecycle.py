"""The options of ``kubewright lifecycle``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import add_findings_format

EXAMPLES = r"""
kubewright lifecycle plan.yaml
kubewright lifecycle plan.yaml --specs crds
kubewright lifecycle plan.yaml --timeline
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", nargs="?", type=Path, help="the plan (default: the built-in kinds)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--check", action="store_true", help="check against the deprecation policy (default with a plan)"
    )
    shown.add_argument(
        "--table", action="store_true", help="print a Markdown table of all versions (default without a plan)"
    )
    shown.add_argument(
        "--timeline",
        action="store_true",
        help="print the served, preferred and stored versions of each release",
    )
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        help="limit a table or timeline to group/Kind, a shell pattern ('core' is the core group)",
    )
    parser.add_argument(
        "--specs",
        metavar="STATE",
        help="specs of the plan's kinds, as for diff: check that they agree with the plan and that no field is lost "
        "between served versions",
    )
    parser.add_argument(
        "--release", metavar="X.Y", help="release of the specs (default: the last one in the plan)"
    )
    parser.add_argument(
        "--facts", type=Path, metavar="FOLDER", help="conversions between versions, kept next to the specs"
    )
    add_findings_format(parser)
