"""``kubewright storage``: what ``kubewright serve`` keeps, checked, saved, restored, copied and encrypted again."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apimachinery.server.catalog.options import ApiOptions
from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.interface import Storage, StorageError
from apimachinery.storage.maintenance import Report, back_up, begin_past, check, repair, restore
from apimachinery.storage.moving import check_objects, copy_objects, rewrite_objects
from apimachinery.storage.url import (
    StorageUrlError,
    is_etcd,
    is_snapshot,
    open_storage,
    storage_path,
)
from kubewright.diagnostics import printable
from kubewright.tools.inputs.storages import storage_options

_TELL_EVERY = 1000


def run(options: argparse.Namespace) -> int:
    """Returns 0 for a good storage, 1 for one with faults or one that is refused."""
    try:
        return _ACTIONS[options.action](options)
    except (StorageError, StorageUrlError, ValueError, OSError) as fault:
        print(printable(f"kubewright storage {options.action}: error: {fault}"), file=sys.stderr)
        return 1


def _is_url(text: str) -> bool:
    return "://" in text


def _check(options: argparse.Namespace) -> int:
    if _is_url(options.file) and storage_path(options.file) is None:
        if options.repair:
            raise StorageUrlError(f"{options.file}: --repair is for a database of this program")
        return asyncio.run(_check_objects(options))
    path = _path(options.file)
    report = repair(path) if options.repair else check(path)
    objects = sum(report.objects.values())
    print(f"{path}: revision {report.newest}, compacted {report.compacted}, {objects} objects")
    for line in _faults(report):
        print(printable(line))
    if report.good:
        print("no faults")
        return 0
    if options.repair:
        if report.faults:
            print("repaired: the index was rebuilt from the records")
        if report.damaged or report.lost[1]:
            print("repaired: damaged records were dropped")
        print("clients will list again")
        return 0
    return 1


async def _check_objects(options: argparse.Namespace) -> int:
    storage = await _open(options.file, options, read_only=True)
    try:
        found = await check_objects(storage)
    finally:
        await storage.close()
    unread: dict[bytes, str] = getattr(storage, "unread", {})
    print(f"{options.file}: revision {found.revision}, {sum(found.objects.values()) + len(unread)} objects")
    for resource, number in sorted(found.objects.items()):
        print(f"{number:8} {printable(resource[1:])}")
    for key, reason in sorted(unread.items()):
        print(printable(f"unread: {key.decode('utf-8', 'replace')}: {reason}"))
    for fault in found.faults:
        print(printable(f"fault: {fault}"))
    if unread or found.faults:
        return 1
    print("no faults")
    return 0


def _backup(options: argparse.Namespace) -> int:
    newest = back_up(options.file, options.target)
    print(f"{options.target}: the state at revision {newest}")
    return 0


def _snapshot(options: argparse.Namespace) -> int:
    if not is_etcd(options.url):
        raise StorageUrlError(f"{options.url!r} is no etcd; 'kubewright storage backup' saves a database")
    size = asyncio.run(_save(options))
    print(
        f"{options.target}: {size} bytes; 'kubewright serve --read-only --storage etcd-snapshot:///…' shows it"
    )
    return 0


async def _save(options: argparse.Namespace) -> int:
    storage: Any = await _open(options.url, options, read_only=True)
    part = options.target.with_name(f".{options.target.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            size: int = await storage.save(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(options.target)
        return size
    finally:
        part.unlink(missing_ok=True)
        await storage.close()


def _restore(options: argparse.Namespace) -> int:
    if _is_url(options.file) and storage_path(options.file) is None:
        path = options.backup
        options.source = f"etcd-snapshot:///{path}"
        options.target = options.file
        return _copy(options)
    path = _path(options.file)
    revision = restore(options.backup, path, replace=options.replace)
    print(f"{path}: restored; revisions continue from {revision}, and clients will list again")
    return 0


def _copy(options: argparse.Namespace) -> int:
    if is_snapshot(options.target):
        raise StorageUrlError(f"{options.target!r} can only be read")
    path = storage_path(options.target)
    if path is None and not is_etcd(options.target):
        raise StorageUrlError(
            f"{options.target!r} is lost when this command ends; copy into a database or an etcd"
        )
    copied = asyncio.run(_copy_objects(options))
    if path is not None:
        begin_past(path, copied.source)
    print(f"{options.target}: {copied.written} objects written, {copied.present} already there")
    if path is None and not copied.broken:
        print(
            f"the target is at revision {copied.target}, and clients know {copied.source} of the source: restart them, "
            "or they wait for revisions to come"
        )
    else:
        print("clients will list again: earlier revisions are answered with 410")
    return 0


async def _copy_objects(options: argparse.Namespace) -> Any:
    source = await _open(options.source, options, read_only=not storage_path(options.source))
    try:
        target: Any = await _open(options.target, options)
        try:
            return await copy_objects(
                source, target, _progress("copied"), target.make_event if is_etcd(options.target) else None
            )
        finally:
            await target.close()
    finally:
        await source.close()


def _encrypt(options: argparse.Namespace) -> int:
    if options.encryption_provider_config is None:
        raise StorageUrlError(
            "--encryption-provider-config says with which key; an identity provider decrypts"
        )
    number = asyncio.run(_rewrite(options))
    print(f"{options.url}: {number} objects written again")
    return 0


async def _rewrite(options: argparse.Namespace) -> int:
    storage = await _open(options.url, options)
    try:
        sealing: Any = _options_of(options.url, options).sealing
        return await rewrite_objects(storage, sealing.names, _progress("written"))
    finally:
        await storage.close()


def _options_of(url: str, options: argparse.Namespace, *, read_only: bool = False) -> Any:
    return storage_options(
        argparse.Namespace(**{**vars(options), "storage": url, "read_only": read_only}), ApiOptions()
    )


async def _open(url: str, options: argparse.Namespace, *, read_only: bool = False) -> Storage:
    return await open_storage(url, _options_of(url, options, read_only=read_only))


def _path(text: str) -> Path:
    path = storage_path(text) if _is_url(text) else Path(text)
    if path is None:
        raise StorageFileError(f"{text} is no file")
    return path


def _progress(done: str) -> Callable[[int, int], None]:
    def tell(number: int, of: int) -> None:
        if number % _TELL_EVERY == 0:
            print(f"{done} {number} of {of}", file=sys.stderr)

    return tell


def _faults(report: Report) -> list[str]:
    lines = [f"fault: {fault}" for fault in report.faults]
    lines += [f"damaged: {key} at revision {revision}" for key, revision in report.damaged]
    if report.lost[1]:
        lines.append(
            f"lost: revisions {report.lost[0]} to {report.lost[1]} were acknowledged and are not there"
        )
    return lines


_ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "check": _check,
    "backup": _backup,
    "snapshot": _snapshot,
    "restore": _restore,
    "copy": _copy,
    "encrypt": _encrypt,
}
