"""What ``kubewright serve`` speaks over TLS: which certificate it shows for a name, and which cipher suites."""

from __future__ import annotations

import argparse
import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from apimachinery.http.cipher_suites import CipherSuiteError, limit
from apimachinery.http.tls import ensure_certificate, log_broken_tls
from apimachinery.server.catalog.options import OptionError
from kubewright import cli
from kubewright.tools.serve.https import https

DEFAULT = "first.example.com"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates FOLDER/NAME/apiserver.crt, each of which names its host."""
    folder = tmp_path_factory.mktemp("names")
    for host in (DEFAULT, "second.example.com", "*.wild.example.com", "third.example.com"):
        ensure_certificate(folder / host, host)
    return folder


def options(files: Path, *words: str) -> argparse.Namespace:
    return cli.parser_of("serve").parse_args([word.replace("FOLDER", str(files)) for word in words])


def pair(host: str) -> str:
    return f"--tls-sni-cert-key=FOLDER/{host}/apiserver.crt,FOLDER/{host}/apiserver.key"


def shaken(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """The client's side of a handshake in memory. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(to_server, to_client, server_side=True)
    here = client.wrap_bio(to_client, to_server, server_hostname=name or None)
    for _ in range(10):
        waiting = 0
        for side in (here, there):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                waiting += 1
        if not waiting:
            return here
    raise AssertionError("the handshake does not end")


def client(**changes: object) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for name, value in changes.items():
        setattr(context, name, value)
    return context


def context_of(files: Path, *words: str) -> ssl.SSLContext:
    folder = files / DEFAULT
    return https(options(files, *words), folder / "apiserver.crt", folder / "apiserver.key", [])[0]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("", DEFAULT),
        ("nobody.example.com", DEFAULT),
        ("second.example.com", "second.example.com"),
        ("SECOND.example.com", "second.example.com"),
        ("a.wild.example.com", "*.wild.example.com"),
        ("a.b.wild.example.com", DEFAULT),
        ("wild.example.com", DEFAULT),
        ("given.example.com", "third.example.com"),
        ("third.example.com", DEFAULT),
        ("known.wild.example.com", "third.example.com"),
    ],
)
def test_the_certificate_goes_by_the_name(files: Path, asked: str, shown: str) -> None:
    names = ("second.example.com", "*.wild.example.com")
    third = pair("third.example.com") + ":given.example.com,known.wild.example.com"
    server = context_of(files, *(pair(name) for name in names), third)
    found = shaken(server, client(), asked).getpeercert(True)
    assert found == ssl.PEM_cert_to_DER_cert((files / shown / "apiserver.crt").read_text())


def test_a_given_name_counts_before_a_certificate_s_own(files: Path) -> None:
    third = pair("third.example.com") + ":second.example.com"
    for order in ((pair("second.example.com"), third), (third, pair("second.example.com"))):
        found = shaken(context_of(files, *order), client(), "second.example.com").getpeercert(True)
        path = files / "third.example.com" / "apiserver.crt"
        assert found == ssl.PEM_cert_to_DER_cert(path.read_text())


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("a", "'a' is not CERT,KEY .*expected comma separated certificate and key file paths"),
        (pair("third.example.com") + ":a b", "'a b' is no domain name; write NAME or"),
        ("FOLDER/nope.crt,FOLDER/nope.key", "cannot load the certificate"),
    ],
)
def test_certificates_that_cannot_be(files: Path, word: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        context_of(files, word if word.startswith("--") else f"--tls-sni-cert-key={word}")


ONE = "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


@pytest.mark.parametrize(("theirs", "speaks"), [("AES128-GCM-SHA256", True), ("AES256-GCM-SHA384", False)])
def test_cipher_suites(files: Path, theirs: str, speaks: bool) -> None:
    mine = client(maximum_version=ssl.TLSVersion.TLSv1_2)
    mine.set_ciphers(f"ECDHE-ECDSA-{theirs}")
    if speaks:
        chosen = shaken(context_of(files, ONE), mine, "").cipher()
        assert chosen is not None and chosen[0] == f"ECDHE-ECDSA-{theirs}"
    else:
        with pytest.raises(ssl.SSLError):
            shaken(context_of(files, ONE), mine, "")


def test_suites_of_tls_13_alone(files: Path) -> None:
    server = context_of(files, "--tls-cipher-suites=TLS_AES_128_GCM_SHA256")
    assert shaken(server, client(), "").version() == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        shaken(server, client(maximum_version=ssl.TLSVersion.TLSv1_2), "")


def test_suites_that_cannot_be(files: Path) -> None:
    with pytest.raises(
        OptionError, match=r"--tls-cipher-suites: Cipher suite NOPE not supported or doesn't exist"
    ):
        context_of(files, "--tls-cipher-suites=NOPE")
    with pytest.raises(CipherSuiteError, match=r"none of TLS_RSA_WITH_RC4_128_SHA is spoken here"):
        limit(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ["TLS_RSA_WITH_RC4_128_SHA"])


def test_a_connection_that_breaks_under_tls_is_logged_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """Of a webhook that broke off its answers uvloop reported a fatal error, with a traceback."""
    closed = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"
    broken: dict[str, Any] = {"message": "Fatal error on SSL protocol", "exception": RuntimeError(closed)}
    others: list[dict[str, Any]] = [
        {**broken, "exception": RuntimeError("another")},
        {**broken, "message": "Unhandled exception in event loop"},
        {**broken, "exception": ValueError(closed)},
        {"message": "no exception"},
    ]

    async def story() -> list[dict[str, Any]]:
        loop, passed = asyncio.get_running_loop(), []
        log_broken_tls(loop)
        loop.call_exception_handler(others[0])
        assert [record.name for record in caplog.records] == ["asyncio"]  # as if nobody had a handler
        loop.set_exception_handler(lambda _, context: passed.append(context))
        log_broken_tls(loop)
        for context in (broken, *others):
            loop.call_exception_handler(context)
        return passed

    with caplog.at_level(logging.INFO):
        assert asyncio.run(story()) == others
    assert [(each.getMessage(), each.exc_info) for each in caplog.records[1:]] == [
        ("a TLS connection broke off", None)
    ]
