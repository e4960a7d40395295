"""The options of ``kubewright migrate``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import (
    EXCLUDE_HELP,
    NEWEST,
    add_conversions,
    add_findings_format,
    add_package,
    add_quiet,
    release,
)

EXAMPLES = r"""
kubewright migrate manifests/
kubewright migrate manifests/ --kubernetes 1.37 --write
kubewright migrate samples/ --crds crds/ --rules .
kubewright migrate --from-cluster --audit-log /var/log/kubernetes/audit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="manifests: files, folders, or - for stdin")
    parser.add_argument(
        "--kubernetes",
        type=release,
        default=NEWEST,
        metavar="RELEASE",
        help=f"target release (default {NEWEST})",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="rewrite the files; with -, write to stdout; with --from-cluster, write stored objects again",
    )
    add_findings_format(parser)
    add_package(parser, "generated package with the conversions")
    add_conversions(parser)
    parser.add_argument("--exclude", action="append", default=[], metavar="PATTERN", help=EXCLUDE_HELP)
    group = parser.add_argument_group("callers", "find the callers of deprecated APIs, instead of manifests")
    group.add_argument(
        "--from-cluster",
        action="store_true",
        help="read the metrics and the stored versions of a cluster",
    )
    group.add_argument(
        "--audit-log", type=Path, action="append", default=[], metavar="PATH",
        help="read an audit log, or a folder of them (also .gz); may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the cluster (default: kubectl's)"
    )
    group.add_argument("--context", default="", metavar="NAME", help="context of the kubeconfig")
    add_quiet(parser)
