"""Client certificates and those between them and an authority: what is taken is what Go takes, what is not is 401 or
refused in the handshake. The verdicts are those of kube-apiserver 1.36 for the same certificates."""

from __future__ import annotations

import datetime
import http.client
import json
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apimachinery.access import certificates
from apimachinery.access.certificates import ClientCertificates, PeerCheck, SigningAuthority, name_of_request
from apimachinery.http.messages import Request
from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CLIENT, SERVER = [ExtendedKeyUsageOID.CLIENT_AUTH], [ExtendedKeyUsageOID.SERVER_AUTH]
KEY_USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


class Issued(NamedTuple):
    certificate: x509.Certificate
    key: Any


def subject(*names: str, groups: Sequence[str] = ()) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, *(x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names)])


def issue(
    name: x509.Name,
    issuer: Issued | None = None,
    *,
    ca: bool = False,
    length: int | None = None,
    usages: Sequence[x509.ObjectIdentifier] = (),
    key_usages: Sequence[str] = (),
    end: datetime.datetime = NOW + DAY,
) -> Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.certificate.subject if issuer else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - 2 * DAY)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=length), critical=True)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(list(usages)), critical=False)
    if key_usages:
        allowed = {name: name in key_usages for name in KEY_USAGES}
        builder = builder.add_extension(x509.KeyUsage(**allowed), critical=True)
    return Issued(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


ROOT = issue(subject("root"), ca=True)
FIRST = issue(subject("first"), ROOT, ca=True)
SECOND = issue(subject("second"), FIRST, ca=True)
SHORT = issue(subject("short"), ROOT, ca=True, length=0)
BELOW_SHORT = issue(subject("below"), SHORT, ca=True)
NO_AUTHORITY = issue(subject("none"), ROOT)
FOR_SERVERS = issue(subject("servers"), ROOT, ca=True, usages=SERVER)
FOR_ANY = issue(subject("any"), ROOT, ca=True, usages=[ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE])
EXPIRED = issue(subject("expired"), ROOT, ca=True, end=NOW - DAY)
OTHER = issue(subject("other"), ca=True)


def ann(issuer: Issued | None, usages: Sequence[x509.ObjectIdentifier] = CLIENT) -> Issued:
    return issue(subject("ann", groups=["devs"]), issuer, usages=usages)


TAKEN = {
    "direct": (ann(ROOT), []),
    "one between": (ann(FIRST), [FIRST]),
    "two between": (ann(SECOND), [SECOND, FIRST]),
    "in another order": (ann(SECOND), [FIRST, SECOND]),
    "with the root": (ann(SECOND), [SECOND, FIRST, ROOT]),
    "the last of a short path": (ann(SHORT), [SHORT]),
    "without usages": (ann(FIRST, []), [FIRST]),
    "for clients and any usage": (ann(ROOT, [*CLIENT, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE]), []),
    "with digitalSignature": (
        issue(subject("ann", groups=["devs"]), ROOT, usages=CLIENT, key_usages=["digital_signature"]),
        [],
    ),
    "the last of two names": (issue(subject("bob", "ann", groups=["devs"]), ROOT, usages=CLIENT), []),
}
REFUSED = {
    "one is missing": (ann(SECOND), [SECOND]),
    "all are missing": (ann(FIRST), []),
    "past a short path": (ann(BELOW_SHORT), [BELOW_SHORT, SHORT]),
    "by no authority": (ann(NO_AUTHORITY), [NO_AUTHORITY]),
    "by one for servers": (ann(FOR_SERVERS), [FOR_SERVERS]),
    "by an expired one": (ann(EXPIRED), [EXPIRED]),
    "by another": (ann(OTHER), [OTHER]),
    "for servers": (ann(ROOT, SERVER), []),
    "by itself": (ann(None), []),
}
# Go takes these; OpenSSL refuses them in the handshake by their purpose, and Python has no way to set another one.
REFUSED_BY_OPENSSL = {
    "for any usage": (ann(ROOT, [ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE]), []),
    "by one for any usage": (ann(FOR_ANY), [FOR_ANY]),
    "without digitalSignature": (
        issue(subject("ann"), ROOT, usages=CLIENT, key_usages=["key_encipherment"]),
        [],
    ),
}


@pytest.fixture(params=["the root", "one between"])
def server(request, monkeypatch):
    """Trusts the root, or a certificate that the root issued and no root at all."""
    trusted = ROOT if request.param == "the root" else FIRST
    monkeypatch.setattr(certificates, "made_authority", lambda *_: SigningAuthority(*trusted))
    with ApiServer(tls=True, controllers="none") as running:
        yield running, trusted


def who(server: ApiServer, folder: Path, leaf: Issued, chain: Sequence[Issued], **tls: Any) -> Any:
    """Who a client is, or how it is refused."""
    file, key = folder / "client.pem", folder / "client.key"
    file.write_bytes(
        b"".join(each.certificate.public_bytes(serialization.Encoding.PEM) for each in (leaf, *chain))
    )
    key.write_bytes(SigningAuthority(*leaf).key_pem)
    context = ssl.create_default_context(cadata=server._authority.decode())
    context.load_cert_chain(file, key)
    for name, value in tls.items():
        setattr(context, name, value)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=60)
    try:
        connection.request("POST", REVIEWS, "{}", {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
    except (OSError, http.client.HTTPException) as fault:
        return type(fault)
    finally:
        connection.close()
    if answer.status != 201:
        return answer.status
    info = body["status"]["userInfo"]
    return info["username"], info["groups"]


OF_ROOT_ALONE = (
    "direct", "the last of a short path", "the last of two names", "for clients and any usage", "with digitalSignature"
)  # fmt: skip


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_chains(server, version, tmp_path):
    running, trusted = server
    for name, (leaf, chain) in {**TAKEN, **REFUSED, **REFUSED_BY_OPENSSL}.items():
        got = who(running, tmp_path, leaf, chain, maximum_version=version)
        taken = name in TAKEN
        if trusted is FIRST:
            # What is missing of a chain may be among the authorities.
            taken = name not in OF_ROOT_ALONE if taken else name in ("all are missing", "one is missing")
        if taken:
            assert got == ("ann", ["devs", "system:authenticated"]), name
        else:
            refused = isinstance(got, type) and issubclass(got, (OSError, http.client.HTTPException))
            assert got == 401 or refused, name


def authenticated(authority: Issued, *chain: Issued) -> str:
    request = Request("GET", "/", peer=tuple(der(each.certificate) for each in chain))
    identity = ClientCertificates([authority.certificate]).authenticate(request)
    return identity.user.name if identity else ""


def test_a_chain_is_of_one_authority_and_not_of_the_other_of_the_server():
    """TLS knows the authorities of clients and of front proxies; a chain to one says nothing of the other."""
    leaf = ann(FIRST)
    assert authenticated(ROOT, leaf, FIRST, ROOT) == authenticated(FIRST, leaf, FIRST) == "ann"
    assert authenticated(OTHER, leaf, FIRST, ROOT) == ""
    peer = tuple(der(each.certificate) for each in (leaf, FIRST, ROOT))
    assert PeerCheck([ROOT.certificate])(peer) and PeerCheck([ROOT.certificate], ("ann",))(peer)
    assert not PeerCheck([OTHER.certificate])(peer) and not PeerCheck([ROOT.certificate], ("bob",))(peer)
    assert not PeerCheck([ROOT.certificate])((b"no certificate",))


def test_a_connection_ends_with_the_first_certificate_of_its_chain_that_does():
    soon = issue(subject("soon"), ROOT, ca=True, end=NOW - DAY / 2)
    leaf = ann(soon)
    assert leaf.certificate.not_valid_after_utc > NOW
    with pytest.raises(ApiError, match="Unauthorized"):
        authenticated(ROOT, leaf, soon, ROOT)
    peer = tuple(der(each.certificate) for each in (leaf, soon, ROOT))
    assert not PeerCheck([ROOT.certificate])(peer)


def test_everybody_reads_the_same_name_of_several():
    """Admission limits a node's request by the name that authentication reads from what is signed."""
    two = subject("system:node:n1", "system:node:n2")
    key = ec.generate_private_key(ec.SECP256R1())
    wanted = x509.CertificateSigningRequestBuilder().subject_name(two).sign(key, hashes.SHA256())
    encoded = certificates.base64.b64encode(wanted.public_bytes(serialization.Encoding.PEM))  # type: ignore[attr-defined]
    leaf = issue(two, ROOT, usages=CLIENT)
    assert name_of_request(encoded) == authenticated(ROOT, leaf) == "system:node:n2"
    check = PeerCheck([ROOT.certificate], ("system:node:n1",))
    assert not check((der(leaf.certificate),))
