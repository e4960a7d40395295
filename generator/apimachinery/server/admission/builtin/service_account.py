"""ServiceAccount: every pod runs as a service account, and finds a token of it in a volume.

A pod that names no account gets ``default``. A namespace's default account is made by a controller soon after the
namespace, so whoever comes earlier waits a moment. Where the account or the pod says so, no token is mounted.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from functools import partial

from apimachinery.http.steps import Waiting, wait_for
from apimachinery.kinds.fields import items, lookup
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError, forbidden
from apimachinery.meta.printing import go_quote
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache

DEFAULT = "default"
MIRROR = "kubernetes.io/config.mirror"
ENFORCE = "kubernetes.io/enforce-mountable-secrets"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX = "kube-api-access-"
TOKEN_SECONDS = 3607
ROOT_CA = "kube-root-ca.crt"
TRIES, TRY_SECONDS = 10, 0.15
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_REFERENCES = {
    "secret": "secrets",
    "configMap": "configmaps",
    "persistentVolumeClaim": "persistentvolumeclaims",
}


class ServiceAccount(Plugin):
    """Gives pods their account and its token."""

    resources = frozenset({("", "pods")})

    def __init__(self, cache: WatchCache) -> None:
        self._accounts = Objects(cache, "/core/serviceaccounts/")

    def admit(self, operation: Operation) -> Waiting:
        """Raises ApiError 403; waits for an account that is to be made."""
        obj = operation.obj
        if obj is None or operation.verb != "CREATE" or operation.target.subresource:
            return None
        spec = obj["spec"]
        # The kubelet made it; it cannot have a token of its own.
        if _is_mirror(obj):
            _check_mirror(operation, spec)
            return None
        name = spec.get("serviceAccountName") or DEFAULT
        # The older field is kept equal to the newer one.
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self._accounts.get(name, operation.target.namespace)
        # Only for the default account: no controller makes any other.
        if account is None and name == DEFAULT:
            return wait_for(partial(self._wait, operation, spec))
        self._complete(operation, spec, account)
        return None

    async def _wait(self, operation: Operation, spec: Json) -> None:
        for _ in range(TRIES):
            await asyncio.sleep(TRY_SECONDS)
            account = self._accounts.get(DEFAULT, operation.target.namespace)
            if account is not None:
                break
        self._complete(operation, spec, account)

    def _complete(self, operation: Operation, spec: Json, account: Json | None) -> None:
        if account is None:
            name = spec["serviceAccountName"]
            why = f"error looking up service account {operation.target.namespace}/{name}: "
            raise _refusal(operation, f"{why}serviceaccount {go_quote(name)} not found")
        if _mounts(spec, account):
            _mount(spec)
        # The pod's own pull secrets count before those of the account.
        pull_secrets = account.get("imagePullSecrets")
        if pull_secrets and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(each) for each in pull_secrets]
        if _enforces(account):
            _check_secrets(operation, spec, account)

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403 for ephemeral containers that read secrets which their account may not use."""
        obj, old = operation.obj, operation.old
        if obj is None or old is None or operation.target.subresource != "ephemeralcontainers":
            return
        name = (obj.get("spec") or {}).get("serviceAccountName") or ""
        account = self._accounts.get(name, operation.target.namespace) if name else None
        if account is not None and _enforces(account):
            allowed = {each.get("name") for each in account.get("secrets") or ()}
            for why in _container_faults(
                obj["spec"], "ephemeralContainers", "ephemeral container", name, allowed
            ):
                raise _refusal(operation, why)


def _refusal(operation: Operation, why: str) -> ApiError:
    return forbidden("pods", "", operation.name, why)


def _is_mirror(pod: Json) -> bool:
    """Whether a pod only shows what a node runs by itself."""
    return MIRROR in ((pod.get("metadata") or {}).get("annotations") or {})


