"""The options of ``kubewright validate``."""

from __future__ import annotations

import argparse

from kubewright.tools.arguments.several import (
    CRDS_HELP,
    EXCLUDE_HELP,
    RELEASE,
    add_crds,
    add_findings_format,
    add_package,
    add_quiet,
    release,
)

EXAMPLES = r"""
kubewright validate .
kubewright validate deploy/ --crds crds/ --strict
kustomize build . | kubewright validate - --kubernetes 1.33
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="FILE|DIR|-",
        help="manifests in YAML or JSON: files, folders, or - for stdin",
    )
    parser.add_argument(
        "--kubernetes",
        metavar="RELEASE",
        type=release,
        default=RELEASE,
        help=f"Kubernetes release to check against (default {RELEASE})",
    )
    add_crds(parser, f"{CRDS_HELP}. CRDs among the manifests count anyway")
    parser.add_argument("--strict", action="store_true", help="treat unknown and duplicate fields as errors")
    parser.add_argument(
        "--ignore-missing-schemas", action="store_true", help="skip objects whose kind has no schema"
    )
    parser.add_argument("--helm", action="store_true", help="render Helm charts with `helm template`")
    parser.add_argument("--allow-empty", action="store_true", help="accept input without any documents")
    add_findings_format(parser)
    parser.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=0,
        metavar="N",
        help="number of processes (default: chosen by the size of the input)",
    )
    parser.add_argument("--fix", action="store_true", help="correct misspelled fields in the files")
    parser.add_argument("--exclude", action="append", default=[], metavar="PATTERN", help=EXCLUDE_HELP)
    add_quiet(parser)
    add_package(parser, "generated package with the rules of built-in kinds")
