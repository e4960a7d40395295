"""What a URL and the flags say of an etcd: ``etcd://HOST:PORT,HOST:PORT?prefix=/registry``; ``etcds://`` for TLS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

DEFAULT_PORT = 2379
DEFAULT_PREFIX = "/registry"


@dataclass(frozen=True, slots=True)
class EtcdOptions:
    """How to reach an etcd. ``endpoints`` are ``host:port``; ``prefix`` begins every key, without a last slash."""

    endpoints: tuple[str, ...]
    prefix: str = DEFAULT_PREFIX
    tls: bool = False
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    read_only: bool = False


def parse_etcd_url(
    url: str,
    *,
    ca_file: Path | None = None,
    cert_file: Path | None = None,
    key_file: Path | None = None,
    read_only: bool = False,
) -> EtcdOptions:
    """The options of a URL and of the files that flags name. Raises ValueError, which names what is wrong."""
    scheme, _, rest = url.partition("://")
    hosts, _, query = rest.partition("?")
    if scheme not in ("etcd", "etcds") or not hosts.strip("/"):
        raise ValueError(f"{url!r} names no etcd; use etcd://HOST:PORT,HOST:PORT?prefix={DEFAULT_PREFIX}")
    prefix = parse_prefix(url, query)
    if (cert_file is None) != (key_file is None):
        raise ValueError("--etcd-certfile and --etcd-keyfile go together")
    endpoints = tuple(_endpoint(host.strip(), url) for host in hosts.rstrip("/").split(","))
    tls = scheme == "etcds" or ca_file is not None or cert_file is not None
    return EtcdOptions(endpoints, prefix, tls, ca_file, cert_file, key_file, read_only)


def parse_snapshot_url(url: str) -> tuple[Path, str]:
    """The file and the prefix of ``etcd-snapshot:///RELATIVE`` or ``etcd-snapshot:////ABSOLUTE``. Raises ValueError."""
    scheme, found, rest = url.partition(":///")
    path, _, query = rest.partition("?")
    if scheme != "etcd-snapshot" or not found or not path.strip("/"):
        raise ValueError(f"{url!r} names no snapshot; use etcd-snapshot:///FILE")
    return Path(path), parse_prefix(url, query)


def parse_prefix(url: str, query: str) -> str:
    """The prefix of a URL's parameters. Raises ValueError."""
    prefix = DEFAULT_PREFIX
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name != "prefix":
            raise ValueError(f"{url!r}: unknown parameter {name!r}; prefix is the only one")
        prefix = "/" + text.strip("/")
    if prefix == "/":
        raise ValueError(f"{url!r}: the prefix is empty, so the keys of others could not be told from these")
    return prefix


def _endpoint(text: str, url: str) -> str:
    host, found, port = text.rpartition(":")
    # An IPv6 address without a port ends with its bracket.
    if not found or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    bracketed = host.startswith("[") and host.endswith("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536 or (":" in host and not bracketed):
        raise ValueError(f"{url!r}: {text!r} is no HOST:PORT")
    return f"{host}:{port}"
