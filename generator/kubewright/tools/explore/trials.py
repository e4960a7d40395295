"""An admission policy tried against objects that are there, before anybody binds it.

Each object is judged as if whoever asks created it (or updated it to what it is) now, by the server's own code and with
its budgets. What else a policy needs is read from the cluster with the rights of whoever asks: parameters, namespaces,
what the ``authorizer`` says. A validating policy allows or refuses, a mutating one changes a copy; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from apimachinery.cel.libraries.authorizer import Authorizer, Decision, Question, ResourceCheck
from apimachinery.http.outgoing import CallFailed
from apimachinery.kinds.admissionregistration.policy_expressions import BudgetSpent
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.compile import MergeTypes, SchemaError
from apimachinery.merge.from_openapi import METADATA_TYPES, builtin_table
from apimachinery.meta.selectors import selector_of
from apimachinery.server.admission.policies.matching import Asked, MatchRules
from apimachinery.server.admission.policies.mutating_policies import merged, mutated, mutation_of
from apimachinery.server.admission.policies.policies import (
    Policy,
    PolicyFailure,
    conditions_hold,
    evaluation_of,
)
from apimachinery.server.admission.policies.request_values import shown_namespace
from apimachinery.server.admission.policies.validating_policies import checks_of, failure_of
from kubewright.tools.explore.difference import difference

MOST_OBJECTS, MOST_PARAMS, MOST_QUESTIONS, MOST_LINES = 1_000, 100, 500, 60
Json = dict[str, Any]


class AskedCluster(Protocol):
    """The cluster with the rights of whoever asks. Both raise CallFailed."""

    def get(self, path: str) -> Any:
        """The JSON at a path."""

    def post(self, path: str, body: Any) -> Any:
        """The answer to a body."""


def try_policy(asked: Json, cluster: AskedCluster) -> Json:
    """``policy`` against ``objects`` of the ``resource``: what becomes of each, and what is wrong with the policy.
    ``params`` (name, namespace) are those of a binding; without a name all of the kind are used."""
    stated = asked.get("policy") or {}
    try:
        trial = _Trial(stated, asked, cluster)
    except PolicyFailure as fault:
        return {"fault": str(fault), "results": []}
    except (KeyError, TypeError, AttributeError, ValueError) as fault:
        return {"fault": f"the policy is not whole: {fault}", "results": []}
    objects = [each for each in asked.get("objects") or () if isinstance(each, dict)]
    results = [trial.judge(obj) for obj in objects[:MOST_OBJECTS]]
    return {"results": results, "left": max(0, len(objects) - MOST_OBJECTS)}


class _Trial:
    """A policy as compiled. Raises PolicyFailure."""

    def __init__(self, stated: Json, asked: Json, cluster: AskedCluster) -> None:
        spec = stated.get("spec") or {}
        self._mutates = stated.get("kind") == "MutatingAdmissionPolicy"
        self._policy = Policy("", spec, mutates=self._mutates)
        self._checks = checks_of(self._policy)
        if self._policy.fault or self._checks.fault:
            raise PolicyFailure(self._policy.fault or self._checks.fault)
        for mutation in spec.get("mutations") or () if self._mutates else ():
            mutation_of(self._policy, mutation)
        self._constraints = spec.get("matchConstraints") or {}
        self._resource: Mapping[str, Any] = asked.get("resource") or {}
        self._verb = str(asked.get("operation") or "CREATE")
        self._cluster = cluster
        self._user = _user(cluster)
        self._params = _Params(self._policy.param_kind, asked.get("params") or {}, cluster)
        self._decisions: dict[Question, Decision] = {}
        self._ownerships: dict[tuple[str, str], FieldOwnership] = {}

    def judge(self, obj: Json) -> Json:
        """What the policy makes of one object."""
        metadata = obj.get("metadata") or {}
        name, namespace = str(metadata.get("name") or ""), str(metadata.get("namespace") or "")
        answer: Json = {"name": name, "namespace": namespace}
        if why := self._why_not(obj, name, namespace):
            return {**answer, "outcome": "not matched", "messages": [why]}
        messages: list[str] = []
        changed, meets = obj, False
        try:
            for params in self._params.of(namespace):
                values = self._values(changed, obj, params, name, namespace)
                if not conditions_hold(self._policy, values):
                    continue
                meets = True
                if self._mutates:
                    changed = self._changed(changed, values)
                else:
                    messages += self._refusals(values)
        except PolicyFailure as failure:
            messages, meets = [*messages, str(failure)], True
        if not meets:
            return {**answer, "outcome": "not matched", "messages": ["a match condition is false"]}
        if messages:
            outcome = "failed" if self._mutates else "refused"
        else:
            outcome = ("changed" if changed != obj else "as it is") if self._mutates else "allowed"
        changes = [line for line in difference(obj, changed) if line["mark"] != "same"][:MOST_LINES]
        return {**answer, "outcome": outcome, "messages": messages, "changes": changes}

    def _why_not(self, obj: Json, name: str, namespace: str) -> str:
        """Why the constraints are not about an object; empty where they are."""
        stated = self._constraints
        group, plural = (str(self._resource.get(part) or "") for part in ("group", "resource"))
        versions = [str(each) for each in self._resource.get("versions") or ()]
        if stated.get("matchPolicy") == "Exact":
            versions = versions[:1]
        requests = [Asked(group, version, plural, "", namespace, name) for version in versions]

        def names(rules: Any) -> bool:
            return any(MatchRules(rules).match(self._verb, request) for request in requests)

        if stated.get("resourceRules") and not names(stated["resourceRules"]):
            return f"no rule of matchConstraints is about {self._verb} of {plural}"
        if stated.get("excludeResourceRules") and names(stated["excludeResourceRules"]):
            return "excludeResourceRules leaves it out"
        labels = (obj.get("metadata") or {}).get("labels") or {}
        if not selector_of(stated.get("objectSelector") or {}).matches(labels):
            return "objectSelector does not select it"
        selector = selector_of(stated.get("namespaceSelector") or {})
        if namespace and selector.requirements:
            there = (self._namespace(namespace).get("metadata") or {}).get("labels") or {}
            if not selector.matches(there):
                return "namespaceSelector does not select its namespace"
        return ""

    def _values(self, obj: Json, old: Json, params: Json | None, name: str, namespace: str) -> dict[str, Any]:
        plural, group = (str(self._resource.get(part) or "") for part in ("resource", "group"))
        authorizer = Authorizer(self._ask)
        question = Question(group=group, resource=plural, namespace=namespace, name=name)
        values = {
            "object": obj,
            "oldObject": old if self._verb == "UPDATE" else None,
            "request": self._request(obj, name, namespace),
            "authorizer": authorizer,
            "authorizer.requestResource": ResourceCheck(authorizer.ask, question),
            "namespaceObject": shown_namespace(self._namespace(namespace)) if namespace else None,
        }
        return {**values, "params": params} if self._policy.param_kind is not None else values

    def _namespace(self, name: str) -> Json:
        found: Json = self._cluster.get(f"/api/v1/namespaces/{quote(name)}")
        return found

    def _request(self, obj: Json, name: str, namespace: str) -> Json:
        group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
        kind = {"group": group, "version": version, "kind": str(obj.get("kind") or "")}
        resource = {
            "group": group,
            "version": version,
            "resource": str(self._resource.get("resource") or ""),
        }
        shown: Json = {"kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource}
        shown |= {"name": name, "operation": self._verb, "userInfo": self._user, "dryRun": True}
        return {**shown, "namespace": namespace} if namespace else shown

    def _refusals(self, values: dict[str, Any]) -> Iterator[str]:
        evaluation = evaluation_of(self._policy, values)
        for validation in self._checks.validations:
            try:
                failure = failure_of(validation, evaluation)
            except BudgetSpent:
                raise PolicyFailure("the policy costs more than it may") from None
            if failure is not None and not (failure[1] and self._policy.ignores_failures):
                yield failure[0]

    def _changed(self, obj: Json, values: dict[str, Any]) -> Json:
        for mutation in self._policy.spec.get("mutations") or ():
            values["object"] = obj
            obj = mutated(self._policy, mutation, obj, evaluation_of(self._policy, values), self._merge)
        return obj

    def _merge(self, obj: Json, configuration: Any) -> Json:
        api_version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
        ownership = self._ownerships.get((api_version, kind))
        if ownership is None:
            ownership = _ownership(self._cluster, api_version, kind)
            self._ownerships[api_version, kind] = ownership
        return merged(obj, configuration, ownership, api_version, kind)

    def _ask(self, question: Question) -> Decision:
        if question not in self._decisions:
            if len(self._decisions) >= MOST_QUESTIONS:
                return Decision(
                    False, error=f"a trial asks the authorizer {MOST_QUESTIONS} questions at most"
                )
            self._decisions[question] = _decision(self._cluster, question)
        return self._decisions[question]


def _user(cluster: AskedCluster) -> Json:
    """Whoever asks, as ``request.userInfo`` has him; nobody where the cluster does not say."""
    api_version = "authentication.k8s.io/v1"
    review = {"apiVersion": api_version, "kind": "SelfSubjectReview"}
    try:
        answer = cluster.post(f"/apis/{api_version}/selfsubjectreviews", review)
    except CallFailed:
        return {"username": "", "groups": []}
    return dict((answer.get("status") or {}).get("userInfo") or {})


def _decision(cluster: AskedCluster, question: Question) -> Decision:
    """What the cluster's authorizers say, by a review."""
    spec: Json
    if question.path:
        spec = {"nonResourceAttributes": {"path": question.path, "verb": question.verb}}
    else:
        attributes = {
            part: getattr(question, part)
            for part in ("verb", "group", "resource", "subresource", "namespace", "name")
        }
        for part, field in (
            ("fieldSelector", question.field_selector),
            ("labelSelector", question.label_selector),
        ):
            if field:
                attributes[part] = {"rawSelector": field}
        spec = {"resourceAttributes": attributes}
    kind = "SelfSubjectAccessReview"
    if question.service_account is not None:
        namespace, name = question.service_account
        kind = "SubjectAccessReview"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        spec |= {"user": f"system:serviceaccount:{namespace}:{name}", "groups": groups}
    api_version = "authorization.k8s.io/v1"
    review = {"apiVersion": api_version, "kind": kind, "spec": spec}
    try:
        answer = cluster.post(f"/apis/{api_version}/{kind.lower()}s", review)
    except CallFailed as fault:
        return Decision(False, error=str(fault))
    status = answer.get("status") or {}
    return Decision(
        bool(status.get("allowed")), str(status.get("reason") or ""), str(status.get("evaluationError") or "")
    )


