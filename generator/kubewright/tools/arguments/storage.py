"""The options of ``kubewright storage``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import (
    add_storage_arguments,
)

EXAMPLES = r"""
kubewright storage check kubewright.db
kubewright storage backup kubewright.db saved.db
kubewright storage copy sqlite:///kubewright.db etcd://127.0.0.1:2379
kubewright storage check etcd-snapshot:///backup.db
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    checks = actions.add_parser(
        "check", help="read every record and verify its checksum; safe while a server runs"
    )
    checks.add_argument("file", metavar="FILE|URL", help="the database, or etcd://…, etcd-snapshot:///…")
    checks.add_argument(
        "--repair",
        action="store_true",
        help="drop damaged records; SQLite only, and no server may be running",
    )
    add_storage_arguments(checks)
    backs = actions.add_parser("backup", help="copy a database; safe while a server runs")
    backs.add_argument("file", type=Path, metavar="FILE", help="the database")
    backs.add_argument("target", type=Path, metavar="BACKUP", help="the copy; overwritten if it exists")
    snapshots = actions.add_parser("snapshot", help="save a snapshot of etcd, as etcdctl does")
    snapshots.add_argument("url", metavar="URL", help="etcd://HOST:PORT")
    snapshots.add_argument("target", type=Path, metavar="FILE", help="the snapshot; overwritten if it exists")
    add_storage_arguments(snapshots)
    restores = actions.add_parser("restore", help="restore a backup; clients will relist")
    restores.add_argument("backup", type=Path, metavar="BACKUP", help="a backup, or a snapshot of etcd")
    restores.add_argument("file", metavar="FILE|URL", help="the database, or an empty etcd://")
    restores.add_argument(
        "--replace", action="store_true", help="replace the database; the old one is kept as FILE.replaced"
    )
    add_storage_arguments(restores)
    copies = actions.add_parser("copy", help="copy all objects to another storage; run it again to resume")
    copies.add_argument("source", metavar="SOURCE", help="sqlite:///FILE, etcd://… or etcd-snapshot:///FILE")
    copies.add_argument(
        "target", metavar="TARGET", help="sqlite:///FILE or etcd://…, without other objects in it"
    )
    add_storage_arguments(copies)
    encrypts = actions.add_parser(
        "encrypt", help="rewrite all objects with the first key of the configuration"
    )
    encrypts.add_argument("url", metavar="URL", help="sqlite:///FILE or etcd://…")
    add_storage_arguments(encrypts)
