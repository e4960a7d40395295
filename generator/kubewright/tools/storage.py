"""``kubewright storage``: the database of ``kubewright serve`` checked, backed up and restored."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.maintenance import Report, back_up, check, repair, restore

EXAMPLES = r"""
kubewright storage check kubewright.db
kubewright storage backup kubewright.db saved.db
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    checks = actions.add_parser("check", help="read every record and its checksum; a server may be running")
    checks.add_argument("file", type=Path, metavar="FILE", help="the database")
    checks.add_argument(
        "--repair",
        action="store_true",
        help="drop what is damaged, give up what was lost; no server may be running",
    )
    backs = actions.add_parser("backup", help="copy a database while its server goes on")
    backs.add_argument("file", type=Path, metavar="FILE", help="the database")
    backs.add_argument("target", type=Path, metavar="BACKUP", help="the copy; replaced where it is there")
    restores = actions.add_parser("restore", help="put a backup in place; clients list again")
    restores.add_argument("backup", type=Path, metavar="BACKUP", help="the copy")
    restores.add_argument("file", type=Path, metavar="FILE", help="the database")
    restores.add_argument("--replace", action="store_true", help="keep the present database as FILE.replaced")


def run(options: argparse.Namespace) -> int:
    """Returns 0 for a good database, 1 for one with faults or one that is refused."""
    try:
        if options.action == "check":
            return _check(options)
        if options.action == "backup":
            newest = back_up(options.file, options.target)
            print(f"{options.target}: the state at revision {newest}")
        else:
            revision = restore(options.backup, options.file, replace=options.replace)
            print(f"{options.file}: restored; revisions go on from {revision}, and every watch starts again")
    except StorageFileError as fault:
        print(f"kubewright storage {options.action}: error: {fault}", file=sys.stderr)
        return 1
    return 0


def _check(options: argparse.Namespace) -> int:
    report = repair(options.file) if options.repair else check(options.file)
    objects = sum(report.objects.values())
    print(f"{options.file}: revision {report.newest}, compacted {report.compacted}, {objects} objects")
    for line in _faults(report):
        print(line)
    if report.good:
        print("no faults")
        return 0
    if options.repair:
        print("repaired: what is named above is given up, and every watch starts again")
        return 0
    return 1


def _faults(report: Report) -> list[str]:
    lines = [f"fault: {fault}" for fault in report.faults]
    lines += [f"damaged: {key} at revision {revision}" for key, revision in report.damaged]
    if report.lost[1]:
        lines.append(
            f"lost: revisions {report.lost[0]} to {report.lost[1]} were acknowledged and are not there"
        )
    return lines