def _check_mirror(operation: Operation, spec: Json) -> None:
    if spec.get("serviceAccountName"):
        raise _refusal(operation, "a mirror pod may not reference service accounts")
    for volume in items(spec, "volumes"):
        for kind, plural in _REFERENCES.items():
            if volume.get(kind) is not None:
                raise _refusal(operation, f"a mirror pod may not reference {plural}")
        for source in items(volume.get("projected") or {}, "sources"):
            if source.get("serviceAccountToken") is not None:
                raise _refusal(operation, "a mirror pod may not use ServiceAccountToken volume projections")
    for key in ("containers", "initContainers"):
        for container in items(spec, key):
            if any(True for _ in _secrets_of(container)):
                raise _refusal(operation, "a mirror pod may not reference secrets")


def _mounts(spec: Json, account: Json) -> bool:
    # The pod's choice counts before the account's.
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _mount(spec: Json) -> None:
    """Mounts the token in every container that has nothing at its place, from a volume that is there already or from
    a new one."""
    volumes = spec.get("volumes") or []
    names = [str(volume.get("name")) for volume in volumes]
    name = next((each for each in names if each.startswith(VOLUME_PREFIX)), "")
    is_there = bool(name)
    name = name or VOLUME_PREFIX + "".join(secrets.choice(_LETTERS) for _ in range(5))
    mounted = False
    for key in ("initContainers", "containers"):
        for container in items(spec, key):
            mounts = container.get("volumeMounts") or []
            # Something is mounted there on purpose.
            if any(each.get("mountPath") == MOUNT_PATH for each in mounts):
                continue
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
            mounted = True
    # No volume where no container uses it.
    if mounted and not is_there:
        spec["volumes"] = [*volumes, _token_volume(name)]


def _token_volume(name: str) -> Json:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        # 3607 seconds: the length that marks tokens of pods (see service_accounts).
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}


def _enforces(account: Json) -> bool:
    annotations = account["metadata"].get("annotations") or {}
    return str(annotations.get(ENFORCE, "")).lower() in ("true", "1", "t")


def _check_secrets(operation: Operation, spec: Json, account: Json) -> None:
    """Refuses secrets that the account does not list: it is one whose pods may use only those."""
    name = account["metadata"]["name"]
    allowed = {each.get("name") for each in account.get("secrets") or ()}
    told = f"is not allowed because service account {name} does not reference that"
    for volume in items(spec, "volumes"):
        secret = lookup(volume, "secret", "secretName")
        if secret is not None and secret not in allowed:
            raise _refusal(operation, f"volume with secret.secretName={go_quote(secret)} {told} secret")
    for key, word in (("initContainers", "init container"), ("containers", "container")):
        for why in _container_faults(spec, key, word, name, allowed):
            raise _refusal(operation, why)
    pull = {each.get("name") for each in account.get("imagePullSecrets") or ()}
    for index, each in enumerate(items(spec, "imagePullSecrets")):
        if each.get("name") not in pull:
            shown = go_quote(str(each.get("name") or ""))
            raise _refusal(operation, f"imagePullSecrets[{index}].name={shown} {told} imagePullSecret")


def _container_faults(spec: Json, key: str, word: str, account: str, allowed: set[object]) -> Iterator[str]:
    for container in items(spec, key):
        for place, secret in _secrets_of(container):
            if secret not in allowed:
                yield (
                    f"{word} {container.get('name')} with {place} referencing secret.secretName={go_quote(secret)} is "
                    f"not allowed because service account {account} does not reference that secret"
                )


def _secrets_of(container: Json) -> Iterator[tuple[str, str]]:
    """Where a container's environment reads secrets, and which."""
    for variable in items(container, "env"):
        secret = lookup(variable, "valueFrom", "secretKeyRef")
        if isinstance(secret, dict):
            yield f"envVar {variable.get('name')}", str(secret.get("name") or "")
    for source in items(container, "envFrom"):
        secret = source.get("secretRef")
        if isinstance(secret, dict):
            yield "envFrom", str(secret.get("name") or "")
