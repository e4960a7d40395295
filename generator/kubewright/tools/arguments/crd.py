"""The options of ``kubewright crd``."""

from __future__ import annotations

import argparse

from kubewright.tools.arguments.several import (
    RELEASE,
    add_output_arguments,
)

EXAMPLES = r"""
kubewright crd openapi.yaml --output crds/
kubewright crd crds/ --kind Widget --no-descriptions
kubewright crd shapes.py:Widget --output crds/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="PATH, git:REVISION:PATH, kubernetes:RELEASE, or MODULE:CLASS, FILE.py:CLASS, MODULE:* for typed "
        "classes of Python (the module is imported: its code runs)",
    )
    parser.add_argument(
        "--kind", action="append", default=[], metavar="KIND", help="only this kind; may be repeated"
    )
    parser.add_argument(
        "--group", action="append", default=[], metavar="GROUP", help="only this group; may be repeated"
    )
    parser.add_argument(
        "--storage",
        default="",
        metavar="VERSION",
        help="make this the storage version of every kind that has it",
    )
    parser.add_argument("--no-descriptions", action="store_true", help="leave out descriptions")
    parser.add_argument(
        "--python",
        action="store_true",
        help="write typed classes (classes.py), the source of such definitions",
    )
    parser.add_argument(
        "--kubernetes",
        default=RELEASE,
        metavar="RELEASE",
        help=f"check the result as this release would (default {RELEASE})",
    )
    add_output_arguments(parser, otherwise="without it, standard output")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only errors")
