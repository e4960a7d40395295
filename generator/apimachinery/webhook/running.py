"""Webhooks that are served: in a thread, over TLS, with a certificate that renews itself."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from apimachinery.client.connection import Client
from apimachinery.client.errors import ApiError, TransportError
from apimachinery.http.tls import renew, server_context
from apimachinery.queue.running import Flag, on_signals
from apimachinery.webhook.certificates import SharedCertificate
from apimachinery.webhook.serving import ReviewServer

if TYPE_CHECKING:
    from apimachinery.webhook.webhooks import Webhooks

LOOK_SECONDS: Final = 60.0
"""How often the certificate is looked at."""
START_SECONDS: Final = 60.0
_log = logging.getLogger("kubewright.webhook")


class WebhookServer:
    """See ``Webhooks.serve``."""

    def __init__(
        self, webhooks: Webhooks, client: Client, *, service: str, url: str, host: str, port: int
    ) -> None:
        if bool(service) == bool(url):
            raise ValueError(
                "say how the cluster reaches the webhooks: service=NAMESPACE/NAME, or url=https://…"
            )
        self._webhooks = webhooks
        self._client = client
        self._service = service
        self._url = url
        self._host = host
        self.port = port
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stopping = Flag()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._threads = [threading.Thread(target=self._main, name="kubewright-webhook", daemon=True)]
        namespace, name, named = self._place()
        self.certificate = SharedCertificate(client, namespace, name, named, self._publish)

    def start(self) -> Self:
        """Is served and known to the cluster when it returns. Raises ``ApiError``, ``OSError``, ``TimeoutError``."""
        served = self.certificate.load()
        self._folder = tempfile.TemporaryDirectory(prefix="kubewright-webhook-")
        self._context = self._contextualize(Path(self._folder.name), *served)
        self._threads[0].start()
        if not self._ready.wait(START_SECONDS):
            raise TimeoutError("the webhooks are not served yet")
        if self._failure is not None:
            raise self._failure
        try:
            self._look()
        except BaseException:
            self.close()
            raise
        looking = threading.Thread(target=self._keep_looking, name="kubewright-certificate", daemon=True)
        self._threads.append(looking)
        looking.start()
        return self

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT."""
        undo = on_signals(self._stopping.set)
        try:
            with self:
                self._stopping.wait()
        finally:
            undo()

    def close(self) -> None:
        """Takes no more reviews; those under way are answered. What the cluster knows stays, for other replicas:
        ``uninstall`` takes it back."""
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(START_SECONDS)
        if self._folder is not None:
            self._folder.cleanup()

    def uninstall(self) -> None:
        """Has the cluster ask nobody any more. Raises ``ApiError``."""
        self._webhooks.installation({}).uninstall(self._client)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _place(self) -> tuple[str, str, str]:
        """Namespace and name of the Secret, and the name that the certificate is for."""
        if self._url:
            name = f"{self._webhooks.name}-tls"
            return self._client.config.namespace, name, str(urlsplit(self._url).hostname)
        namespace, _, name = self._service.partition(":")[0].partition("/")
        if not namespace or not name:
            raise ValueError(f'"{self._service}" is not NAMESPACE/NAME[:PORT]')
        return namespace, f"{name}-tls", f"{name}.{namespace}.svc"

    def _publish(self, authorities: bytes) -> None:
        config: dict[str, Any] = {"caBundle": base64.b64encode(authorities).decode()}
        if self._url:
            config["url"] = self._url.replace("PORT", str(self.port))
        else:
            where, _, port = self._service.partition(":")
            namespace, _, name = where.partition("/")
            config["service"] = {"namespace": namespace, "name": name, "port": int(port or 443)}
        self._webhooks.installation(config).install(self._client)

    def _look(self) -> None:
        certificate, key = self.certificate.current()
        if certificate != self._served and self._folder is not None:
            self._contextualize(Path(self._folder.name), certificate, key, self._context)
            _log.info("the certificate of %s is renewed", self._webhooks.name)

    def _keep_looking(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                self._look()
            except (ApiError, TransportError) as error:  # the one that is served is good for weeks
                _log.warning("the certificate of %s: %s; looking again", self._webhooks.name, error)
            except (
                Exception
            ):  # a Secret that somebody else wrote, a full disk: it may be mended, so looking goes on
                _log.exception("the certificate of %s; looking again", self._webhooks.name)

    def _contextualize(
        self, folder: Path, certificate: bytes, key: bytes, context: ssl.SSLContext | None = None
    ) -> ssl.SSLContext:
        paths = folder / "tls.crt", folder / "tls.key"
        for path, content in zip(paths, (certificate, key), strict=True):
            path.touch(0o600)
            path.write_bytes(content)
        self._served = certificate
        if context is None:
            return server_context(*paths)
        renew(context, *paths)
        return context

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        answers = self._webhooks.answers(self._client)
        server = ReviewServer(answers, self._context, self._host, self.port)
        await server.start()
        self.port = server.port
        self._ready.set()
        await asyncio.to_thread(self._stopping.wait)
        await server.stop()
