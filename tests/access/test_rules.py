"""Rules of roles: what they allow, whether the index says the same as reading rule by rule, what escalation reports."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apimachinery.access.authorization import Attributes
from apimachinery.access.bootstrap import mended, read_rule, wanted_objects
from apimachinery.access.rbac import Rbac
from apimachinery.access.rbac_rules import (
    ATOMS,
    RbacRule,
    RuleTable,
    compacted,
    read_rules,
    uncovered,
)
from apimachinery.http.messages import User

VERBS = ("get", "list", "*", "impersonate-on:user-info:get")
GROUPS = ("", "apps", "*")
RESOURCES = ("pods", "pods/log", "*", "*/log", "*/scale", "deployments/scale")
NAMES = ("a", "b")
PATHS = ("/healthz", "/api/*", "/api", "*", "/metrics/*")


def some(values: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), max_size=3, unique=True).map(tuple)


RULES = st.one_of(
    st.builds(RbacRule, some(VERBS), some(GROUPS), some(RESOURCES), some(NAMES)),
    st.builds(RbacRule, verbs=some(VERBS), paths=some(PATHS)),
)
ASKED = st.one_of(
    st.builds(
        Attributes,
        st.just(User("ann")),
        st.sampled_from(("get", "list", "delete", "impersonate-on:user-info:get")),
        st.just("ns"),
        st.sampled_from(("", "apps", "batch")),
        st.just("v1"),
        st.sampled_from(("pods", "deployments")),
        st.sampled_from(("", "log", "scale")),
        st.sampled_from(("", "a", "c")),
    ),
    st.builds(
        lambda verb, path: Attributes(User("ann"), verb, path=path, is_resource=False),
        st.sampled_from(("get", "post")),
        st.sampled_from(("/healthz", "/api", "/api/", "/api/v1", "/apis", "/metrics")),
    ),
)


@given(st.lists(RULES, max_size=6), ASKED)
def test_the_index_says_what_the_rules_say_one_by_one(rules, asked):
    table: RuleTable[str] = RuleTable([("source", rules)])
    assert (table.find(asked) is not None) == any(rule.allows(asked) for rule in rules)


@given(st.lists(RULES, max_size=4), st.lists(RULES, max_size=3), ASKED)
def test_what_is_covered_allows_no_more(held, wanted, asked):
    if not uncovered(held, wanted) and any(rule.allows(asked) for rule in wanted):
        assert any(rule.allows(asked) for rule in held)


@given(st.lists(RULES, max_size=4))
def test_everybody_covers_himself(rules):
    assert uncovered(rules, rules) == []


def test_a_missing_right_is_reported_by_resource():
    held = [RbacRule(("get",), ("",), ("configmaps",))]
    wanted = [
        RbacRule(("get", "list", "watch"), ("", "apps"), ("configmaps",)),
        RbacRule(verbs=("get",), paths=("/x",)),
    ]
    assert sorted(rule.shown() for rule in compacted(uncovered(held, wanted))) == [
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["list" "watch"]}',
        '{APIGroups:["apps"], Resources:["configmaps"], Verbs:["get" "list" "watch"]}',
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
    ]


def test_a_huge_rule_is_not_taken_apart():
    many = tuple(f"v{number}" for number in range(1000))
    huge = RbacRule(many, many, many)
    assert uncovered([RbacRule(("get",), ("*",), ("*",))], [huge]) == [huge]
    assert uncovered([RbacRule(("*",), ("*",), ("*",))], [huge]) == []
    assert len(many) ** 3 > ATOMS
    table: RuleTable[str] = RuleTable([("huge", [huge])])
    assert table.find(Attributes(User("x"), "v1", "", "v2", "", "v3")) == "huge"


def role(name: str, *rules: str, namespace: str = "") -> dict:
    return {"metadata": {"name": name, "namespace": namespace}, "rules": [read_rule(rule) for rule in rules]}


def binding(
    name: str, role_name: str, *subjects: dict, namespace: str = "", kind: str = "ClusterRole"
) -> dict:
    ref = {"kind": kind, "name": role_name}
    return {"metadata": {"name": name, "namespace": namespace}, "roleRef": ref, "subjects": list(subjects)}


ANN = {"kind": "User", "name": "ann"}
ROBOT = {"kind": "ServiceAccount", "name": "robot"}


def test_bindings_come_and_go():
    rbac = Rbac()
    asked = Attributes(User("ann", groups=("devs",)), "get", "shop", "", "v1", "pods")
    assert not rbac.decide(asked).allowed
    rbac.put("RoleBinding", binding("b", "looker", {"kind": "Group", "name": "devs"}, ANN, namespace="shop"))
    assert rbac.decide(asked).reason == 'RBAC: clusterrole.rbac.authorization.k8s.io "looker" not found'
    rbac.put("ClusterRole", role("looker", "get core pods"))
    assert rbac.decide(asked).reason == (
        'RBAC: allowed by RoleBinding "b/shop" of ClusterRole "looker" to Group "devs"'
    )
    elsewhere = Attributes(asked.user, "get", "other", "", "v1", "pods")
    assert not rbac.decide(elsewhere).allowed
    rbac.put("ClusterRoleBinding", binding("all", "looker", ANN))
    assert rbac.decide(elsewhere).allowed
    rbac.put("ClusterRole", role("looker", "list core pods"))
    assert not rbac.decide(asked).allowed and not rbac.decide(elsewhere).allowed
    rbac.drop("ClusterRole", "", "looker")
    rbac.drop("RoleBinding", "shop", "b")
    rbac.drop("ClusterRoleBinding", "", "all")
    assert rbac.decide(asked).reason == ""


def test_a_service_account_without_a_namespace_is_of_the_binding_s():
    rbac = Rbac()
    rbac.put("Role", role("r", "get core pods", namespace="shop"))
    rbac.put("RoleBinding", binding("b", "r", ROBOT, namespace="shop", kind="Role"))
    robot = User("system:serviceaccount:shop:robot")
    verdict = rbac.decide(Attributes(robot, "get", "shop", "", "v1", "pods"))
    assert (
        verdict.reason == 'RBAC: allowed by RoleBinding "b/shop" of Role "r" to ServiceAccount "robot/shop"'
    )
    other = User("system:serviceaccount:other:robot")
    assert not rbac.decide(Attributes(other, "get", "shop", "", "v1", "pods")).allowed
    rbac.put("ClusterRoleBinding", binding("c", "r", ROBOT))
    assert not rbac.decide(Attributes(robot, "get", "other", "", "v1", "pods")).allowed


def test_bootstrap_roles_are_mended_but_never_against_a_user():
    wanted = {(w.kind, w.namespace, w.name): w.obj for w in wanted_objects()}
    assert len(wanted) == 133
    view = wanted["ClusterRole", "", "system:discovery"]
    assert mended(view, view) is None
    changed = {**view, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/own"]}]}
    again = mended(changed, view)
    assert again is not None and again["rules"][0] == changed["rules"][0]
    assert uncovered(read_rules(again["rules"]), read_rules(view["rules"])) == []
    mine = {
        **changed,
        "metadata": {
            **view["metadata"],
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"},
        },
    }
    assert mended(mine, view) is None
    bound = wanted["ClusterRoleBinding", "", "system:discovery"]
    lacking = {**bound, "subjects": [{"kind": "User", "name": "ann"}]}
    assert mended(lacking, bound)["subjects"] == [{"kind": "User", "name": "ann"}, *bound["subjects"]]
