"""Nobody gives rights that he does not hold: checks of writes of roles and bindings.

A role may be written by who holds all its rules in its scope, or the verb ``escalate`` on it; a binding by who holds
all rules of the role it binds, or the verb ``bind`` on that role. Members of system:masters, and the server's own loops
(which have no user), are not checked. Nor is a change of no more than owner references and finalizers, which the
garbage collector edits. Every other change is, even where the rules stay as they are: a label decides which roles with
an ``aggregationRule`` gather them. Who writes such a role, before or after, must hold everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    RbacRule,
    compacted,
    read_rules,
    uncovered,
)
from apimachinery.http.messages import User
from apimachinery.meta.errors import ApiError, bad_request, forbidden, not_found, plain_failure
from apimachinery.meta.json import Json
from apimachinery.meta.printing import go_quote

ROLES = ("roles", "clusterroles")
MANY_RULES = 500
"""From so many rules on a role is compared apart from the loop."""
_MAPS = ("labels", "annotations", "matchLabels")
"""Fields whose members are entries, not fields: an empty value is one, and a selector may ask for its key alone."""
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
            # Then check refuses it, with the text of kube-apiserver.
            if kind not in ("ClusterRole", "Role"):
                return False
            verb, resource = "bind", "clusterroles" if kind == "ClusterRole" else "roles"
        # An authorizer that must ask somebody else is not asked here: without the verb, the rules are compared.
        # Namespaced as the binding is, also for the ClusterRole that it names.
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
        """Checks a write of those who ``may`` not write whatever they like; on any thread. Raises ApiError 403 for one
        that would give more than the user holds, 404 for a binding to a role that does not exist, 400 for one to a Role
        of no namespace, 500 for one to a kind that is no role."""
        if old is not None and _changes_only_what_garbage_does(obj, old):
            return
        if plural in ROLES:
            self._check_role(plural, namespace, name, user, obj, old)
        else:
            self._check_binding(plural, namespace, user, obj)

    def _check_role(
        self, plural: str, namespace: str, name: str, user: User, obj: Json, old: Json | None
    ) -> None:
        own = (obj.get("metadata") or {}).get("name") or name
        self._confirm(plural, own, user, namespace, read_rules(obj.get("rules")))
        if not (_gathers(obj) or (old is not None and _gathers(old))):
            return
        try:
            # It gathers whatever has its labels, now and later.
            self._confirm(plural, own, user, namespace, FULL_AUTHORITY)
        except ApiError:
            raise forbidden(plural, GROUP, own, _AGGREGATES) from None

    def _check_binding(self, plural: str, namespace: str, user: User, obj: Json) -> None:
        ref = obj.get("roleRef") or {}
        kind, role = str(ref.get("kind") or ""), str(ref.get("name") or "")
        if kind not in ("ClusterRole", "Role"):
            # As kube-apiserver has it: the role is looked up before the binding is validated.
            raise plain_failure(f"unsupported role reference kind: {go_quote(kind)}")
        if kind == "Role" and not namespace:
            raise bad_request("Namespace parameter required.")
        own = (obj.get("metadata") or {}).get("name") or ""
        rules = self._rbac.role("" if kind == "ClusterRole" else namespace, role)
        if rules is None:
            raise not_found(plural, GROUP, role)
        self._confirm(plural, own, user, namespace, rules)

    def _confirm(
        self, plural: str, name: str, user: User, namespace: str, wanted: Sequence[RbacRule]
    ) -> None:
        # A role that is missing is called by the kind that is written, as kube-apiserver's storage calls it.
        held, errors = self._rbac.held(
            user, namespace, lambda binding: not_found(plural, GROUP, binding.role_name).message
        )
        missing = uncovered(held, wanted)
        if not missing:
            return
        # Compacted and sorted, as in the message of kube-apiserver.
        shown = sorted({rule.shown() for rule in compacted(missing)})
        groups = f"[{' '.join(map(go_quote, user.groups))}]"
        who = f"user {go_quote(user.name)} (groups={groups})"
        text = f"{who} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(shown)
        if errors:
            text += f"; resolution errors: [{aggregate(errors)}]"
        raise forbidden(plural, GROUP, name, text)


def _gathers(role: Json) -> bool:
    """Whether a role has the rules of others; an ``aggregationRule`` without selectors is for validation to refuse."""
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _changes_only_what_garbage_does(obj: Json, old: Json) -> bool:
    return bool(_compared(obj) == _compared(old))


def _compared(obj: Json) -> Any:
    metadata = {**(obj.get("metadata") or {})}
    # The garbage collector edits the first two; managedFields change with every write.
    for key in ("ownerReferences", "finalizers", "managedFields"):
        metadata.pop(key, None)
    return _without_empties({**obj, "metadata": metadata})


def _without_empties(value: Any) -> Any:
    """As Go compares objects: what is null, empty or absent is the same, but for structures behind a pointer, of which
    ``aggregationRule`` is the one in these kinds."""
    if isinstance(value, dict):
        members = ((key, _without_empties(member)) for key, member in value.items())
        return {
            key: (value[key] if key in _MAPS else member)
            for key, member in members
            if (value[key] if key in _MAPS else member) not in (None, "", [], {})
            or (key == "aggregationRule" and member is not None)
        }
    return [_without_empties(item) for item in value] if isinstance(value, list) else value
