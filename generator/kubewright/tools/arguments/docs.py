"""The options of ``kubewright docs``."""

from __future__ import annotations

import argparse

from kubewright.tools.arguments.several import (
    add_output_arguments,
)

EXAMPLES = r"""
kubewright docs crds/ > reference.html
kubewright docs crds/ --format markdown --output reference/
"""


HTML_FILE = "index.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="PATH, git:REVISION:PATH or kubernetes:RELEASE"
    )
    parser.add_argument(
        "--kubernetes", metavar="RELEASE", help="add the built-in kinds of a release, such as 1.37"
    )
    parser.add_argument(
        "--format",
        choices=("html", "markdown"),
        default="html",
        dest="output_format",
        help="html: one searchable page (default); markdown: a file per group and version",
    )
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        help="only this group and the types it uses; may be repeated",
    )
    parser.add_argument("--title", default="", help="title of the pages (default: the groups or the release)")
    add_output_arguments(
        parser, otherwise=f"without it one page goes to standard output; HTML is {HTML_FILE}"
    )
