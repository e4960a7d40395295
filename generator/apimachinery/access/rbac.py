"""Role-based access control: who holds which rules, kept ready so that a decision costs microseconds.

Theory. A binding gives the rules of one role to its subjects: a ClusterRoleBinding everywhere, a RoleBinding in its
namespace. A decision needs the rules of the bindings that name the user or one of his groups, so:

- bindings are indexed by subject, and by namespace ("" for the whole cluster);
- what a user holds in one of them is a ``UserTable``, made at his first question there and kept until a binding or role
  that could change it is written. A Role or RoleBinding touches the tables of its namespace, a ClusterRoleBinding those
  of the cluster, a ClusterRole all. The table of a large role is its own and stays until that role is written;
- what takes long (reading a large role, merging very many small ones) is not done on the loop: ``decide`` has no answer
  then, ``ask`` finds it apart. ``settle`` finds it here and now, for who cannot wait.

The index is called with every write by the watch cache before the writer is answered, so no decision is older than the
newest answered write. The same class answers offline questions: ``put`` it what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from apimachinery.access.authorization import (
    NO_OPINION,
    Attributes,
    PathRule,
    ResourceRule,
    Rules,
    Verdict,
    aggregate,
)
from apimachinery.access.bindings import (
    GROUP,
    KINDS,
    Binding,
    Grant,
    Holder,
    Key,
    LargeBinding,
    decode_binding,
    no_role,
    read_binding,
)
from apimachinery.access.held_rules import (
    LARGE_BYTES,
    KeptTables,
    Role,
    UserKey,
    UserTable,
    takes_long,
)
from apimachinery.access.malformed import report
from apimachinery.access.rbac_rules import RbacRule, read_rules
from apimachinery.http.messages import User
from apimachinery.http.steps import LONG, compute
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache

MANY_GRANTS = 2_000
"""From so many bindings of a user on they are gone through apart..."""
MANY_GROUPS = 2_000
"""...and from so many groups on, which a review may name; a client has far fewer."""


class Rbac:
    """The authorizer, and what else is asked of roles and bindings."""

    def __init__(self) -> None:
        self._roles: dict[Key, Role] = {}
        self._bindings: dict[Key, Binding] = {}
        self._by_holder: dict[str, dict[Holder, dict[str, Grant]]] = {}
        self._large: dict[str, dict[str, LargeBinding]] = {}
        self._kept: KeptTables[Grant] = KeptTables()
        self._tables = self._kept.of
        self._turn = asyncio.Lock()

    @property
    def weight(self) -> int:
        """Bytes that are kept of what users hold."""
        return self._kept.weight

    def follow(self, cache: WatchCache) -> None:
        """Takes all roles and bindings of a storage, now and from now on."""
        for plural, kind in KINDS.items():
            prefix = f"/{GROUP}/{plural}/"
            resource = cache.resource(prefix)

            def heard(event: Event, kind: str = kind, prefix: str = prefix) -> None:
                namespace, _, name = event.record.key[len(prefix) :].rpartition("/")
                if event.deleted:
                    self.drop(kind, namespace, name)
                else:
                    self._take(kind, namespace, name, event.record.value)

            # Listen before reading: an event in between is applied twice, which does no harm; a gap would.
            resource.listen(prefix, heard)
            for record in resource.snapshot(prefix).records:
                namespace, _, name = record.key[len(prefix) :].rpartition("/")
                self._take(kind, namespace, name, record.value)

    # What there is.

    def _take(self, kind: str, namespace: str, name: str, value: bytes) -> None:
        if kind in ("ClusterRole", "Role"):
            self._set_role((namespace, name), Role(value, report=partial(report, kind, namespace, name)))
            self._touch(kind, namespace)
        # Reading a large binding takes long; it is indexed when somebody asks.
        elif len(value) > LARGE_BYTES:
            self._unindex((namespace, name))
            self._large.setdefault(namespace, {})[name] = LargeBinding(value, namespace, name)
            self._touch(kind, namespace)
        else:
            self._bind(decode_binding(value, namespace, name))
            self._touch(kind, namespace)

    def put(self, kind: str, obj: dict[str, Any]) -> None:
        """Takes a role or binding, new or changed."""
        metadata = obj.get("metadata") or {}
        namespace = "" if kind.startswith("Cluster") else str(metadata.get("namespace") or "")
        name = str(metadata.get("name") or "")
        if kind in ("ClusterRole", "Role"):
            self._set_role((namespace, name), Role(rules=read_rules(obj.get("rules"))))
        else:
            self._bind(read_binding(obj, namespace, name))
        self._touch(kind, namespace)

    def drop(self, kind: str, namespace: str, name: str) -> None:
        """Forgets a role or binding."""
        if kind in ("ClusterRole", "Role"):
            self._set_role((namespace, name), None)
        else:
            self._unindex((namespace, name))
        self._touch(kind, namespace)

    def _set_role(self, key: Key, role: Role | None) -> None:
        old = self._roles.pop(key, None)
        if old is not None:
            # A large role's table goes with it.
            self._kept.drop_role(old)
        if role is not None:
            self._roles[key] = role

    def _bind(self, binding: Binding) -> None:
        self._unindex((binding.namespace, binding.name))
        self._bindings[binding.namespace, binding.name] = binding
        self._index(binding)

    def _index(self, binding: Binding) -> None:
        holders = self._by_holder.setdefault(binding.namespace, {})
        for position, subject in enumerate(binding.subjects):
            holder = subject.holder(binding.namespace)
            if holder is not None:
                # The first subject counts, since reasons name it.
                holders.setdefault(holder, {}).setdefault(binding.name, Grant(binding, position))

    def _unindex(self, key: Key) -> None:
        namespace, name = key
        large = self._large.get(namespace)
        if large is not None and large.pop(name, None) is not None and not large:
            del self._large[namespace]
        binding = self._bindings.pop(key, None)
        if binding is None:
            return
        # Without subjects a binding has no place here, and the last of a namespace takes the place with it.
        holders = self._by_holder.get(binding.namespace)
        if holders is None:
            return
        for subject in binding.subjects:
            holder = subject.holder(binding.namespace)
            if holder is not None and holder in holders:
                holders[holder].pop(binding.name, None)
                if not holders[holder]:
                    del holders[holder]
        if not holders:
            del self._by_holder[binding.namespace]

    def _touch(self, kind: str, namespace: str) -> None:
        if kind == "ClusterRole":
            # A binding of any namespace may name a ClusterRole.
            self._kept.clear()
        else:
            self._kept.drop(namespace)

    # Questions.

    def decide(self, attributes: Attributes) -> Verdict | None:
        user = attributes.user
        key = (user.name, user.groups)
        cluster = self._table("", key)
        if cluster is None:
            return None
        grant = cluster.find(attributes)
        if grant is not None:
            return grant.verdict
        # Errors of bindings only matter where nobody allows.
        errors = cluster.errors
        if attributes.namespace:
            local = self._table(attributes.namespace, key)
            if local is None:
                return None
            grant = local.find(attributes)
            if grant is not None:
                return grant.verdict
            errors += local.errors
        return Verdict(reason=f"RBAC: {aggregate(errors)}") if errors else NO_OPINION

    async def ask(self, attributes: Attributes) -> Verdict:
        # One after the other: who waited finds what was made for those before.
        async with self._turn:
            verdict = self.decide(attributes)
            if verdict is not None:
                return verdict
            return await compute(LONG, self._judge, attributes)

    def settle(self, attributes: Attributes) -> Verdict:
        """The verdict here and now, on any thread, whatever it takes."""
        return self.decide(attributes) or self._judge(attributes)

    def _judge(self, attributes: Attributes) -> Verdict:
        user = attributes.user
        key = (user.name, user.groups)
        errors: tuple[str, ...] = ()
        for scope in ("", attributes.namespace) if attributes.namespace else ("",):
            table = self._tables.get(scope, {}).get(key)
            if table is None:
                # The generation before the grants: a write in between makes it old, so the table is not kept.
                generation = self._kept.generation
                grants = tuple(self._grants(scope, key))
                table = self._make(grants)
                self._kept.keep(generation, scope, key, grants, table)
            grant = table.find(attributes)
            if grant is not None:
                return grant.verdict
            errors += table.errors
        return Verdict(reason=f"RBAC: {aggregate(errors)}") if errors else NO_OPINION

    def holds_much(self, user: User, namespace: str) -> bool:
        """Whether it takes long to go through what a user holds."""
        scopes = ("", namespace) if namespace else ("",)
        key = (user.name, user.groups)
        return any(self._many_grants(scope, key) for scope in scopes) or any(
            (role := self._roles.get(grant.binding.role)) is not None and role.is_large
            for grant in self.grants(user, namespace)
        )

    def rules_for(self, user: User, namespace: str) -> Rules:
        rules = Rules([], [])
        held, errors = self.held(user, namespace)
        for rule in held:
            if rule.resources:
                rules.resources.append(ResourceRule(rule.verbs, rule.groups, rule.resources, rule.names))
            if rule.paths:
                rules.paths.append(PathRule(rule.verbs, rule.paths))
        rules.error = aggregate(errors)
        return rules

    def held(
        self, user: User, namespace: str, fault: Callable[[Binding], str] = no_role
    ) -> tuple[list[RbacRule], list[str]]:
        """All rules that a user holds in a namespace, and which bindings name roles that do not exist."""
        rules: list[RbacRule] = []
        errors: list[str] = []
        for grant in self.grants(user, namespace):
            role = self.role_of(grant.binding)
            if role is None:
                errors.append(fault(grant.binding))
            else:
                rules += role
        return rules, errors

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """The bindings that apply to a user: of the cluster, then of a namespace, each by name."""
        for scope in ("", namespace) if namespace else ("",):
            yield from self._grants(scope, (user.name, user.groups))

    def is_large(self, namespace: str, name: str) -> bool:
        """Whether reading the rules of a role takes long."""
        role = self._roles.get((namespace, name))
        return role is not None and role.is_large

    def bindings(self) -> Iterator[Binding]:
        """All bindings."""
        yield from self._bindings.values()
        for large in self._large.values():
            for binding in large.values():
                yield binding.read()

    def role_of(self, binding: Binding) -> tuple[RbacRule, ...] | None:
        """The rules of a binding's role, None where there is no such role."""
        return self.role(*binding.role)

    def role(self, namespace: str, name: str) -> tuple[RbacRule, ...] | None:
        """The rules of a Role, or of a ClusterRole where the namespace is empty."""
        role = self._roles.get((namespace, name))
        return None if role is None else role.rules

    def _many_grants(self, scope: str, key: UserKey) -> bool:
        if not all(binding.is_read for binding in self._large.get(scope, {}).values()):
            return True
        holders = self._by_holder.get(scope)
        if not holders:
            return False
        name, groups = key
        count = len(holders.get(("user", name), ()))
        for group in groups:
            count += len(holders.get(("group", group), ()))
        return count > MANY_GRANTS

    def _grants(self, scope: str, key: UserKey) -> list[Grant]:
        """On any thread: what the loop may change meanwhile is copied at once."""
        holders = self._by_holder.get(scope, {})
        name, groups = key
        found: dict[str, Grant] = dict(holders.get(("user", name), ()))
        for group in groups:
            for binding_name, grant in list(holders.get(("group", group), {}).items()):
                # The first subject that applies is the one that is named as the reason.
                other = found.get(binding_name)
                if other is None or grant.position < other.position:
                    found[binding_name] = grant
        if large := list(self._large.get(scope, {}).items()):
            asked = [("user", name), *(("group", group) for group in groups)]
            for binding_name, binding in large:
                if (granted := binding.grant(asked)) is not None:
                    found[binding_name] = granted
        return [found[binding_name] for binding_name in sorted(found)]

    def _table(self, scope: str, key: UserKey) -> UserTable[Grant] | None:
        """What a user holds; None where finding that takes long."""
        if len(key[1]) > MANY_GROUPS:
            return None
        tables = self._tables.get(scope)
        if tables is not None and (table := tables.get(key)) is not None:
            return table
        if self._many_grants(scope, key):
            return None
        generation = self._kept.generation
        grants = tuple(self._grants(scope, key))
        # Users with the same grants share a table.
        shared = self._kept.shared(generation, scope, key, grants)
        if shared is not None:
            return shared
        if takes_long(self._granted(grants)):
            return None
        table = self._make(grants)
        self._kept.keep(generation, scope, key, grants, table)
        # Slow tables answer apart, through ``ask``.
        return None if table.is_slow else table

    def _granted(self, grants: tuple[Grant, ...]) -> list[tuple[Grant, Role]]:
        found = ((grant, self._roles.get(grant.binding.role)) for grant in grants)
        return [(grant, role) for grant, role in found if role is not None]

    def _make(self, grants: tuple[Grant, ...]) -> UserTable[Grant]:
        granted = self._granted(grants)
        errors = []
        if len(granted) < len(grants):
            there = {grant for grant, _ in granted}
            errors = [no_role(grant.binding) for grant in grants if grant not in there]
        return UserTable(granted, errors)
