"""Fills Secrets of type ``kubernetes.io/service-account-token`` with a token of the account that they name, and
deletes those whose account is gone, as kube-controller-manager's serviceaccount-token controller does."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable

from apimachinery.access.secret_tokens import (
    ACCOUNT_NAME,
    ACCOUNT_TYPE,
    ACCOUNT_UID,
    account_claims,
)
from apimachinery.access.service_accounts import ServiceAccountKeys
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import Controller, Source, written
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

ACCOUNTS, SECRETS = "/core/serviceaccounts/", "/core/secrets/"
MANAGER = "kube-controller-manager"
WORKERS = 5
_TYPE = ACCOUNT_TYPE.encode()


def _of_accounts(event: Event) -> Iterable[str]:
    return written(event) if _TYPE in event.record.value else ()


class AccountSecrets(Controller):
    """Follows Secrets and ServiceAccounts. ``authority`` is what a client should trust (PEM), if it is known."""

    def __init__(
        self,
        served: Served,
        cache: WatchCache,
        writer: Writer,
        deleter: Deleter,
        keys: ServiceAccountKeys,
        authority: str = "",
    ) -> None:
        secrets = Source(SECRETS, _of_accounts)
        accounts = Source(ACCOUNTS, self._secrets_of, listed=False)
        super().__init__("serviceaccount-token", cache, secrets, accounts, workers=WORKERS)
        self._served = served
        self._writer = writer
        self._deleter = deleter
        self._keys = keys
        self._authority = authority
        self._accounts = cache.resource(ACCOUNTS)
        self._secrets = cache.resource(SECRETS)

    def _secrets_of(self, event: Event) -> Iterable[str]:
        namespace = event.record.key.removeprefix(ACCOUNTS).partition("/")[0]
        records = self._secrets.snapshot(f"{SECRETS}{namespace}/").records
        return [record.key for record in records if _TYPE in record.value]

    async def reconcile(self, key: str) -> None:
        """Fills a Secret, or deletes it. Raises ApiError, StorageError."""
        record = self._secrets.get(key)
        secret: Json | None = None if record is None else decode(record.value)
        if secret is None or secret.get("type") != ACCOUNT_TYPE or "deletionTimestamp" in secret["metadata"]:
            return
        namespace, _, name = key.removeprefix(SECRETS).partition("/")
        annotations = secret["metadata"].get("annotations") or {}
        account = annotations.get(ACCOUNT_NAME, "")
        found = self._accounts.get(f"{ACCOUNTS}{namespace}/{account}")
        uid = "" if found is None else decode(found.value)["metadata"]["uid"]
        target = WriteTarget(self._served, namespace, name, WriteOptions(manager=MANAGER))
        if not uid or annotations.get(ACCOUNT_UID, uid) != uid:
            with contextlib.suppress(ApiError):
                await self._deleter.delete(target, DeletionOptions())
            return
        wanted = self._wanted(secret, namespace, account, uid, name)
        if wanted or annotations.get(ACCOUNT_UID) != uid:
            await self._writer.update(target, lambda old: _filled(old, wanted, uid))

    def _wanted(self, secret: Json, namespace: str, account: str, uid: str, name: str) -> dict[str, str]:
        """What the data of a Secret lacks."""
        data = secret.get("data") or {}
        wanted = {}
        if not data.get("token"):
            wanted["token"] = self._keys.signing.sign(account_claims(namespace, account, uid, name))
        if data.get("namespace") != _encoded(namespace):
            wanted["namespace"] = namespace
        if self._authority and data.get("ca.crt") != _encoded(self._authority):
            wanted["ca.crt"] = self._authority
        return {key: _encoded(value) for key, value in wanted.items()}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _filled(old: Json, wanted: dict[str, str], uid: str) -> Json:
    metadata = old["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), ACCOUNT_UID: uid}
    return {**old, "data": {**(old.get("data") or {}), **wanted}}
