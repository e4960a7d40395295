"""The options of ``kubewright serve`` that say who may do what; their names are kube-apiserver's.

Safe by default: without any of them the server makes a token of its own, which only the kubeconfig it writes (mode
0600) has, serves https with a certificate of its own, and listens on loopback. ``--anonymous-admin`` opens it to every
program of this machine. What is made is kept next to the database, so that a restart leaves clients their credentials.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from apimachinery.access.authentication import (
    ADMIN,
    ISSUER,
    KnownTokens,
    TokenKind,
    read_token_file,
)
from apimachinery.access.control import MODES, AccessOptions, MakeAuthorizer
from apimachinery.access.front_proxy import FrontProxy, ProxyHeaders
from apimachinery.http.outgoing import Outgoing
from apimachinery.server.catalog.options import OptionError
from apimachinery.server.operate.reload import Reload
from kubewright.tools.serve import remote
from kubewright.tools.serve.files import write_private

ADMIN_TOKEN = "admin-token"
SIGNING_KEY = "service-accounts.key"


@dataclass(slots=True)
class Granted:
    """What the options come to: ``token`` is the administrator's where one is known, ``authorities`` are files of those
    whose client certificates TLS accepts, ``summary`` says what is open to whom."""

    options: AccessOptions
    token: str = ""
    authorities: list[Path] = field(default_factory=list)
    summary: list[str] = field(default_factory=list)
    reloads: list[Reload] = field(default_factory=list)


def has_credentials(options: argparse.Namespace) -> bool:
    """Whether an option says by what clients prove who they are."""
    return bool(
        options.token_file
        or options.client_ca_file
        or options.authentication_config
        or options.oidc_issuer_url
        or options.authentication_token_webhook_config_file
        or options.requestheader_client_ca_file
    )


def grant(options: argparse.Namespace, folder: Path) -> Granted:
    """Reads the options; what is made is kept in ``folder``. Raises OptionError and the readers' errors, OSError."""
    granted = Granted(AccessOptions())
    parts: dict[str, Any] = {"tokens": list(_static_tokens(options, folder, granted))}
    outgoing = parts["outgoing"] = Outgoing()
    parts["more_tokens"], anonymous = remote.token_kinds(options, outgoing)
    parts["modes"] = _modes(options, outgoing)
    parts["anonymous"] = options.anonymous_auth == "true" and tuple(parts["modes"]) != ("AlwaysAllow",)
    if anonymous.enabled is not None:
        if options.anonymous_auth == "false":
            raise OptionError("--anonymous-auth and anonymous of --authentication-config exclude each other")
        parts["anonymous"], parts["anonymous_paths"] = anonymous.enabled, anonymous.paths
    parts["bootstrap_tokens"] = options.enable_bootstrap_token_auth
    parts["open_to_loopback"] = options.anonymous_admin
    parts["service_accounts"] = _service_accounts(options, folder)
    _certificates(options, folder, granted, parts)
    granted.options = AccessOptions(**parts)
    modes = ", ".join(mode if isinstance(mode, str) else "Webhook" for mode in parts["modes"])
    who = "system:anonymous" if granted.options.anonymous else "refused"
    if options.anonymous_admin:
        who = "the administrator"
    granted.summary.append(f"requests without credentials: {who}; authorization: {modes}")
    return granted


def _static_tokens(options: argparse.Namespace, folder: Path, granted: Granted) -> Iterator[TokenKind]:
    if options.token_file:
        path: Path = options.token_file
        tokens = read_token_file(path)
        granted.reloads.append(Reload("token file", (path,), lambda: tokens.take(read_token_file(path))))
        granted.token = tokens.administrator()
        granted.summary.append(f"tokens: those of {options.token_file}")
        yield tokens
    is_open = options.anonymous_admin and not has_credentials(options) and options.tls in ("", "off")
    if not granted.token and not is_open:
        # Nobody could be the administrator otherwise; and kubectl asks for a password over https without a credential.
        granted.token = kept_secret(folder / ADMIN_TOKEN)
        granted.summary.append("the administrator: by a token that only the kubeconfig has")
        yield KnownTokens({granted.token: ADMIN})


def kept_secret(path: Path) -> str:
    """The secret that a file keeps, made where there is none. Raises OSError."""
    if path.exists() and (text := path.read_text().strip()):
        return text
    made = secrets.token_urlsafe(32)
    write_private(path, made.encode())
    return made


