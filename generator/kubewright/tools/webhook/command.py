"""``kubewright webhook``: serves a generated package's conversion, defaulting and validation to a kube-apiserver.

Exit codes: 0 ended by a signal, or what was asked for is done; 1 the cluster refuses it; 2 the command line, the
package or the certificate cannot be used.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import sys
from collections.abc import Callable
from typing import Any

from apimachinery.http.tls import TlsError, renew, server_context
from apimachinery.server.catalog.options import OptionError
from apimachinery.server.catalog.served import Served
from apimachinery.server.write.reviewing import PackageReviews
from apimachinery.webhook.serving import Answer, ReviewServer
from apimachinery.wire import yaml
from kubewright.diagnostics import printable
from kubewright.source.text import read_bytes
from kubewright.tools.serve.ending import on_signals
from kubewright.tools.webhook.manifest import (
    CONVERT,
    DEFAULT,
    VALIDATE,
    configurations,
    definitions,
    injected,
    reached,
)

DONE, REFUSED, MISUSED = 0, 1, 2
MANAGER = "kubewright-webhook"
CERTIFICATE_SECONDS = 60.0
Json = dict[str, Any]


def run(options: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT, or prints the manifest."""
    try:
        reviews = PackageReviews(options.package)
        if options.install or options.uninstall:
            return _change_cluster(options, [*reviews.resources()])
        if options.manifest:
            sys.stdout.buffer.write(_manifest(options, [*reviews.resources()]))
            return DONE
        if options.tls_cert is None or options.tls_key is None:
            raise OptionError("a kube-apiserver calls webhooks over TLS alone: give --tls-cert and --tls-key")
        context = server_context(options.tls_cert, options.tls_key)
    except (OptionError, TlsError, ModuleNotFoundError) as fault:
        print(printable(f"kubewright webhook: {fault}"), file=sys.stderr)
        return MISUSED
    try:
        server = ReviewServer(answers_of(reviews), context, options.host, options.port)
        asyncio.run(_serve(server, lambda: renew(context, options.tls_cert, options.tls_key)))
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


def _manifest(options: argparse.Namespace, resources: list[Served]) -> bytes:
    """Raises OptionError."""
    if names := definitions(resources):
        raise OptionError(
            f"{', '.join(names)}: of several versions, so conversion and webhooks have to come together, and a "
            "manifest with a definition in it would delete the definition again: use --install, or scaffold webhook"
        )
    documents = [*configurations(resources, _client(options), options.failure_policy)]
    if options.cert_manager is not None:
        documents = [injected(document, options.cert_manager) for document in documents]
    return b"---\n".join(yaml.encode(document) for document in documents)


def _client(options: argparse.Namespace) -> dict[str, Any]:
    """The clientConfig, without a path. Raises OptionError."""
    if (options.service is None) == (options.url is None):
        raise OptionError("--manifest and --install need either --service NS/NAME or --url")
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
    if options.cert_manager is not None and (options.ca is not None or options.cert_manager.count("/") != 1):
        raise OptionError(f"--cert-manager: {options.cert_manager!r} is not NS/NAME, or --ca is given too")
    return client


def _change_cluster(options: argparse.Namespace, resources: list[Served]) -> int:
    """Installs or takes back, with the kubeconfig. Raises OptionError."""
    from apimachinery.client import ApiError, Client, Config, ConfigError, TransportError
    from apimachinery.webhook.installing import install, uninstall

    names = definitions(resources)
    try:
        with Client(Config.load(options.kubeconfig, context=options.context)) as cluster:
            if options.uninstall:
                found = configurations(resources, {"url": ""}, "Fail")
                uninstall(cluster, [(each["kind"], each["metadata"]["name"]) for each in found], names)
            else:
                client = _client(options)
                wanted: list[Json] = [*configurations(resources, client, options.failure_policy)]
                if options.cert_manager is not None:
                    wanted = [injected(each, options.cert_manager) for each in wanted]
                install(cluster, wanted, names, reached(client, CONVERT), field_manager=MANAGER)
    except (ApiError, ConfigError, TransportError) as fault:
        print(printable(f"kubewright webhook: nothing is changed: {fault}"), file=sys.stderr)
        return REFUSED
    done = "taken back from" if options.uninstall else "installed in"
    packages, converted = ", ".join(options.package), ", ".join(names) or "nothing"
    print(f"{done} the cluster: webhooks of {packages}, conversion of {converted}")
    return DONE


async def _serve(server: ReviewServer, read_again: Callable[[], None]) -> None:
    await server.start()
    print(
        f"serving webhooks on port {server.port}: {CONVERT}, {DEFAULT}, {VALIDATE}",
        file=sys.stderr,
        flush=True,
    )
    ended = asyncio.Event()
    on_signals(ended.set)
    reading = asyncio.create_task(_read_again(read_again))
    await ended.wait()
    reading.cancel()
    await server.stop()


async def _read_again(read_again: Callable[[], None]) -> None:
    """Serves with the certificate that is in the files: cert-manager and others renew it there."""
    while True:
        await asyncio.sleep(CERTIFICATE_SECONDS)
        try:
            read_again()
        except TlsError as fault:  # half of a renewal: the one that was read before is good
            print(printable(f"kubewright webhook: {fault}"), file=sys.stderr)
