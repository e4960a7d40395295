"""The options of ``kubewright lifecycle``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import add_findings_format

EXAMPLES = r"""
kubewright lifecycle plan.yaml
kubewright lifecycle plan.yaml --timeline
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    parser.add_argument(
        "plan", nargs="?", type=Path, help="the plan; without it the built-in kinds are meant"
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--check", action="store_true", help="check against the policy (what a plan is for)")
    shown.add_argument(
        "--table", action="store_true", help="print the life cycles in Markdown (what happens without a plan)"
    )
    shown.add_argument(
        "--timeline",
        action="store_true",
        help="print, release by release, what is served, preferred and stored",
    )
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        help="of a table or timeline: group/Kind, a shell pattern (core is 'core')",
    )
    parser.add_argument(
        "--specs",
        metavar="STATE",
        help="specs of the plan's kinds (as diff names them): no field may be lost between their served versions",
    )
    parser.add_argument(
        "--facts", type=Path, metavar="FOLDER", help="rules next to the specs: conversions between versions"
    )
    add_findings_format(parser)
