"""Storage by URL: ``memory://``, ``sqlite:///relative/path``, ``sqlite:////absolute/path``, ``etcd://HOST:PORT,…``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from apimachinery.storage.interface import Storage
from apimachinery.storage.memory import MemoryStorage

ETCD_SCHEMES = ("etcd", "etcds")


class StorageUrlError(ValueError):
    """A URL that names no storage; the text says which ones do."""


@dataclass(frozen=True, slots=True)
class StorageFiles:
    """Files that a storage needs next to its URL: who signed etcd's certificates, and our own for etcd."""

    etcd_ca: Path | None = None
    etcd_cert: Path | None = None
    etcd_key: Path | None = None


NO_FILES = StorageFiles()


def is_etcd(url: str) -> bool:
    """Whether a URL is one of etcd."""
    return url.partition("://")[0] in ETCD_SCHEMES


def storage_path(url: str) -> Path | None:
    """The file of a storage, None for one in memory or elsewhere. Raises StorageUrlError."""
    if url in ("memory://", "memory:"):
        return None
    if is_etcd(url):
        from apimachinery.storage.etcd.options import parse_etcd_url

        try:
            parse_etcd_url(url)
        except ValueError as fault:
            raise StorageUrlError(str(fault)) from None
        return None
    scheme, found, rest = url.partition(":///")
    if scheme != "sqlite" or not found or not rest or rest == "/":
        raise StorageUrlError(
            f"{url!r} is no storage; use memory://, sqlite:///relative/path, sqlite:////absolute/path or "
            "etcd://HOST:PORT,HOST:PORT"
        )
    return Path(rest)


async def open_storage(url: str, files: StorageFiles = NO_FILES) -> Storage:
    """Opens a storage. Raises StorageUrlError, and what the driver raises for a file or a server that it cannot use."""
    path = storage_path(url)
    if is_etcd(url):
        return await _open_etcd(url, files)
    if path is None:
        return MemoryStorage()
    from apimachinery.storage.sqlite import SqliteStorage

    return await SqliteStorage.open(path)


async def _open_etcd(url: str, files: StorageFiles) -> Storage:
    from apimachinery.storage.etcd.options import parse_etcd_url

    try:
        from apimachinery.storage.etcd.driver import EtcdStorage
    except ImportError as fault:
        raise StorageUrlError(
            f"{url!r} needs the etcd extra: pip install 'kubewright[etcd]' ({fault})"
        ) from None
    try:
        options = parse_etcd_url(
            url, ca_file=files.etcd_ca, cert_file=files.etcd_cert, key_file=files.etcd_key
        )
    except ValueError as fault:
        raise StorageUrlError(str(fault)) from None
    return await EtcdStorage.open(options)
