"""Many large roles: what a write of one costs, and whom. Work is counted, not timed."""

from __future__ import annotations

import asyncio
import json
import random
import threading

import pytest

from apimachinery.access import held_rules, rbac_rules
from apimachinery.access.authorization import Attributes, Chain
from apimachinery.access.escalation import Escalation
from apimachinery.access.held_rules import KeptTables
from apimachinery.access.rbac import Rbac
from apimachinery.access.rbac_rules import (
    ENTRIES,
    RbacRule,
    RuleTable,
    uncovered,
)
from apimachinery.http.messages import User

EVERYBODY = {"kind": "Group", "name": "system:authenticated"}
RULES = 2_000
ROLES = 10


def stored(name: str, count: int = RULES, verb: str = "get") -> bytes:
    rules = [
        {"verbs": [verb], "apiGroups": ["example.com"], "resources": [f"{name}-{number}"]}
        for number in range(count)
    ]
    return json.dumps({"metadata": {"name": name}, "rules": rules}).encode()


def binding(name: str, role: str, subject: dict = EVERYBODY) -> dict:
    ref = {"kind": "ClusterRole", "name": role}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}


def asked(user: str, resource: str, verb: str = "get", namespace: str = "ns") -> Attributes:
    who = User(user, groups=("system:authenticated",))
    return Attributes(who, verb, namespace, "example.com", "v1", resource)


@pytest.fixture
def counted(monkeypatch):
    """Rules that are read and put into tables, by what does it: the loop, or another thread."""
    count = {"loop": 0, "apart": 0}
    add, read = RuleTable._add, held_rules.decode_rules  # type: ignore[attr-defined]

    def where() -> str:
        return "loop" if threading.current_thread() is threading.main_thread() else "apart"

    def adding(self, source, rule):
        count[where()] += 1
        add(self, source, rule)

    def reading(value, report):
        rules = read(value, report)
        count[where()] += len(rules)
        return rules

    monkeypatch.setattr(RuleTable, "_add", adding)
    monkeypatch.setattr(held_rules, "decode_rules", reading)
    return count


def filled() -> Rbac:
    rbac = Rbac()
    for number in range(ROLES):
        name = f"r{number}"
        rbac._take("ClusterRole", "", name, stored(name))
        rbac.put("ClusterRoleBinding", binding(name, name))
    rbac.put(
        "ClusterRole", {"metadata": {"name": "small"}, "rules": [json.loads(stored("s", 1))["rules"][0]]}
    )
    rbac.put("ClusterRoleBinding", binding("small", "small"))
    return rbac


def test_a_write_of_one_of_many_large_roles_costs_the_loop_nothing_and_the_others_are_not_read_again(counted):
    async def run() -> None:
        rbac = filled()
        assert len(stored("r0")) > held_rules.LARGE_BYTES
        assert (await rbac.ask(asked("ann", "r7-3"))).allowed
        assert counted["apart"] == 2 * ROLES * RULES + 1
        assert rbac.decide(asked("ann", "r7-3")).allowed, "it is ready now"
        # Another user of the same groups shares all of it.
        before = dict(counted)
        assert rbac.decide(asked("bob", "r7-3")).allowed
        assert counted == before
        rbac._take("ClusterRole", "", "r7", stored("r7", verb="list"))
        assert counted["loop"] == before["loop"], "not read on the loop"
        assert rbac.decide(asked("ann", "r7-3")) is None, "it is not made on the loop"
        assert not (await rbac.ask(asked("ann", "r7-3"))).allowed
        assert (await rbac.ask(asked("bob", "r7-3", "list"))).allowed
        # The role that was written, read and put into its table, and the small role's rule.
        assert counted["apart"] - before["apart"] <= 2 * RULES + 1
        assert counted["loop"] == before["loop"]

    asyncio.run(run())


def test_a_small_role_written_next_to_large_ones_leaves_them_as_they_are(counted):
    async def run() -> None:
        rbac = filled()
        await rbac.ask(asked("ann", "r7-3"))
        before = counted["loop"] + counted["apart"]
        rbac.put("ClusterRole", {"metadata": {"name": "other"}, "rules": []})
        assert rbac.decide(asked("ann", "r7-3")).allowed
        assert counted["loop"] + counted["apart"] - before <= 1

    asyncio.run(run())


