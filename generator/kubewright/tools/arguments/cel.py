"""The options of ``kubewright cel``."""

from __future__ import annotations

import argparse

EXAMPLES = r"""
kubewright cel eval 'self.spec.replicas < 3' --self deployment.yaml
kubewright cel check crds/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare both sub-commands."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    evaluate = actions.add_parser("eval", help="evaluate an expression")
    evaluate.add_argument("expression", metavar="EXPR", help="the expression")
    evaluate.add_argument(
        "--self", dest="self_file", metavar="FILE", help="YAML or JSON value of `self` (- for stdin)"
    )
    evaluate.add_argument("--old-self", dest="old_self_file", metavar="FILE", help="value of `oldSelf`")
    evaluate.add_argument(
        "--var",
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="value of another variable; may be repeated",
    )
    evaluate.add_argument("--schema", metavar="FILE", help="CRD or schema that gives `self` its type")
    evaluate.add_argument("--api-version", metavar="VERSION", help="the version of the CRD to use")
    evaluate.add_argument(
        "--cost", action="store_true", help="also print the cost of the evaluation, to stderr"
    )
    check = actions.add_parser("check", help="check the validation rules of CustomResourceDefinitions")
    check.add_argument("files", nargs="+", metavar="PATH", help="CRDs or schemas: files, folders, -")
    for each in (evaluate, check):
        each.add_argument(
            "--kubernetes",
            default="1.36",
            metavar="RELEASE",
            help="release whose functions are available (default 1.36)",
        )
        each.add_argument("--format", choices=("text", "json"), default="text", help="output format")
