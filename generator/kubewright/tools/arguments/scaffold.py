"""The options of ``kubewright scaffold``."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLES = r"""
kubewright scaffold group shop --domain example.com
kubewright scaffold kind Widget --version v1alpha1 --output shop
"""


SCOPES = ("Namespaced", "Cluster")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    things = parser.add_subparsers(
        dest="thing", metavar="group|kind|version|controller|webhook", required=True
    )
    group = things.add_parser("group", help="create the folder of an API group")
    group.add_argument("name", nargs="?", help="first label of the group")
    group.add_argument("--domain", help="the rest of the group, such as example.com")
    group.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder to create (default: NAME)")
    kind = things.add_parser("kind", help="add a kind to a group's folder")
    kind.add_argument("kind", nargs="?", metavar="KIND", help="CamelCase, such as Widget")
    kind.add_argument("--group", help="such as shop.example.com (default: that of the folder)")
    kind.add_argument("--version", help="such as v1alpha1")
    kind.add_argument("--plural", help="plural name (default: the English plural)")
    kind.add_argument("--short-name", help="short name for kubectl (default: none)")
    kind.add_argument("--scope", choices=SCOPES, help=f"default: {SCOPES[0]}")
    kind.add_argument(
        "--column", action="append", metavar="NAME=PATH",
        help="a column for `kubectl get`; may be repeated (default: Mode=.spec.mode)",
    )  # fmt: skip
    version = things.add_parser("version", help="add a version to a kind, as a copy of its newest one")
    version.add_argument("version", nargs="?", metavar="VERSION", help="such as v1beta1")
    version.add_argument("--kind", help="kind of the CRD in DIR/crds")
    version.add_argument("--group", default="", help="needed if several groups have the kind")
    version.add_argument(
        "--storage",
        action=argparse.BooleanOptionalAction,
        help="make it the storage version (default: keep the current one)",
    )
    controller = things.add_parser(
        "controller", help="add a controller: program, tests, role, Dockerfile and manifests"
    )
    controller.add_argument("kind", nargs="?", metavar="KIND", help="kind of the CRD in DIR/crds")
    controller.add_argument("--group", default="", help="needed if several groups have the kind")
    controller.add_argument("--version", help="version the controller uses (default: the storage version)")
    controller.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=Path(), help="the group's folder (default: .)"
    )
    webhook = things.add_parser(
        "webhook",
        help="add the group's webhook (conversion, defaults, validation): Dockerfile, certificate, manifests",
    )
    webhook.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=Path(), help="the group's folder (default: .)"
    )
    for parser_of in (kind, version):
        parser_of.add_argument(
            "--release", metavar="X.Y", help="release that introduces it (default: from lifecycle.yaml)"
        )
        parser_of.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="DIR",
            default=Path(),
            help="the group's folder (default: .)",
        )
