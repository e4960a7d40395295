"""Signs approved requests for client certificates (signer ``kubernetes.io/kube-apiserver-client``)."""

from __future__ import annotations

import asyncio
import base64
import logging

from apimachinery.meta.errors import ApiError
from apimachinery.server.access.certificates import BadRequestForCertificate, SigningAuthority
from apimachinery.server.admission.certificates import CLIENT_SIGNER
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.identity import now
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, StorageError
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

REQUESTS = "/certificates.k8s.io/certificatesigningrequests/"
MANAGER = "kube-controller-manager"
log = logging.getLogger("kubewright.server.signing")


class CertificateSigner:
    """Writes ``status.certificate`` of requests that are approved, or the condition ``Failed``."""

    def __init__(
        self, served: Served, cache: WatchCache, writer: Writer, authority: SigningAuthority
    ) -> None:
        self._served = served
        self._requests = cache.resource(REQUESTS)
        self._writer = writer
        self._authority = authority
        self._changed = asyncio.Event()
        self._changed.set()
        self._task: asyncio.Task[None] | None = None
        self._unlisten = self._requests.listen(REQUESTS, self._heard)

    def start(self) -> None:
        """Starts following."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends it."""
        self._unlisten()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _heard(self, event: Event) -> None:
        del event
        self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            for record in list(self._requests.snapshot(REQUESTS).records):
                request: Json = decode(record.value)
                if due(request):
                    try:
                        await self._sign(request)
                    except (ApiError, StorageError):
                        await asyncio.sleep(0.25)
                        self._changed.set()
                    except Exception:
                        log.exception("a certificate could not be signed", extra={"key": record.key})

    async def _sign(self, request: Json) -> None:
        spec = request["spec"]
        try:
            pem = self._authority.sign_client(
                spec.get("request"), spec.get("usages") or [], spec.get("expirationSeconds")
            )
            change: Json = {"certificate": base64.b64encode(pem).decode()}
        except BadRequestForCertificate as fault:
            failed = {
                "type": "Failed",
                "status": "True",
                "reason": "SignerValidationFailure",
                "message": str(fault),
                "lastUpdateTime": now(),
                "lastTransitionTime": now(),
            }
            change = {"conditions": [*(request.get("status") or {}).get("conditions", []), failed]}
        name = request["metadata"]["name"]
        target = WriteTarget(self._served, "", name, WriteOptions(manager=MANAGER), "status")
        await self._writer.update(
            target, lambda old: {**old, "status": {**(old.get("status") or {}), **change}}
        )


def due(request: Json) -> bool:
    """Whether a request is to be signed: approved, neither denied nor failed nor signed, and for this signer."""
    status = request.get("status") or {}
    held = {c.get("type") for c in status.get("conditions") or ()}
    return (
        (request.get("spec") or {}).get("signerName") == CLIENT_SIGNER
        and not status.get("certificate")
        and "Approved" in held
        and not held & {"Denied", "Failed"}
    )
