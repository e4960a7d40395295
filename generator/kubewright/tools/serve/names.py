"""What kube-apiserver's names for serve's options come to."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from urllib.parse import urlsplit

from apimachinery.kinds import gates
from apimachinery.server.catalog.options import OptionError
from apimachinery.storage.url import is_etcd
from kubewright.tools.arguments.serve import STORAGE
from kubewright.tools.arguments.serve_names import BOOLS, TAKEN

OVERRIDES = "--etcd-servers-overrides"
_ALL = {"AllAlpha": True, "AllBeta": None}
"""Gates that stand for many → the value that changes what this server does; None for both."""


def settle(options: argparse.Namespace) -> None:
    """Gives serve's own options the values that were given under kube-apiserver's names. Raises OptionError."""
    # --emulated-version of kube-apiserver may name the component.
    options.emulated_version = options.emulated_version.removeprefix("kube=")
    if options.etcd_servers:
        if options.storage != STORAGE:
            raise OptionError("--storage and --etcd-servers exclude each other")
        options.storage = etcd_url(options.etcd_servers, options.etcd_prefix)
    if OVERRIDES in options.taken and is_etcd(options.storage):
        # What another etcd has of these kinds would not be served.
        raise OptionError(f"{OVERRIDES} is not here with a storage in etcd: it has the objects of all kinds")
    if options.admission_control:
        _admit_by(options)
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        raise OptionError("--tls-cert-file and --tls-private-key-file go together")
    if options.tls_cert_file:
        if options.tls:
            raise OptionError("--tls and --tls-cert-file exclude each other")
        options.tls = f"{options.tls_cert_file},{options.tls_private_key_file}"


def _admit_by(options: argparse.Namespace) -> None:
    """Gives the options of admission plugins what ``--admission-control`` says: these and no others."""
    from apimachinery.server.admission.plugins import PLUGINS

    if options.enable_admission_plugins or options.disable_admission_plugins:
        raise OptionError(
            "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
        )
    names = {name.strip() for name in options.admission_control.split(",")}
    options.enable_admission_plugins = [options.admission_control]
    options.disable_admission_plugins = [plugin.name for plugin in PLUGINS if plugin.name not in names]


def etcd_url(servers: str, prefix: str) -> str:
    """The storage URL of ``--etcd-servers`` and ``--etcd-prefix``. Raises OptionError."""
    places, schemes = [], set()
    for text in servers.split(","):
        url = urlsplit(text.strip())
        if url.scheme not in ("http", "https") or not url.netloc or url.path.strip("/"):
            raise OptionError(f"--etcd-servers: {text!r} is not http://HOST:PORT or https://HOST:PORT")
        places.append(url.netloc)
        schemes.add(url.scheme)
    if len(schemes) > 1:
        raise OptionError(f"--etcd-servers: {servers} mixes http and https")
    scheme = "etcds" if "https" in schemes else "etcd"
    return f"{scheme}://{','.join(places)}" + (f"?prefix={prefix}" if prefix else "")


def said(options: argparse.Namespace) -> Iterator[str]:
    """What is said of options that were given and do nothing. Raises OptionError for gates that cannot be."""
    reasons: dict[str, list[str]] = {}
    for name in dict.fromkeys(options.taken):
        reasons.setdefault(TAKEN[name], []).append(name)
    for reason, names in reasons.items():
        yield f"{', '.join(names)}: taken, without effect: {reason}"
    release = options.emulated_version
    if kept := [name for name, on in _gates(options.feature_gates) if not _check_gate(name, on, release)]:
        yield f"--feature-gates {', '.join(kept)}: taken, without effect: nothing here depends on them"


def _gates(given: list[str]) -> Iterator[tuple[str, bool]]:
    for pair in (part.strip() for text in given for part in text.split(",")):
        if not pair:
            continue
        # kube:NAME=BOOL names the component too
        name, found, value = pair.rpartition(":")[2].partition("=")
        if not found:
            raise OptionError(f"--feature-gates: missing bool value for {name}")
        if value not in BOOLS:
            raise OptionError(f"--feature-gates: invalid value of {name}: {value}, it is true or false")
        yield name, BOOLS[value]


def _check_gate(name: str, on: bool, release: str) -> bool:
    """Whether the server does something by the gate, as it is asked to. Raises OptionError where it does otherwise."""
    if name in _ALL:
        if _ALL[name] in (None, on):
            raise OptionError(f"--feature-gates: {name} cannot be set here; name the gates that you need")
        return True
    try:
        enabled = gates.enabled(name, release)
    except KeyError:
        return False
    if enabled != on:
        raise OptionError(
            f"--feature-gates: {name} is {str(enabled).lower()} in {release}, as here, and cannot be changed"
        )
    return True
