"""Which policies may be about a resource is asked once: never fewer than are about one of its objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.test_api import CM, ask, run

from apimachinery.http.messages import User
from apimachinery.server.admission.policies.matching import MatchConstraints
from apimachinery.server.assembly.api import AssembledApi

ALICE = User("alice")

GROUPS, VERSIONS, PLURALS = ("", "apps", "example.com"), ("v1", "v1beta1"), ("things", "namespaces", "pods")
rules = st.lists(
    st.fixed_dictionaries(
        {
            "operations": st.lists(st.sampled_from(("*", "CREATE", "UPDATE")), min_size=1, max_size=2),
            "apiGroups": st.lists(st.sampled_from(("*", *GROUPS)), min_size=1, max_size=2),
            "apiVersions": st.lists(st.sampled_from(("*", *VERSIONS)), min_size=1, max_size=2),
            "resources": st.lists(
                st.sampled_from(("*", "*/*", "*/scale", "things/*", *PLURALS)), min_size=1, max_size=2
            ),
        },
        optional={
            "scope": st.sampled_from(("*", "Cluster", "Namespaced")),
            "resourceNames": st.lists(st.sampled_from(("a", "b")), max_size=2),
        },
    ),
    max_size=3,
)


def resource(group: str, version: str, plural: str) -> Any:
    return SimpleNamespace(group=group, version=version, plural=plural)


@given(
    stated=st.fixed_dictionaries(
        {"resourceRules": rules},
        optional={"matchPolicy": st.sampled_from(("Exact", "Equivalent")), "excludeResourceRules": rules},
    ),
    place=st.tuples(st.sampled_from(GROUPS), st.sampled_from(VERSIONS), st.sampled_from(PLURALS)),
    verb=st.sampled_from(("CREATE", "UPDATE")),
    subresource=st.sampled_from(("", "scale")),
    namespace=st.sampled_from(("", "ns")),
    names=st.tuples(st.sampled_from("abc"), st.sampled_from("abc")),
)
def test_what_is_about_an_object_may_be_about_its_resource(
    stated: dict[str, Any],
    place: tuple[str, str, str],
    verb: str,
    subresource: str,
    namespace: str,
    names: tuple[str, str],
) -> None:
    group, _, plural = place
    versions = [resource(group, version, plural) for version in VERSIONS]

    def operation(name: str) -> Any:
        target = SimpleNamespace(served=resource(*place), subresource=subresource, namespace=namespace)
        return SimpleNamespace(verb=verb, target=target, name=name, obj=None, old=None)

    constraints = MatchConstraints(stated)
    asked_once, asked_now = (cast(Any, operation(name)) for name in names)
    matched = constraints.match(asked_now, lambda _: {}, versions)
    if matched is not None:
        assert constraints.may_match(asked_once, versions)


OTHERS = 50


def _webhook(name: str, *resources: str, **more: Any) -> dict[str, Any]:
    return {
        "name": f"{name}.example.com",
        "rules": [
            {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": list(resources)}
        ],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_a_write_is_held_against_the_webhooks_of_its_resource_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many webhooks are about other resources: a write asked each of them."""
    matched: list[str] = []
    match = MatchConstraints.match

    def noted(self: MatchConstraints, operation: Any, *more: Any) -> Any:
        matched.append(operation.target.served.plural)
        return match(self, operation, *more)

    never = {"matchConditions": [{"name": "never", "expression": "false"}]}

    async def story(api: AssembledApi) -> None:
        path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
        for number in range(OTHERS):
            made = {
                "metadata": {"name": f"other-{number}"},
                "webhooks": [_webhook("pods", "pods", "secrets")],
            }
            assert (await ask(api, "POST", path, made))[0] == 201
        own = {"metadata": {"name": "own"}, "webhooks": [_webhook("own", "configmaps", **never)]}
        assert (await ask(api, "POST", path, own))[0] == 201
        monkeypatch.setattr(MatchConstraints, "match", noted)
        for number in range(3):
            made = {"metadata": {"name": f"a{number}"}}
            assert (await ask(api, "POST", CM, made, user=ALICE))[0] == 201
        assert matched == ["configmaps"] * 3
        # One that is about it from now on is met by the next write.
        late = {"metadata": {"name": "late"}, "webhooks": [_webhook("late", "*", **never)]}
        assert (await ask(api, "POST", path, late))[0] == 201
        matched.clear()
        assert (await ask(api, "POST", CM, {"metadata": {"name": "b"}}, user=ALICE))[0] == 201
        assert matched == ["configmaps"] * 2

    run(story)