def test_many_small_roles_of_one_user_are_merged_apart(counted):
    async def run() -> None:
        rbac = Rbac()
        for number in range(100):
            name = f"r{number}"
            rbac._take("ClusterRole", "", name, stored(name, 100))
            rbac.put("ClusterRoleBinding", binding(name, name))
        counted["loop"] = 0
        assert rbac.decide(asked("ann", "r7-3")) is None
        assert counted["loop"] == 0
        assert (await rbac.ask(asked("ann", "r7-3"))).allowed
        assert rbac.decide(asked("ann", "r7-3")).allowed and counted["loop"] == 0

    asyncio.run(run())


def test_who_cannot_wait_is_answered_all_the_same():
    rbac = filled()
    assert rbac.settle(asked("ann", "r7-3")).allowed
    assert Chain([rbac]).settle(asked("ann", "r7-4")).allowed
    assert not Chain([rbac]).settle(asked("ann", "r7-4", "delete")).allowed


def test_large_and_small_say_the_same(monkeypatch):
    chance = random.Random(5)
    words = ["a", "b", "c", "*"]

    def some() -> list[str]:
        return chance.sample(words, chance.randint(1, 2))

    for _ in range(60):
        roles = []
        for _ in range(4):
            rules = [
                {
                    "verbs": some(),
                    "apiGroups": some(),
                    "resources": [chance.choice(["a", "b", "*", "a/x", "*/x"])],
                    "resourceNames": chance.choice([[], [], ["n"]]),
                }
                for _ in range(3)
            ]
            roles.append({"rules": rules})
        found = []
        for small in (4_096, 2):
            monkeypatch.setattr(held_rules, "SMALL_ENTRIES", small)
            rbac = Rbac()
            for number, role in enumerate(roles):
                rbac.put("ClusterRole", {**role, "metadata": {"name": f"r{number}"}})
                rbac.put("ClusterRoleBinding", binding(f"b{number}", f"r{number}"))
            asks = [
                Attributes(User("u", groups=("system:authenticated",)), v, "ns", g, "v1", r, s, n)
                for v in "ad"
                for g in "ad"
                for r in "ad"
                for s in ("", "x")
                for n in ("", "n")
            ]
            found.append([rbac.settle(each).allowed for each in asks])
        assert found[0] == found[1]


def test_tables_are_weighed_and_dropped(monkeypatch):
    """Names and groups come from clients: users that are asked about once do not stay for ever, nor do roles that
    multiply."""
    monkeypatch.setattr(held_rules, "KEPT_BYTES", 1 << 20)
    monkeypatch.setattr(held_rules, "KEPT_ROLES_BYTES", 1 << 20)
    rbac = filled()
    for number in range(60):
        user = User(f"u{number}", groups=("x" * 10_000, "system:authenticated"))
        assert rbac.settle(Attributes(user, "get", f"ns{number}", "example.com", "v1", "r3-7")).allowed
        assert rbac.weight <= 2 << 20
    many = tuple(f"v{number}" for number in range(60))
    table = RuleTable([("huge", [RbacRule(many, many, (str(n),)) for n in range(100)])])
    assert table.entries <= ENTRIES
    assert table.find(Attributes(User("x"), "v1", "", "v2", "", "99")) == "huge"
    assert table.find(Attributes(User("x"), "v1", "", "v2", "", "100")) is None


def test_ten_roles_of_20000_rules_are_all_kept():
    role = held_rules.Role(stored("r", 20_000))
    assert role.is_large
    role.make()
    assert 10 * role.weight < held_rules.KEPT_ROLES_BYTES


def test_a_table_that_was_overtaken_is_not_kept():
    kept: KeptTables[str] = KeptTables()
    generation = kept.generation
    table: held_rules.UserTable[str] = held_rules.UserTable([], [])
    kept.clear()
    kept.keep(generation, "", ("ann", ()), (), table)
    assert not kept.of
    kept.keep(kept.generation, "", ("ann", ()), (), table)
    assert kept.of


def test_what_is_covered_is_found_without_comparing_each_with_each(monkeypatch):
    compared = []
    covers = rbac_rules._covers
    monkeypatch.setattr(rbac_rules, "_covers", lambda own, atom: compared.append(1) or covers(own, atom))
    held = [RbacRule(("get",), ("",), (f"r{number}",)) for number in range(3_000)]
    assert uncovered(held, held) == []
    assert uncovered(held, [RbacRule(("get",), ("",), ("x",))]) == [RbacRule(("get",), ("",), ("x",))]
    assert len(compared) == 0