class _Params:
    """The parameters of a policy, as a binding with this reference would find them. Raises PolicyFailure."""

    def __init__(
        self, kind: Mapping[str, Any] | None, reference: Mapping[str, Any], cluster: AskedCluster
    ) -> None:
        self._kind = kind
        self._name, self._in = (str(reference.get(part) or "") for part in ("name", "namespace"))
        self._cluster = cluster
        self._plural, self._namespaced = "", False
        if kind is not None:
            self._find(str(kind.get("apiVersion") or ""), str(kind.get("kind") or ""))

    def _find(self, api_version: str, kind: str) -> None:
        self._root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        for each in self._cluster.get(self._root).get("resources") or ():
            if each.get("kind") == kind and "/" not in str(each.get("name")):
                self._plural, self._namespaced = str(each["name"]), bool(each.get("namespaced"))
                return
        raise PolicyFailure(f"paramKind: the cluster serves no {kind} of {api_version}")

    def of(self, namespace: str) -> list[Json | None]:
        """One after another; without ``paramKind`` once with none."""
        if self._kind is None:
            return [None]
        scope = ""
        if self._namespaced:
            chosen = self._in or namespace
            if not chosen:
                raise PolicyFailure("params: say their namespace, as this object is in none")
            scope = f"/namespaces/{quote(chosen)}"
        path = f"{self._root}{scope}/{self._plural}"
        if self._name:
            try:
                return [self._cluster.get(f"{path}/{quote(self._name)}")]
            except CallFailed as fault:
                raise PolicyFailure(f"params: {fault}") from None
        items = self._cluster.get(f"{path}?{urlencode({'limit': MOST_PARAMS})}").get("items") or []
        if not items:
            raise PolicyFailure(
                f"params: there is no {self._kind.get('kind')} in {namespace or 'the cluster'}"
            )
        return [*items]


def _ownership(cluster: AskedCluster, api_version: str, kind: str) -> FieldOwnership:
    """How objects of a kind merge, out of the cluster's OpenAPI document. Raises PolicyFailure."""
    group, _, version = api_version.rpartition("/")
    root = f"apis/{quote(group)}" if group else "api"
    schemas = cluster.get(f"/openapi/v3/{root}/{quote(version)}")["components"]["schemas"]
    named = {"group": group, "version": version, "kind": kind}
    for name, schema in schemas.items():
        if named in (schema.get("x-kubernetes-group-version-kind") or ()):
            try:
                merge_type = MergeTypes({**builtin_table(schemas), **METADATA_TYPES}).named(name)
            except SchemaError as fault:
                raise PolicyFailure(f"the schema of {kind}: {fault}") from None
            return FieldOwnership(api_version=api_version, kind=kind, type=merge_type)
    raise PolicyFailure(f"the cluster describes no {kind} of {api_version}")
