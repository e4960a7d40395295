"""What storages need besides their URL, from the options of a command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from apimachinery.http.flows import on_behalf_of
from apimachinery.server.catalog.options import ApiOptions, OptionError
from apimachinery.storage.kept import KeepOptions
from apimachinery.storage.url import StorageOptions, is_etcd, is_snapshot, storage_path
from apimachinery.wire import yaml
from apimachinery.wire.json import DecodeFault
from kubewright.tools.serve.remote import duration

if TYPE_CHECKING:
    from apimachinery.storage.encryption.configuration import Encryption


def storage_options(options: argparse.Namespace, api_options: ApiOptions) -> StorageOptions:
    """What ``--storage``, ``--read-only``, ``--etcd-*`` and ``--encryption-provider-config`` say. Raises ValueError,
    OSError."""
    url = options.storage
    foreign = None
    if is_etcd(url) or is_snapshot(url):
        from apimachinery.server.read.foreign import ForeignObjects

        foreign = ForeignObjects(api_options).read
    path = options.encryption_provider_config
    return StorageOptions(
        options.etcd_cafile,
        options.etcd_certfile,
        options.etcd_keyfile,
        options.read_only,
        read_encryption(path) if path is not None else None,
        foreign,
        _kept_versions(options),
    )


def _kept_versions(options: argparse.Namespace) -> KeepOptions | None:
    """``--keep-history`` and ``--keep-history-size``. Raises OptionError."""
    text = getattr(options, "keep_history", "")
    if not text:
        return None
    if storage_path(options.storage) is None:
        raise OptionError(
            f"--keep-history: {options.storage} keeps no versions; give --storage sqlite:///PATH, or --audit-log-path "
            "and read that log with kubewright history --audit"
        )
    seconds = duration(text)
    if seconds <= 0 or options.keep_history_size <= 0:
        raise OptionError(f"--keep-history {text}: give a time and a size of more than nothing, such as 24h")
    return KeepOptions(seconds, options.keep_history_size << 20, on_behalf_of.get)


def read_encryption(path: Path) -> Encryption:
    """The encryption that a file asks for. Raises ValueError, which names the file and the place in it, and OSError."""
    from apimachinery.storage.encryption.configuration import ConfigurationError, read_configuration

    try:
        return read_configuration(yaml.decode(path.read_bytes()))
    except (ConfigurationError, DecodeFault) as fault:
        raise ValueError(f"--encryption-provider-config {path}: {fault}") from None
