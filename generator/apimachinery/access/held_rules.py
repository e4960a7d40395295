"""What users hold, ready for questions, and what that takes.

A role that is *small* is read when it is written, and its rules are merged into the table of every user who has it, so
that an ordinary user's question is a few look-ups. A *large* one is left as it is stored until somebody asks: its table
is its own, made once and apart from the loop, and everybody whom it is bound to is asked about in the same one.

Users with the same grants have the same table. What is kept is weighed, keys too, and dropped past a limit: names and
groups come from clients (impersonation, reviews).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from apimachinery.access.authorization import Attributes
from apimachinery.access.rbac_rules import (
    RbacRule,
    RuleTable,
    decode_rules,
    entries_of,
)

Grant = TypeVar("Grant")
LARGE_BYTES = 64 << 10
SMALL_ENTRIES = 4_096
"""A role above one of these is large."""
MERGED_AT_ONCE = 8_192
"""Entries of small roles that are merged on the loop."""
KEPT_BYTES, KEPT_ROLES_BYTES = 64 << 20, 128 << 20
"""What users' tables take, and what those of large roles do."""
ENTRY_BYTES, WORD_BYTES, USER_BYTES = 350, 150, 500
"""What an entry takes with its words, a word of a rule that is kept as it is, and a user or table besides his name and
groups."""

UserKey = tuple[str, tuple[str, ...]]
"""Name and groups."""


class Role:
    """The rules of a role."""

    __slots__ = ("_report", "_rules", "_value", "entries", "table")

    def __init__(
        self,
        value: bytes = b"",
        rules: tuple[RbacRule, ...] | None = None,
        report: Callable[[str], None] = lambda fault: None,
    ) -> None:
        """Of the stored object, or of rules that are read already; ``report`` is told what is malformed."""
        self._value = value
        self._rules = rules
        self._report = report
        if rules is None and len(value) <= LARGE_BYTES:
            # The text of a small role is let go once its rules are read.
            self._rules, self._value = decode_rules(value, report), b""
        self.entries = SMALL_ENTRIES + 1 if self._rules is None else sum(map(entries_of, self._rules))
        self.table: RuleTable[bool] | None = None

    @property
    def is_large(self) -> bool:
        """Whether it has a table of its own."""
        return self.entries > SMALL_ENTRIES

    @property
    def rules(self) -> tuple[RbacRule, ...]:
        """Its rules; those of a large role are read again each time, which takes long."""
        return decode_rules(self._value, self._report) if self._rules is None else self._rules

    @property
    def weight(self) -> int:
        """What its own table takes."""
        table = self.table
        return (
            USER_BYTES
            if table is None
            else USER_BYTES + ENTRY_BYTES * table.entries + WORD_BYTES * table.words
        )

    def make(self) -> RuleTable[bool]:
        """Its own table, made where there is none; on any thread."""
        table = self.table
        # Two threads may make the same table; the second one wins, and both are right.
        if table is None:
            table = self.table = RuleTable([(True, self.rules)])
        return table


class UserTable(Generic[Grant]):
    """What grants allow; ``find`` is the one by which a request is allowed, None where there is none."""

    __slots__ = ("_large", "errors", "find", "is_slow", "roles", "rules", "weight")

    def __init__(self, granted: Sequence[tuple[Grant, Role]], errors: Sequence[str]) -> None:
        self.errors = tuple(errors)
        self.rules = RuleTable([(grant, role.rules) for grant, role in granted if not role.is_large])
        self._large = [(grant, role.make()) for grant, role in granted if role.is_large]
        self.roles = [role for _, role in granted if role.is_large]
        self.is_slow = self.rules.is_slow or any(table.is_slow for _, table in self._large)
        self.weight = USER_BYTES + ENTRY_BYTES * self.rules.entries + 100 * len(granted)
        # Users without a large role keep the direct path.
        self.find: Callable[[Attributes], Grant | None] = self._find if self._large else self.rules.find

    def _find(self, attributes: Attributes) -> Grant | None:
        found = self.rules.find(attributes)
        if found is not None:
            return found
        for grant, table in self._large:
            if table.find(attributes):
                return grant
        return None


