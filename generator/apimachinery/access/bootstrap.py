"""Makes the roles and bindings that a cluster starts with, and fixes them at each start.

What a user changed stays: a role gets only the rules that are missing, a binding only the subjects; a role or binding
with the annotation ``rbac.authorization.kubernetes.io/autoupdate: "false"`` is left as it is. A bootstrap binding that
names another role is made again, since a binding cannot change its role.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apimachinery.access.bindings import GROUP
from apimachinery.access.bootstrap_roles import (
    AGGREGATED,
    AGGREGATING,
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    ROLES,
)
from apimachinery.access.controller_roles import CONTROLLER_ROLES
from apimachinery.access.rbac_rules import RbacRule, read_rules, uncovered
from apimachinery.meta.json import Json

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
AGGREGATE_TO = "rbac.authorization.k8s.io/aggregate-to-"
CONTROLLER = "system:controller:"


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object that a cluster starts with."""

    kind: str
    namespace: str
    name: str
    obj: Json


def read_rule(text: str) -> Json:
    """A rule of ``bootstrap_roles`` as the API has it."""
    verbs, *rest = text.split(" ")
    rule: Json = {"verbs": verbs.split(",")}
    if rest[0].startswith("/") or (rest[0] == "*" and len(rest) == 1):
        rule["nonResourceURLs"] = rest[0].split(",")
        return rule
    rule["apiGroups"] = ["" if group == "core" else group for group in rest[0].split(",")]
    rule["resources"] = rest[1].split(",")
    if len(rest) > 2:
        rule["resourceNames"] = rest[2].split(",")
    return rule


def wanted_objects(*, metrics: bool = False) -> Iterator[Wanted]:
    """All roles and bindings that a cluster starts with; with ``metrics`` those of metrics-server for its readers."""
    if metrics:
        yield _metrics_reader()
    controllers = {CONTROLLER + name: rules for name, rules in CONTROLLER_ROLES.items()}
    for name, rules in sorted((CLUSTER_ROLES | controllers).items()):
        obj = _object("ClusterRole", "", name)
        # null for aggregated roles, as kube-apiserver writes it.
        obj["rules"] = [read_rule(rule) for rule in rules] or None
        if name in AGGREGATED:
            obj["metadata"]["labels"][AGGREGATE_TO + AGGREGATED[name]] = "true"
        if name in AGGREGATING:
            labels = {AGGREGATE_TO + AGGREGATING[name]: "true"}
            obj["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": labels}]}
        yield Wanted("ClusterRole", "", name, obj)
        if name in controllers:
            account = f"ServiceAccount kube-system/{name.removeprefix(CONTROLLER)}"
            yield _binding("ClusterRoleBinding", "", name, f"ClusterRole {name}", (account,))
    for name, (role, subjects) in CLUSTER_BINDINGS.items():
        yield _binding("ClusterRoleBinding", "", name, role, subjects)
    for namespace, roles in ROLES.items():
        for name, rules in roles.items():
            obj = _object("Role", namespace, name)
            obj["rules"] = [read_rule(rule) for rule in rules]
            yield Wanted("Role", namespace, name, obj)
    for namespace, bindings in BINDINGS.items():
        for name, (role, subjects) in bindings.items():
            yield _binding("RoleBinding", namespace, name, role, subjects)


def _metrics_reader() -> Wanted:
    name = "system:aggregated-metrics-reader"
    labels = {f"{AGGREGATE_TO}{role}": "true" for role in ("view", "edit", "admin")}
    rules = [read_rule("get,list,watch metrics.k8s.io pods,nodes")]
    role: Json = {"kind": "ClusterRole", "apiVersion": f"{GROUP}/v1", "rules": rules}
    return Wanted("ClusterRole", "", name, {**role, "metadata": {"name": name, "labels": labels}})


def _object(kind: str, namespace: str, name: str) -> Json:
    metadata: Json = {"name": name, "labels": dict(LABELS), "annotations": {AUTO_UPDATE: "true"}}
    if namespace:
        metadata["namespace"] = namespace
    return {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": metadata}


def _binding(kind: str, namespace: str, name: str, role: str, subjects: tuple[str, ...]) -> Wanted:
    obj = _object(kind, namespace, name)
    role_kind, role_name = role.split(" ")
    obj["roleRef"] = {"apiGroup": GROUP, "kind": role_kind, "name": role_name}
    if subjects:
        obj["subjects"] = [_subject(subject) for subject in subjects]
    return Wanted(kind, namespace, name, obj)


def _subject(text: str) -> Json:
    kind, name = text.split(" ")
    if kind == "ServiceAccount":
        namespace, _, name = name.partition("/")
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"kind": kind, "apiGroup": GROUP, "name": name}


def mended(present: Json, wanted: Json) -> Json | None:
    """The object with what it lacks of what is wanted; None where it lacks nothing or is not to be touched."""
    metadata = present.get("metadata") or {}
    if (metadata.get("annotations") or {}).get(AUTO_UPDATE) == "false":
        return None
    merged = {**present, "metadata": {**metadata}}
    for part in ("labels", "annotations"):
        # What is present wins: labels that a user changed stay.
        merged["metadata"][part] = {**wanted["metadata"][part], **(metadata.get(part) or {})}
    for mend in (_mend_rules, _mend_aggregation, _mend_subjects):
        mend(merged, wanted)
    return None if merged == present else merged


def other_role(present: Json, wanted: Json) -> bool:
    """Whether a bootstrap binding names another role than it should, and may be made again."""
    annotations = (present.get("metadata") or {}).get("annotations") or {}
    return annotations.get(AUTO_UPDATE) != "false" and present.get("roleRef") != wanted.get("roleRef")


def _mend_rules(merged: Json, wanted: Json) -> None:
    # Compared by what the rules cover, not by their text: a user may have split or merged them.
    missing = uncovered(read_rules(merged.get("rules")), read_rules(wanted.get("rules")))
    if missing:
        merged["rules"] = [*(merged.get("rules") or ()), *map(_written, missing)]


def _mend_aggregation(merged: Json, wanted: Json) -> None:
    needed = (wanted.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    present = (merged.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    missing = [selector for selector in needed if selector not in present]
    if missing:
        merged["aggregationRule"] = {"clusterRoleSelectors": [*present, *missing]}


def _mend_subjects(merged: Json, wanted: Json) -> None:
    present = merged.get("subjects") or []
    # Subjects that somebody added are kept.
    missing = [subject for subject in wanted.get("subjects") or () if subject not in present]
    if missing:
        merged["subjects"] = [*present, *missing]


def _written(rule: RbacRule) -> Json:
    parts = (
        ("verbs", rule.verbs),
        ("apiGroups", rule.groups),
        ("resources", rule.resources),
        ("resourceNames", rule.names),
        ("nonResourceURLs", rule.paths),
    )
    return {name: list(values) for name, values in parts if values}
