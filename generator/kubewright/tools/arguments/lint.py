"""The options of ``kubewright lint``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import add_findings_format, add_quiet

EXAMPLES = r"""
kubewright lint crds/
kubewright lint --explain L101
kubewright lint --fix crds/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    parser.add_argument(
        "paths", nargs="*", type=Path, help="OpenAPI documents, CRD manifests, folders of them"
    )
    parser.add_argument(
        "--kubernetes", metavar="RELEASE", help="lint the built-in kinds of a release, such as 1.37"
    )
    parser.add_argument(
        "--profile", choices=("crd", "native"), help="whose rules (default crd; native with --kubernetes)"
    )
    parser.add_argument(
        "--select", action="append", metavar="CODE", help="only these rules, or groups such as L2"
    )
    parser.add_argument("--ignore", action="append", metavar="CODE", help="not these rules")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings (default: pyproject.toml here, if any)"
    )
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="findings to fix later")
    parser.add_argument(
        "--update-baseline",
        action="store_true",
        help="remove from the baseline what is fixed; create it if there is none",
    )
    parser.add_argument("--fail-on", choices=("error", "warning", "note"), help="what makes the exit code 1")
    parser.add_argument(
        "--least",
        choices=("error", "warning", "note"),
        help="report from here on (default warning, or what --fail-on says where that is less)",
    )
    parser.add_argument(
        "--statistics", action="store_true", help="print how often each rule is broken, not where"
    )
    parser.add_argument("--all", action="store_true", help="print every finding, however many there are")
    parser.add_argument(
        "--fix",
        action="store_true",
        help="correct, in the files, what has a correction that changes no object's meaning (--explain says which)",
    )
    add_findings_format(parser)
    add_quiet(parser)
    parser.add_argument(
        "--explain", metavar="CODE", help="say what a rule wants, why, and where it comes from; or `all`"
    )