def _modes(options: argparse.Namespace, outgoing: Outgoing) -> list[str | MakeAuthorizer]:
    if options.authorization_config:
        if options.authorization_mode:
            raise OptionError("--authorization-config and --authorization-mode exclude each other")
        return remote.configured_modes(options.authorization_config, outgoing)
    names = [name.strip() for name in options.authorization_mode.split(",") if name.strip()] or ["RBAC"]
    for name in names:
        if name not in MODES:
            raise OptionError(f"--authorization-mode: {name!r} is none; use {', '.join(MODES)}")
    if len(set(names)) != len(names):
        raise OptionError(f"--authorization-mode: {options.authorization_mode} names a mode twice")
    return [remote.webhook_mode(options, outgoing) if name == "Webhook" else name for name in names]


def _service_accounts(options: argparse.Namespace, folder: Path) -> Any:
    from apimachinery.access.keys import (
        made_key,
        private_pem,
        read_signing_key,
        read_verifying_keys,
    )
    from apimachinery.access.service_accounts import ServiceAccountKeys

    if options.service_account_signing_key_file:
        signing = read_signing_key(options.service_account_signing_key_file)
    elif (folder / SIGNING_KEY).exists():
        signing = read_signing_key(folder / SIGNING_KEY)
    else:
        signing = made_key()
        write_private(folder / SIGNING_KEY, private_pem(signing))
    more = [key for path in options.service_account_key_file for key in read_verifying_keys(path)]
    audiences = tuple(name.strip() for name in options.api_audiences.split(",") if name.strip())
    issuers = tuple(options.service_account_issuer) or (ISSUER,)
    keys_at = urlsplit(options.service_account_jwks_uri)
    if options.service_account_jwks_uri and (keys_at.scheme != "https" or not keys_at.netloc):
        raise OptionError(
            f"--service-account-jwks-uri: {options.service_account_jwks_uri!r} is no https address"
        )
    return ServiceAccountKeys(
        signing,
        tuple(more),
        issuers,
        audiences,
        max_seconds=int(options.service_account_max_token_expiration),
        jwks_uri=options.service_account_jwks_uri,
    )


def _certificates(options: argparse.Namespace, folder: Path, granted: Granted, parts: dict[str, Any]) -> None:
    from apimachinery.access.certificates import (
        ClientCertificates,
        PeerCheck,
        made_authority,
        read_signing_authority,
    )

    certificate, key = folder / "client-ca.crt", folder / "client-ca.key"
    if bool(options.cluster_signing_cert_file) != bool(options.cluster_signing_key_file):
        raise OptionError("--cluster-signing-cert-file and --cluster-signing-key-file go together")
    if options.cluster_signing_cert_file:
        parts["signing"] = read_signing_authority(
            options.cluster_signing_cert_file, options.cluster_signing_key_file
        )
    elif not options.client_ca_file:
        # Users whose certificates this server signs can use them here, without further options.
        if not (certificate.exists() and key.exists()):
            made = made_authority()
            write_private(key, made.key_pem)
            write_private(certificate, made.pem)
        parts["signing"] = read_signing_authority(certificate, key)
        granted.authorities.append(certificate)
    if options.client_ca_file:
        granted.authorities.append(options.client_ca_file)
        granted.summary.append(f"client certificates: those that {options.client_ca_file} issued")
    trusted = list(granted.authorities)
    certificates = parts["certificates"] = ClientCertificates(_authorities(trusted))
    granted.reloads.append(
        Reload("client authorities", tuple(trusted), lambda: certificates.trust(_authorities(trusted)))
    )
    if options.requestheader_client_ca_file:
        of_proxies: Path = options.requestheader_client_ca_file
        proxies = PeerCheck(_authorities([of_proxies]), _names(options.requestheader_allowed_names))
        granted.reloads.append(
            Reload("proxy authorities", (of_proxies,), lambda: proxies.trust(_authorities([of_proxies])))
        )
        headers = ProxyHeaders(
            _headers(options.requestheader_username_headers),
            _headers(options.requestheader_uid_headers),
            _headers(options.requestheader_group_headers),
            _headers(options.requestheader_extra_headers_prefix),
        )
        parts["front_proxy"] = FrontProxy(proxies, headers)
        granted.authorities.append(options.requestheader_client_ca_file)
        granted.summary.append(
            f"headers of a proxy: with certificates of {options.requestheader_client_ca_file}"
        )


def _authorities(paths: Sequence[Path]) -> list[Any]:
    from apimachinery.access.certificates import read_authorities

    return [authority for path in paths for authority in read_authorities(path)]


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _headers(text: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in _names(text))
