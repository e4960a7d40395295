"""The options of ``kubewright scaffold``."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLES = r"""
kubewright scaffold group shop --domain example.com
kubewright scaffold kind Widget --version v1alpha1 --output shop
kubewright scaffold rename spec.mode spec.state --kind Widget
kubewright scaffold retire v1alpha1 --kind Widget
"""


SCOPES = ("Namespaced", "Cluster")


THINGS = "WHAT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    things = parser.add_subparsers(dest="thing", metavar=THINGS, required=True)
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
    _add_kind(version)
    version.add_argument(
        "--storage",
        action=argparse.BooleanOptionalAction,
        help="make it the storage version, even if it exists already (default: keep the current one)",
    )
    version.add_argument(
        "--hub",
        action="store_true",
        help="make an existing version the hub of the conversions",
    )
    changes = _add_changes(things)
    controller = things.add_parser(
        "controller", help="add a controller: program, tests, role, Dockerfile and manifests"
    )
    controller.add_argument("kind", nargs="?", metavar="KIND", help="kind of the CRD in DIR/crds")
    controller.add_argument("--group", default="", help="needed if several groups have the kind")
    controller.add_argument("--version", help="version the controller uses (default: the storage version)")
    webhook = things.add_parser(
        "webhook",
        help="add the group's webhook (conversion, defaults, validation): Dockerfile, certificate, manifests",
    )
    for parser_of in (kind, version, *changes[2:]):
        parser_of.add_argument(
            "--release", metavar="X.Y", help="release in which it happens (default: from lifecycle.yaml)"
        )
    for parser_of in (kind, version, *changes, controller, webhook):
        parser_of.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="DIR",
            default=Path(),
            help="the group's folder (default: .)",
        )


def _add_kind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", help="kind of the CRD in DIR/crds")
    parser.add_argument("--group", default="", help="needed if several groups have the kind")


def _add_changes(
    things: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Adds what changes an existing kind: rename, split, move and retire."""
    rename = things.add_parser(
        "rename", help="rename a field of the newest version, with conversions and sample"
    )
    split = things.add_parser(
        "split", help="split a string field of the newest version, with conversions and sample"
    )
    for parser, second, text in (
        (rename, "name", "its new path, such as spec.state"),
        (split, "part", "a path for each part, such as spec.host spec.port"),
    ):
        parser.add_argument("field", metavar="PATH", help="such as spec.mode, or spec.stores[*].address")
        parser.add_argument(
            second, nargs="+" if second == "part" else None, metavar=second.upper(), help=text
        )
        _add_kind(parser)
        parser.add_argument("--version", help="the version to change (default: the newest)")
    split.add_argument("--separator", metavar="TEXT", help="the text between the parts, such as ':'")
    move = things.add_parser("move", help="move a kind to another group or name")
    move.add_argument("kind", nargs="?", metavar="KIND", help="kind of the CRD in DIR/crds")
    move.add_argument("--group", default="", help="needed if several groups have the kind")
    move.add_argument("--to-group", metavar="GROUP", help="such as platform.example.com")
    move.add_argument("--to-kind", metavar="KIND", help="its name there (default: the same)")
    move.add_argument("--to-plural", metavar="PLURAL", help="default: the same, or by the rules of English")
    retire = things.add_parser("retire", help="remove a version or, without VERSION, a whole kind")
    retire.add_argument("version", nargs="?", metavar="VERSION", help="such as v1alpha1")
    _add_kind(retire)
    retire.add_argument("--deprecate", action="store_true", help="only mark it as deprecated")
    return [rename, split, move, retire]
