"""``kubewright webhook``: serves a generated package's conversion, defaulting and validation to a kube-apiserver.

Exit codes: 0 ended by a signal, or the manifest is printed; 2 the command line, the package or the certificate cannot
be used.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import sys
from typing import Any

from apimachinery.http.tls import TlsError, server_context
from apimachinery.server.catalog.options import OptionError
from apimachinery.server.reviewing.packages import PackageReviews
from apimachinery.server.reviewing.serving import Answer, ReviewServer
from apimachinery.wire import yaml
from kubewright.diagnostics import printable
from kubewright.source.text import read_bytes
from kubewright.tools.serve.ending import on_signals
from kubewright.tools.webhook.manifest import (
    CONVERT,
    DEFAULT,
    VALIDATE,
    configurations,
    conversions,
    injected,
)

DONE, MISUSED = 0, 2


def run(options: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT, or prints the manifest."""
    try:
        reviews = PackageReviews(options.package)
        if options.manifest:
            sys.stdout.buffer.write(_manifest(options, reviews))
            return DONE
        if options.tls_cert is None or options.tls_key is None:
            raise OptionError("a kube-apiserver calls webhooks over TLS alone: give --tls-cert and --tls-key")
        context = server_context(options.tls_cert, options.tls_key)
    except (OptionError, TlsError, ModuleNotFoundError) as fault:
        print(printable(f"kubewright webhook: {fault}"), file=sys.stderr)
        return MISUSED
    try:
        asyncio.run(_serve(ReviewServer(answers_of(reviews), context, options.host, options.port)))
    except OSError as fault:
        print(
            printable(f"kubewright webhook: cannot listen at {options.host}:{options.port}: {fault}"),
            file=sys.stderr,
        )
        return MISUSED
    return DONE


def answers_of(reviews: PackageReviews) -> dict[str, Answer]:
    """The answers by the paths that the manifest names."""
    return {CONVERT: reviews.convert, DEFAULT: reviews.default, VALIDATE: reviews.validate}


def _manifest(options: argparse.Namespace, reviews: PackageReviews) -> bytes:
    """Raises OptionError."""
    if (options.service is None) == (options.url is None):
        raise OptionError("--manifest needs either --service NS/NAME or --url")
    client: dict[str, Any] = {}
    if options.url is not None:
        if not options.url.startswith("https://"):
            raise OptionError(f"--url: {options.url!r} does not begin with https://")
        client["url"] = options.url
    else:
        where, _, port = options.service.partition(":")
        namespace, _, name = where.partition("/")
        if not name or not namespace or not (port or "443").isdigit():
            raise OptionError(f"--service: {options.service!r} is not NS/NAME or NS/NAME:PORT")
        client["service"] = {"namespace": namespace, "name": name, "port": int(port or 443)}
    if options.ca is not None:
        try:
            client["caBundle"] = base64.b64encode(read_bytes(options.ca)).decode()
        except OSError as fault:
            raise OptionError(f"--ca: cannot read {options.ca}: {fault.strerror}") from None
    resources = [*reviews.resources()]
    documents = [
        *configurations(resources, client, options.failure_policy),
        *conversions(resources, client),
    ]
    if options.cert_manager is not None:
        if options.ca is not None or options.cert_manager.count("/") != 1:
            raise OptionError(
                f"--cert-manager: {options.cert_manager!r} is not NS/NAME, or --ca is given too"
            )
        documents = [injected(document, options.cert_manager) for document in documents]
    return b"---\n".join(yaml.encode(document) for document in documents)


async def _serve(server: ReviewServer) -> None:
    await server.start()
    print(
        f"serving webhooks on port {server.port}: {CONVERT}, {DEFAULT}, {VALIDATE}",
        file=sys.stderr,
        flush=True,
    )
    ended = asyncio.Event()
    on_signals(ended.set)
    await ended.wait()
    await server.stop()