def takes_long(granted: Sequence[tuple[Grant, Role]]) -> bool:
    """Whether a table of these, or a question to it, is not for the loop."""
    merged = 0
    for _, role in granted:
        if not role.is_large:
            merged += role.entries
        elif role.table is None or role.table.is_slow:
            return True
    return merged > MERGED_AT_ONCE


class KeptTables(Generic[Grant]):
    """The tables of users in each namespace ("" for the whole cluster), and those of large roles, within a weight.

    Roles and bindings change on the loop alone, but large objects are admitted on other threads, which ask too. So
    whoever makes a table says which ``generation`` it is of, and it is not kept if that has passed.
    """

    def __init__(self) -> None:
        self.of: dict[str, dict[UserKey, UserTable[Grant]]] = {}
        self.generation = 0
        self._lock = threading.Lock()
        self._shared: dict[str, dict[tuple[Grant, ...], UserTable[Grant]]] = {}
        self._weights: dict[str, int] = {}
        self._weight = 0
        self._roles: dict[Role, int] = {}
        self._roles_weight = 0

    @property
    def weight(self) -> int:
        """In bytes."""
        return self._weight + self._roles_weight

    def shared(
        self, generation: int, scope: str, key: UserKey, grants: tuple[Grant, ...]
    ) -> UserTable[Grant] | None:
        """The table of somebody with the same grants, kept for this user too."""
        with self._lock:
            table = self._shared.get(scope, {}).get(grants)
            # A table made before a write must not answer after it.
            if table is not None and generation == self.generation:
                self._add(scope, key, table, 0)
            return table

    def keep(
        self,
        generation: int,
        scope: str,
        key: UserKey,
        grants: tuple[Grant, ...],
        table: UserTable[Grant],
    ) -> None:
        """Keeps a table that was made, unless questions to it take long: they are asked apart, and make it again."""
        with self._lock:
            if generation != self.generation or key in self.of.get(scope, ()):
                return
            for role in table.roles:
                self._keep_role(role)
            if not table.is_slow and all(role.table is not None for role in table.roles):
                self._add(scope, key, table, table.weight)
                self._shared.setdefault(scope, {})[grants] = table

    def _add(self, scope: str, key: UserKey, table: UserTable[Grant], size: int) -> None:
        name, groups = key
        size += USER_BYTES + 4 * (len(name) + sum(map(len, groups)))
        if self._weight + size > KEPT_BYTES:
            # All at once: tables refer to each other's roles, and are made again on demand.
            self._clear()
            if size > KEPT_BYTES:
                return
        self.of.setdefault(scope, {})[key] = table
        self._weights[scope] = self._weights.get(scope, 0) + size
        self._weight += size

    def _keep_role(self, role: Role) -> None:
        if role in self._roles or role.table is None:
            return
        size = role.weight
        while self._roles and self._roles_weight + size > KEPT_ROLES_BYTES:
            self._drop_role(next(iter(self._roles)))
            self._clear()  # which refers to it
        self._roles[role] = size
        self._roles_weight += size

    def _drop_role(self, role: Role) -> None:
        self._roles_weight -= self._roles.pop(role, 0)
        role.table = None

    def _clear(self) -> None:
        self.of.clear()
        self._shared.clear()
        self._weights.clear()
        self._weight = 0

    def drop_role(self, role: Role) -> None:
        """Forgets the table of a large role."""
        with self._lock:
            self._drop_role(role)

    def drop(self, scope: str) -> None:
        """Forgets the tables of users in a namespace."""
        with self._lock:
            self.generation += 1
            self.of.pop(scope, None)
            self._shared.pop(scope, None)
            self._weight -= self._weights.pop(scope, 0)

    def clear(self) -> None:
        """Forgets the tables of all users; those of large roles stay."""
        with self._lock:
            self.generation += 1
            self._clear()
