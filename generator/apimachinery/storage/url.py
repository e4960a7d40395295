"""Storage by URL: ``memory://``, ``sqlite:///relative/path``, ``sqlite:////absolute/path``, ``etcd://HOST:PORT,…`` and
``etcd-snapshot:///FILE``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from apimachinery.storage.interface import Storage
from apimachinery.storage.kept import KeepOptions
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.sealing import Sealing

ETCD_SCHEMES = ("etcd", "etcds")
SNAPSHOT_SCHEME = "etcd-snapshot"


class StorageUrlError(ValueError):
    """A URL that names no storage; the text says which ones do."""


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """What a storage needs besides its URL.

    ``etcd_ca``, ``etcd_cert`` and ``etcd_key`` are files: who signed etcd's certificates, and our own for etcd.
    ``sealing`` encrypts what is stored. ``foreign`` makes of a key and of bytes that a kube-apiserver stored the JSON
    that is stored here; it raises ValueError. ``keep`` keeps versions beyond compaction, in SQLite alone.
    """

    etcd_ca: Path | None = None
    etcd_cert: Path | None = None
    etcd_key: Path | None = None
    read_only: bool = False
    sealing: Sealing | None = None
    foreign: Callable[[str, bytes], bytes] | None = None
    keep: KeepOptions | None = None


PLAIN = StorageOptions()


def is_etcd(url: str) -> bool:
    """Whether a URL is one of etcd."""
    return url.partition("://")[0] in ETCD_SCHEMES


def is_snapshot(url: str) -> bool:
    """Whether a URL is one of a snapshot."""
    return url.partition("://")[0] == SNAPSHOT_SCHEME


def storage_path(url: str) -> Path | None:
    """The database of a storage, None for one in memory or elsewhere. Raises StorageUrlError."""
    if url in ("memory://", "memory:"):
        return None
    if is_etcd(url) or is_snapshot(url):
        from apimachinery.storage.etcd.options import parse_etcd_url, parse_snapshot_url

        try:
            parse_etcd_url(url) if is_etcd(url) else parse_snapshot_url(url)
        except ValueError as fault:
            raise StorageUrlError(str(fault)) from None
        return None
    scheme, found, rest = url.partition(":///")
    if scheme != "sqlite" or not found or not rest or rest == "/":
        raise StorageUrlError(
            f"{url!r} is no storage; use memory://, sqlite:///relative/path, sqlite:////absolute/path, "
            "etcd://HOST:PORT,HOST:PORT or etcd-snapshot:///FILE"
        )
    return Path(rest)


async def open_storage(url: str, options: StorageOptions = PLAIN) -> Storage:
    """Opens a storage. Raises StorageUrlError, and what the driver raises for a file or a server that it cannot use."""
    path = storage_path(url)
    if options.keep is not None and path is None:
        raise StorageUrlError(f"{url!r} keeps no versions; sqlite:///PATH does")
    if is_etcd(url) or is_snapshot(url):
        return await _open_etcd(url, options)
    if options.read_only:
        raise StorageUrlError(f"{url!r} cannot be opened to be read alone; etcd:// and etcd-snapshot:// can")
    if path is None:
        return MemoryStorage()
    from apimachinery.storage.sqlite import SqliteStorage

    return await SqliteStorage.open(path, options.sealing, options.keep)


async def _open_etcd(url: str, options: StorageOptions) -> Storage:
    from apimachinery.storage.etcd.options import parse_etcd_url, parse_snapshot_url

    try:
        from apimachinery.storage.etcd.driver import EtcdStorage
        from apimachinery.storage.etcd.snapshot import SnapshotStorage
        from apimachinery.storage.etcd.values import EtcdValues
    except ImportError as fault:
        raise StorageUrlError(
            f"{url!r} needs the etcd extra: pip install 'kubewright[etcd]' ({fault})"
        ) from None
    values = EtcdValues(options.sealing, options.foreign)
    try:
        if is_snapshot(url):
            if not options.read_only:
                raise StorageUrlError(f"{url!r} can only be read; give --read-only")
            return SnapshotStorage(*parse_snapshot_url(url), values)
        wanted = parse_etcd_url(
            url,
            ca_file=options.etcd_ca,
            cert_file=options.etcd_cert,
            key_file=options.etcd_key,
            read_only=options.read_only,
        )
    except ValueError as fault:
        raise StorageUrlError(str(fault)) from None
    return await EtcdStorage.open(wanted, values)
