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
    paths = "files or folders of OpenAPI documents and CRDs; folders may hold other manifests too"
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help=paths)
    parser.add_argument(
        "--kubernetes", metavar="RELEASE", help="lint the built-in kinds of a release, such as 1.37"
    )
    parser.add_argument(
        "--profile",
        choices=("crd", "native"),
        help="rules for CRDs (default), or for built-in kinds (default with --kubernetes)",
    )
    parser.add_argument(
        "--select",
        action="append",
        metavar="CODE",
        help="only this rule, or group of rules such as L2; several with commas, may be repeated",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        metavar="CODE",
        help="skip this rule or group; several with commas, may be repeated",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings (default: ./pyproject.toml, if present)"
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="file with known findings, which are not reported"
    )
    parser.add_argument(
        "--update-baseline",
        action="store_true",
        help="remove fixed findings from the baseline; create it if it does not exist",
    )
    parser.add_argument(
        "--fail-on", choices=("error", "warning", "note"), help="exit with 1 from this severity on"
    )
    parser.add_argument(
        "--least",
        choices=("error", "warning", "note"),
        help="lowest severity to report (default: warning, or that of --fail-on if lower)",
    )
    parser.add_argument(
        "--statistics", action="store_true", help="print only the number of findings of each rule"
    )
    parser.add_argument("--all", action="store_true", help="print every finding, even if there are many")
    parser.add_argument(
        "--fix",
        action="store_true",
        help="apply the fixes that are safe for existing objects (--explain says which rules have one)",
    )
    add_findings_format(parser)
    add_quiet(parser)
    parser.add_argument(
        "--explain", metavar="CODE", help="explain a rule: what it requires, why, and its source; or `all`"
    )
