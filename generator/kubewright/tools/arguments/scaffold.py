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
    group = things.add_parser("group", help="the folder of an API group")
    group.add_argument("name", nargs="?", help="first label of the group")
    group.add_argument("--domain", help="the rest of the group, such as example.com")
    group.add_argument("-o", "--output", type=Path, metavar="DIR", help="the folder to make (default: NAME)")
    kind = things.add_parser("kind", help="a kind in the folder of a group")
    kind.add_argument("kind", nargs="?", metavar="KIND", help="CamelCase, such as Widget")
    kind.add_argument("--group", help="such as shop.example.com (default: that of the folder)")
    kind.add_argument("--version", help="such as v1alpha1")
    kind.add_argument("--plural", help="default: by the rules of English")
    kind.add_argument("--short-name", help="what kubectl takes for it too (default: none)")
    kind.add_argument("--scope", choices=SCOPES, help=f"default: {SCOPES[0]}")
    kind.add_argument(
        "--column", action="append", metavar="NAME=PATH",
        help="a column of `kubectl get` between Ready and Age; repeatable (default: Mode=.spec.mode)",
    )  # fmt: skip
    version = things.add_parser("version", help="a further version of a kind: a copy of the newest one")
    version.add_argument("version", nargs="?", metavar="VERSION", help="such as v1beta1")
    version.add_argument("--kind", help="kind of the CRD in DIR/crds")
    version.add_argument("--group", default="", help="where several groups have the kind")
    version.add_argument(
        "--storage",
        action=argparse.BooleanOptionalAction,
        help="make it the storage version (default: the stored one stays)",
    )
    controller = things.add_parser(
        "controller", help="a controller of a kind: program, tests, role, image and manifests"
    )
    controller.add_argument("kind", nargs="?", metavar="KIND", help="kind of the CRD in DIR/crds")
    controller.add_argument("--group", default="", help="where several groups have the kind")
    controller.add_argument("--version", help="the version it works with (default: the stored one)")
    controller.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=Path(), help="folder of the group (default: .)"
    )
    webhook = things.add_parser(
        "webhook",
        help="the group's webhook (conversion, defaults, validation): image, certificate and manifests",
    )
    webhook.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=Path(), help="folder of the group (default: .)"
    )
    for parser_of in (kind, version):
        parser_of.add_argument(
            "--release", metavar="X.Y", help="the release it comes with (default: by lifecycle.yaml)"
        )
        parser_of.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="DIR",
            default=Path(),
            help="folder of the group (default: .)",
        )