def test_escalation_against_many_rules_is_looked_at_apart():
    rbac = filled()
    escalation = Escalation(rbac, Chain([rbac]))
    user = User("ann", groups=("system:authenticated",))
    mine = json.loads(stored("r3", 10))
    assert not escalation.may("clusterroles", "", "", user, mine)
    assert escalation.takes_long("clusterroles", "", user, mine)
    escalation.check("clusterroles", "", "", user, mine, None)


def test_many_groups_are_looked_up_apart():
    rbac = filled()
    groups = (*(f"g{number}" for number in range(5_000)), "system:authenticated")
    many = Attributes(User("a", groups=groups), "get", "ns", "example.com", "v1", "r1-7")
    assert rbac.decide(many) is None
    verdict = asyncio.run(rbac.ask(many))
    assert verdict.allowed and verdict == rbac.settle(asked("a", "r1-7"))


def test_a_large_binding_is_read_apart_and_gives_what_a_small_one_does(monkeypatch):
    subjects = [
        *({"kind": "User", "name": f"u{number}"} for number in range(3_000)),
        {"kind": "ServiceAccount", "name": "sa", "namespace": "ns"},
        EVERYBODY,
        {"kind": "User", "name": "late"},
    ]
    large = {**binding("large", "r1"), "subjects": subjects}

    def taken(limit: int) -> Rbac:
        monkeypatch.setattr("apimachinery.access.rbac.LARGE_BYTES", limit)
        rbac = Rbac()
        rbac._take("ClusterRole", "", "r1", stored("r1", 10))
        rbac._take("ClusterRoleBinding", "", "large", json.dumps(large).encode())
        return rbac

    apart, at_once = taken(1 << 10), taken(1 << 30)
    first = asked("u7", "r1-3")
    assert apart.decide(first) is None
    assert asyncio.run(apart.ask(first)) == at_once.decide(first)
    for user in ("u2999", "late", "system:serviceaccount:ns:sa", "nobody"):
        who = asked(user, "r1-3")
        assert apart.decide(who) == at_once.decide(who)
        assert apart.decide(who).allowed
    alone = Attributes(User("nobody"), "get", "ns", "example.com", "v1", "r1-3")
    assert not apart.decide(alone).allowed
    assert [found.subjects for found in apart.bindings()] == [found.subjects for found in at_once.bindings()]
    apart._take("ClusterRoleBinding", "", "large", json.dumps(binding("large", "r1")).encode())
    assert apart.decide(first).reason.endswith('to Group "system:authenticated"')
    apart._take("ClusterRoleBinding", "", "large", json.dumps(large).encode())
    apart.drop("ClusterRoleBinding", "", "large")
    assert not apart.decide(first).allowed
    assert not [*apart.bindings()]


@pytest.mark.parametrize("filler", [1, 5_000])
def test_malformed_roles_and_bindings_give_nothing_whatever_their_size(filler, caplog):
    """Small ones are read when they are written, large ones when somebody asks."""
    rbac = Rbac()
    rbac._take("ClusterRole", "", "all", b'{"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]}')
    eve, bob = ({"kind": "User", "name": name, "apiGroup": "x" * 20} for name in ("eve", "bob"))
    for name, ref, subjects in (
        ("a", 5, [eve] * filler),
        ("b", {"kind": "ClusterRole", "name": ["all"]}, [eve] * filler),
        ("c", {"kind": "ClusterRole", "name": "all"}, [{**eve, "name": {"eve": 1}}] * filler),
        ("d", {"kind": "ClusterRole", "name": "all"}, [7, *[bob] * filler]),
    ):
        value = json.dumps({"metadata": {"name": name}, "roleRef": ref, "subjects": subjects}).encode()
        rbac._take("ClusterRoleBinding", "", name, value)
    rbac._take("ClusterRoleBinding", "", "e", b"[" * 3 if filler == 1 else b"[" * 100_000)
    assert not rbac.settle(asked("eve", "samples")).allowed
    # What is well-formed of a binding counts.
    assert rbac.settle(asked("bob", "samples")).allowed
    assert {record.object for record in caplog.records} == {"a", "b", "c", "d", "e"}
    rbac._take("ClusterRoleBinding", "", "d", b"{}")
    assert not rbac.settle(asked("bob", "samples")).allowed
