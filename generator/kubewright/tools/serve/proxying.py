"""The options of ``kubewright serve`` for requests that it hands on: to servers of APIServices, and to the addresses
that services, pods and nodes name. Names are kube-apiserver's where it has the option.

Without ``--proxy-client-cert-file`` the server makes a certificate for itself, kept with its other certificates, and
publishes its authority, so that aggregated servers can believe it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from apimachinery.server.catalog.options import OptionError
from apimachinery.server.network.networks import parse_network
from apimachinery.server.network.proxy_identity import ProxyIdentity
from apimachinery.server.network.services import Address
from kubewright.tools.serve.files import write_private

CLIENT = "front-proxy-client"
_PUBLISHED = {
    "requestheader-username-headers": ["X-Remote-User"],
    "requestheader-uid-headers": ["X-Remote-Uid"],
    "requestheader-group-headers": ["X-Remote-Group"],
    "requestheader-extra-headers-prefix": ["X-Remote-Extra-"],
    "requestheader-allowed-names": [CLIENT],
}


def allowed_networks(options: argparse.Namespace) -> tuple[str, ...]:
    """The networks of ``--proxy-allow-network``. Raises OptionError."""
    if options.proxy_allow_network and options.anonymous_admin:
        raise OptionError(
            "--proxy-allow-network and --anonymous-admin exclude each other: a page that a pod serves would be the "
            "administrator's here"
        )
    for text in options.proxy_allow_network:
        try:
            parse_network(text)
        except ValueError as fault:
            raise OptionError(f"--proxy-allow-network: {fault}") from None
    return tuple(options.proxy_allow_network)


def given_services(options: argparse.Namespace) -> dict[tuple[str, str], Address]:
    """The addresses of ``--resolve-service``. Raises OptionError."""
    found = {}
    for text in options.resolve_service:
        service, is_given, place = text.partition("=")
        namespace, has_name, name = service.partition("/")
        host, _, port = place.rpartition(":")
        if not (is_given and has_name and namespace and name and host and port.isdecimal()):
            raise OptionError(f"--resolve-service: {text!r} is not NAMESPACE/NAME=HOST:PORT")
        found[namespace, name] = Address(host.strip("[]"), int(port))
    return found


def proxy_identity(options: argparse.Namespace, folder: Path) -> ProxyIdentity:
    """What the server shows to aggregated servers, made in ``folder`` where it is not given. Raises OptionError,
    OSError."""
    certificate, key = options.proxy_client_cert_file, options.proxy_client_key_file
    if bool(certificate) != bool(key):
        raise OptionError("--proxy-client-cert-file and --proxy-client-key-file go together")
    published = {key: json.dumps(value) for key, value in _PUBLISHED.items()}
    given = options.requestheader_client_ca_file
    authorities = given.read_text() if given else ""
    if certificate:
        for path in (certificate, key):
            path.read_bytes()
        if not given:
            # Nothing tells by which authority aggregated servers should know the certificate.
            return ProxyIdentity((certificate, key), _clients(options))
        allowed = [name.strip() for name in options.requestheader_allowed_names.split(",") if name.strip()]
    else:
        certificate, key, made = made_client(folder)
        authorities += made
        names = [name.strip() for name in options.requestheader_allowed_names.split(",") if name.strip()]
        allowed = [] if given and not names else [*names, CLIENT]
    published["requestheader-allowed-names"] = json.dumps(allowed)
    return ProxyIdentity(
        (certificate, key),
        {"requestheader-client-ca-file": authorities, **published, **_clients(options)},
    )


def _clients(options: argparse.Namespace) -> dict[str, str]:
    path = options.client_ca_file
    return {"client-ca-file": path.read_text()} if path else {}


def made_identity(folder: Path) -> ProxyIdentity:
    """An identity that needs no options: a certificate that is made in ``folder``, and its authority published."""
    certificate, key, authority = made_client(folder)
    published = {key: json.dumps(value) for key, value in _PUBLISHED.items()}
    return ProxyIdentity((certificate, key), {"requestheader-client-ca-file": authority, **published})


def made_client(folder: Path) -> tuple[Path, Path, str]:
    """A client certificate of an authority that is kept in ``folder``: its file, that of its key, and the authority.
    The certificate is made at each start, so it never runs out. Raises OSError, AuthorityError."""
    from apimachinery.access.certificates import issue_client, made_authority, read_signing_authority

    certificate, key = folder / "front-proxy-ca.crt", folder / "front-proxy-ca.key"
    if not (certificate.exists() and key.exists()):
        made = made_authority("kubewright-front-proxy-ca")
        write_private(key, made.key_pem)
        write_private(certificate, made.pem)
    authority = read_signing_authority(certificate, key)
    issued = issue_client(authority, CLIENT)
    files = folder / "front-proxy-client.crt", folder / "front-proxy-client.key"
    write_private(files[0], issued.certificate)
    write_private(files[1], issued.key)
    return *files, authority.pem.decode()
