"""``serviceaccounts/NAME/token``: a TokenRequest in, a signed token in its status out.

The token is bound to the service account, and to a pod, secret or node where the request names one; a pod's node is
written into it as well. The binding object must exist, and have the uid that the request says, if it says one.
"""

from __future__ import annotations

import time
from typing import Any

from apimachinery.access.keys import unverified_claims
from apimachinery.access.service_accounts import Bound, ServiceAccountTokens
from apimachinery.http.messages import Request, Response
from apimachinery.kinds.hooks import Json
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.field_set import from_paths
from apimachinery.meta.asked import Route
from apimachinery.meta.clock import now
from apimachinery.meta.errors import bad_request, conflict, not_found
from apimachinery.meta.field_errors import FieldError, invalid, invalid_value
from apimachinery.meta.printing import go_quote
from apimachinery.server.admission.interface import Admission, Operation
from apimachinery.server.answer.views import called_form
from apimachinery.server.catalog.family import IsKind
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import read_sent
from apimachinery.server.request.codecs import Codecs, whole
from apimachinery.server.request.negotiation import negotiate
from apimachinery.server.request.options import read_write_options
from apimachinery.server.request.target import WriteTarget, match_namespace, metadata_of
from apimachinery.server.write.effects import Steps
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

LEAST_SECONDS = 600
MOST_SECONDS = 1 << 32
_GROUP = "authentication.k8s.io"
_KINDS = {
    "Pod": "/core/pods/{namespace}/{name}",
    "Secret": "/core/secrets/{namespace}/{name}",
    "Node": "/core/nodes/{name}",
}


class TokenRequests:
    """Makes tokens of service accounts."""

    def __init__(
        self,
        tokens: ServiceAccountTokens,
        cache: WatchCache,
        codecs: Codecs,
        is_kind: IsKind,
        kind: Served,
        accounts: Served,
        admission: Admission,
    ) -> None:
        self._tokens = tokens
        self._accounts = accounts
        self._admission = admission
        self._cache = cache
        self._codecs = codecs
        self._is_kind = is_kind
        self._kind = kind
        self._ownership = FieldOwnership(
            api_version=kind.api_version,
            kind=kind.kind,
            type=kind.compiled.merge_type,
            subresource="token",
            ignored={kind.api_version: from_paths([("f:status",)])},
            empty={"spec": {}, "status": {}},
        )

    def answer(self, request: Request, route: Route) -> Steps[Response]:
        """Answers a create. Raises ApiError 400, 404, 406, 409, 422."""
        form = negotiate(request.headers.get("accept", ""), self._codecs, tables=False)
        options = read_write_options(request, "CreateOptions")
        obj, _ = read_sent(
            request, self._codecs, self._kind, self._is_kind, options.validation, request.warnings
        )
        obj = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, **obj}
        match_namespace(metadata_of(obj), route.namespace)
        target = WriteTarget.asked(
            request, self._accounts, route.namespace, route.name, options, route.subresource
        )
        operation = Operation("CREATE", target, obj, None, route.name)
        yield from self._admission.admit(operation)
        name = metadata_of(obj).get("name") or ""
        if name and name != route.name:
            fault = invalid_value("metadata.name", name, "must match the service account name if specified")
            raise invalid("TokenRequest", _GROUP, route.name, [fault])
        account = self._read(f"/core/serviceaccounts/{route.namespace}/{route.name}")
        if account is None:
            raise not_found("serviceaccounts", "", route.name)
        owned = self._ownership.update(None, obj, options.manager, now=now())
        spec: Json = obj.get("spec") or {}
        if not spec.get("audiences"):
            spec["audiences"] = list(self._tokens.keys.names)
        faults = _faults(spec)
        if faults:
            raise invalid("TokenRequest", _GROUP, "", faults)
        bound = self._bound(spec.get("boundObjectRef"), route)
        yield from self._admission.validate(operation)
        uid = account["metadata"]["uid"]
        seconds = int(spec["expirationSeconds"])
        token, expires = self._tokens.sign(
            route.namespace, route.name, uid, spec["audiences"], seconds, bound
        )
        claims = unverified_claims(token) or {}
        request.annotations["authentication.kubernetes.io/issued-credential-id"] = f"JTI={claims['jti']}"
        shown = {
            "name": route.name,
            "namespace": route.namespace,
            "uid": uid,
            "creationTimestamp": now(),
            "labels": metadata_of(obj).get("labels"),
            "annotations": metadata_of(obj).get("annotations"),
            "managedFields": metadata_of(owned).get("managedFields") or [],
        }
        ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))
        answer = {
            "kind": "TokenRequest",
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {key: value for key, value in shown.items() if value},
            "spec": {
                "audiences": spec["audiences"],
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": ended},
        }
        answer = called_form(answer, form, self._kind)
        return Response(201, whole(form.codec, answer), form.codec.media_type)

    def _bound(self, ref: Json | None, route: Route) -> list[Bound]:
        if ref is None:
            return []
        group, version = _group_version(ref.get("apiVersion") or "")
        kind, name, wanted = (ref.get(key) or "" for key in ("kind", "name", "uid"))
        key = None if group else _KINDS.get(kind)
        if key is None:
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        if not name:
            raise bad_request("Name parameter required.")
        plural = f"{kind.lower()}s"
        held = self._read(key.format(namespace=route.namespace, name=name))
        if held is None:
            raise not_found(plural, "", name)
        uid = held["metadata"]["uid"]
        if wanted and wanted != uid:
            why = (
                f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise conflict(plural, "", name, why)
        bound = [Bound(kind.lower(), name, uid)]
        if kind == "Pod":
            spec = held.get("spec") or {}
            account = spec.get("serviceAccountName") or ""
            if account != route.name:
                raise bad_request(
                    f"cannot bind token for serviceaccount {go_quote(route.name)} to pod running with different "
                    "serviceaccount name."
                )
            node = self._read(f"/core/nodes/{spec['nodeName']}") if spec.get("nodeName") else None
            if node is not None:
                bound.append(Bound("node", spec["nodeName"], node["metadata"]["uid"]))
        return bound

    def _read(self, key: str) -> Any:
        record = self._cache.record(key)
        return None if record is None else decode(record.value)


def _group_version(text: str) -> tuple[str, str]:
    """An apiVersion's parts, both empty where it has more than two; the core group counts at any version."""
    parts = text.split("/")
    return ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1]) if len(parts) == 2 else ("", "")


def _faults(spec: Json) -> list[FieldError]:
    seconds = int(spec.get("expirationSeconds") or 0)
    if seconds < LEAST_SECONDS:
        text = "may not specify a duration less than 10 minutes"
    elif seconds > MOST_SECONDS:
        text = "may not specify a duration larger than 2^32 seconds"
    else:
        return []
    return [invalid_value("spec.expirationSeconds", seconds, text)]
