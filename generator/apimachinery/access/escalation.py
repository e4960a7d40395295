"""Nobody gives rights that he does not hold: checks of writes of roles and bindings.

A role may be written by who holds all its rules in its scope, or the verb ``escalate`` on it; a binding by who holds
all rules of the role it binds, or the verb ``bind`` on that role. Members of system:masters, and the server's own loops
(which have no user), are not checked. A change of no more than metadata is not checked either: the garbage collector
edits owner references of whatever it meets.
"""

from __future__ import annotations

from collections.abc import Sequence

from apimachinery.access.authorization import (
    MASTERS,
    Attributes,
    Chain,
    aggregate,
)
from apimachinery.access.bindings import GROUP
from apimachinery.access.rbac import Rbac
from apimachinery.access.rbac_rules import (
    FULL_AUTHORITY,
    Rule,
    compacted,
    read_rules,
    uncovered,
)
from apimachinery.http.messages import User
from apimachinery.meta.errors import ApiError, forbidden, not_found
from apimachinery.meta.json import Json
from apimachinery.meta.printing import go_quote

ROLES = ("roles", "clusterroles")
MANY_RULES = 500
"""From so many rules on a role is compared apart from the loop."""
_AGGREGATES = "must have cluster-admin privileges to use the aggregationRule"


class Escalation:
    """The checks, over one server's roles and authorizers."""

    def __init__(self, rbac: Rbac, authorizer: Chain) -> None:
        self._rbac = rbac
        self._authorizer = authorizer

    def may(self, plural: str, namespace: str, name: str, user: User, obj: Json) -> bool:
        """Whether somebody may write a role or binding whatever it gives. ``name`` is the name in the path, empty on
        create."""
        if MASTERS in user.groups:
            return True
        verb, resource = "escalate", plural
        if plural not in ROLES:
            ref = obj.get("roleRef") or {}
            kind, name = str(ref.get("kind") or ""), str(ref.get("name") or "")
            if kind not in ("ClusterRole", "Role"):
                return False
            verb, resource = "bind", "clusterroles" if kind == "ClusterRole" else "roles"
        # An authorizer that must ask somebody else is not asked here: without the verb, the rules are compared.
        verdict = self._authorizer.settle(Attributes(user, verb, namespace, GROUP, "v1", resource, "", name))
        return verdict is not None and verdict.allowed

    def takes_long(self, plural: str, namespace: str, user: User, obj: Json) -> bool:
        """Whether ``check`` is not for the loop."""
        if self._rbac.holds_much(user, namespace):
            return True
        if plural in ROLES:
            rules = obj.get("rules")
            return isinstance(rules, list) and len(rules) > MANY_RULES
        ref = obj.get("roleRef") or {}
        return self._rbac.is_large(
            "" if ref.get("kind") == "ClusterRole" else namespace, str(ref.get("name"))
        )

    def check(self, plural: str, namespace: str, name: str, user: User, obj: Json, old: Json | None) -> None:
        """For who ``may`` not write whatever he likes; on any thread. Raises ApiError 403 for a write that would give
        more than the user holds, 404 for a binding to a role that does not exist."""
        if old is not None and _changes_metadata_only(obj, old):
            return
        if plural in ROLES:
            self._check_role(plural, namespace, name, user, obj, old)
        else:
            self._check_binding(plural, namespace, user, obj)

    def _check_role(
        self, plural: str, namespace: str, name: str, user: User, obj: Json, old: Json | None
    ) -> None:
        if old is not None and obj.get("rules") == old.get("rules"):
            if obj.get("aggregationRule") == old.get("aggregationRule"):
                return
        own = (obj.get("metadata") or {}).get("name") or name
        if obj.get("aggregationRule") or (old is not None and old.get("aggregationRule")):
            # It gathers whatever has its labels, now and later: only who may do everything may write one.
            try:
                self._confirm(plural, own, user, namespace, FULL_AUTHORITY)
            except ApiError:
                raise forbidden(plural, GROUP, own, _AGGREGATES) from None
        self._confirm(plural, own, user, namespace, read_rules(obj.get("rules")))

    def _check_binding(self, plural: str, namespace: str, user: User, obj: Json) -> None:
        ref = obj.get("roleRef") or {}
        kind, role = str(ref.get("kind") or ""), str(ref.get("name") or "")
        resource = "clusterroles" if kind == "ClusterRole" else "roles"
        own = (obj.get("metadata") or {}).get("name") or ""
        rules = self._rbac.role("" if kind == "ClusterRole" else namespace, role)
        if rules is None:
            raise not_found(plural if kind == "Role" else resource, GROUP, role)
        self._confirm(plural, own, user, namespace, rules)

    def _confirm(self, plural: str, name: str, user: User, namespace: str, wanted: Sequence[Rule]) -> None:
        held, errors = self._rbac.held(user, namespace)
        missing = uncovered(held, wanted)
        if not missing:
            return
        shown = sorted({rule.shown() for rule in compacted(missing)})
        groups = f"[{' '.join(map(go_quote, user.groups))}]"
        who = f"user {go_quote(user.name)} (groups={groups})"
        text = f"{who} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(shown)
        if errors:
            text += f"; resolution errors: [{aggregate(errors)}]"
        raise forbidden(plural, GROUP, name, text)


def _changes_metadata_only(obj: Json, old: Json) -> bool:
    """Whether owner references and finalizers are all that changes."""
    return _compared(obj) == _compared(old)


def _compared(obj: Json) -> Json:
    metadata = {**(obj.get("metadata") or {})}
    for key in ("ownerReferences", "finalizers", "managedFields"):
        metadata.pop(key, None)
    return {**obj, "metadata": metadata}
