"""Signs approved requests for client certificates (signer ``kubernetes.io/kube-apiserver-client``)."""

from __future__ import annotations

import base64

from apimachinery.access.certificates import BadRequestForCertificate, SigningAuthority
from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import now
from apimachinery.server.admission.builtin.certificates import CLIENT_SIGNER
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

REQUESTS = "/certificates.k8s.io/certificatesigningrequests/"
MANAGER = "kube-controller-manager"


class CertificateSigner(Controller):
    """Writes ``status.certificate`` of requests that are approved, or the condition ``Failed``."""

    def __init__(
        self, served: Served, cache: WatchCache, writer: Writer, authority: SigningAuthority
    ) -> None:
        super().__init__("csrsigning", cache, Source(REQUESTS))
        self._served = served
        self._requests = cache.resource(REQUESTS)
        self._writer = writer
        self._authority = authority

    async def reconcile(self, key: str) -> None:
        """Signs a request that is due. Raises ApiError, StorageError."""
        record = self._requests.get(key)
        request: Json | None = None if record is None else decode(record.value)
        if request is not None and due(request):
            await self._sign(request)

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
