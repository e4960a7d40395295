"""OwnerReferencesPermissionEnforcement: who changes the owners of an object must be allowed to delete it, and who makes
one block the owner's deletion must be allowed to set the owner's finalizers."""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.access.authorization import MASTERS, Attributes, Chain
from apimachinery.http.messages import User
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError, forbidden
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.catalog.catalog import Catalog


class OwnerReferencesPermissionEnforcement(Plugin):
    """Asks the authorizer about new owners."""

    def __init__(self, catalog: Catalog, authorizer: Chain) -> None:
        self._catalog = catalog
        self._authorizer = authorizer

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        target, user = operation.target, operation.user
        served = target.served
        if operation.obj is None or user is None or MASTERS in user.groups or operation.verb == "CONNECT":
            return
        # Old kubelets spoil owners in the status of pods; that they do not change is seen to elsewhere.
        if (served.group, served.plural, target.subresource) == ("", "pods", "status"):
            return
        before, after = _owners(operation.old), _owners(operation.obj)
        if before == after:
            return
        asked = Attributes(
            user,
            "delete",
            target.namespace,
            served.group,
            served.version,
            served.plural,
            target.subresource,
            operation.name,
        )
        # Who creates an object says whose it is.
        if operation.verb != "CREATE" and (why := self._refused(asked)) is not None:
            raise _refusal(operation, f"cannot set an ownerRef on a resource you can't delete: {why}, <nil>")
        for owner in _newly_blocking(before, after):
            self._check_blocking(operation, user, owner)

    def _check_blocking(self, operation: Operation, user: User, owner: Json) -> None:
        api_version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
        held = [each for each in self._catalog if (each.api_version, each.kind) == (api_version, kind)]
        if not held:
            why = (
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
                f'{api_version} Kind {kind}: no matches for kind "{kind}" in version "{api_version}"'
            )
            raise _refusal(operation, why)
        for each in held:
            namespace = operation.target.namespace if each.namespaced else ""
            asked = Attributes(
                user,
                "update",
                namespace,
                each.group,
                each.version,
                each.plural,
                "finalizers",
                owner.get("name") or "",
            )
            if (reason := self._refused(asked)) is not None:
                why = (
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "
                    f"finalizers on: {reason}, <nil>"
                )
                raise _refusal(operation, why)

    def _refused(self, asked: Attributes) -> str | None:
        """Why somebody may not, None where he may."""
        verdict = self._authorizer.settle(asked)
        if verdict is None:
            return ""
        return None if verdict.allowed else verdict.reason


def _refusal(operation: Operation, why: str) -> ApiError:
    served = operation.target.served
    return forbidden(served.plural, served.group, operation.name, why)


def _owners(obj: Json | None) -> list[Json]:
    found: list[Json] = ((obj or {}).get("metadata") or {}).get("ownerReferences") or []
    return found


def _newly_blocking(before: list[Json], after: list[Json]) -> Iterator[Json]:
    blocked = {owner.get("uid") for owner in before if owner.get("blockOwnerDeletion")}
    return (owner for owner in after if owner.get("blockOwnerDeletion") and owner.get("uid") not in blocked)
