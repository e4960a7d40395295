"""``kubewright webhook``: serves a generated package's conversion, defaulting and validation to a kube-apiserver.

Exit codes: 0 ended by a signal, or the manifest is printed; 2 the command line, the package or the certificate cannot
be used.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

from apimachinery.server.catalog.options import OptionError
from apimachinery.server.http.tls import TlsError, server_context
from apimachinery.server.reviewing.packages import PackageReviews
from apimachinery.server.reviewing.serving import Answer, ReviewServer
from apimachinery.wire import yaml
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

EXAMPLES = r"""
kubewright webhook --package messaging_api --tls-cert tls.crt --tls-key tls.key --host 0.0.0.0 --port 9443
kubewright webhook --package messaging_api --manifest --service messaging/webhook --ca ca.crt
kubewright webhook --package messaging_api --manifest --url https://192.0.2.7:9443 --ca ca.crt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add(
        "--package",
        action="append",
        required=True,
        metavar="NAME",
        help="a generated package whose rules to serve; may be repeated",
    )
    add("--tls-cert", type=Path, metavar="FILE", help="the certificate to serve with (PEM)")
    add("--tls-key", type=Path, metavar="FILE", help="its key (PEM)")
    add("--host", default="0.0.0.0", help="address to bind (default %(default)s)")
    add("--port", type=int, default=9443, help="port to bind (default %(default)s)")
    add(
        "--manifest", action="store_true", help="print what the cluster needs to know of the webhook, and end"
    )
    add("--service", metavar="NS/NAME[:PORT]", help="with --manifest: the Service that leads to the webhook")
    add("--url", metavar="URL", help="with --manifest: where the webhook is, if not behind a Service")
    add("--ca", type=Path, metavar="FILE", help="with --manifest: the authority of its certificate (PEM)")
    add(
        "--cert-manager",
        metavar="NS/NAME",
        help="with --manifest: the cert-manager Certificate of it, whose authority cert-manager then writes in",
    )
    add(
        "--failure-policy",
        choices=("Fail", "Ignore"),
        default="Fail",
        help="with --manifest: what becomes of writes while the webhook cannot be asked (default %(default)s)",
    )


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
        print(f"kubewright webhook: {fault}", file=sys.stderr)
        return MISUSED
    try:
        asyncio.run(_serve(ReviewServer(answers_of(reviews), context, options.host, options.port)))
    except OSError as fault:
        print(f"kubewright webhook: cannot listen at {options.host}:{options.port}: {fault}", file=sys.stderr)
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
            client["caBundle"] = base64.b64encode(options.ca.read_bytes()).decode()
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
