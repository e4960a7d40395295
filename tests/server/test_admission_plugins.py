"""Built-in admission plugins, as conversations: what they fill in and refuse, in kube-apiserver 1.36's words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.stories import play, stories
from tests.server.test_api import MERGE, ask, run

from apimachinery.access.authorization import (
    ALLOWED,
    NO_OPINION,
    Attributes,
    Verdict,
)
from apimachinery.access.control import AccessOptions
from apimachinery.http.messages import Request, User
from apimachinery.server.admission.plugins import DEFAULT, PLUGINS, parse_plugins
from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ACCOUNTS as ACCOUNT_CONTROLLERS
from apimachinery.server.catalog.options import ApiOptions, OptionError, parse_controllers

STORIES = {**stories("admission_plugins.yaml"), **stories("pod_security.yaml")}
PODS = "/api/v1/namespaces/default/pods"
POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


WHO = {
    "": None,
    "node": User("system:node:plugins-n1", groups=("system:nodes",)),
    "carl": User("carl"),
}
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}


async def told(api: AssembledApi, steps: list[list[Any]]) -> None:
    async def asked(method: str, path: str, body: Any) -> tuple[int, Any, list[str]]:
        who, _, verb = method.rpartition(" ")
        where, _, query = path.partition("?")
        headers = MERGE if verb == "PATCH" else STRATEGIC if verb == "SM" else {}
        data = json.dumps(body or {}).encode()
        answer = await api.handle(
            Request("PATCH" if verb == "SM" else verb, where, query, headers, data, WHO[who])
        )
        warnings = [value for key, value in answer.headers if key == "Warning"]
        return answer.status, json.loads(answer.body), warnings

    assert list(await play(asked, steps, "story")) == []


@pytest.mark.parametrize("about", STORIES)
def test_plugin(about: str) -> None:
    run(lambda api: told(api, STORIES[about]))


class Carl:
    """Lets everybody do everything, but Carl no longer delete or set finalizers."""

    def decide(self, attributes: Attributes) -> Verdict:
        limited = attributes.user.name == "carl" and (
            attributes.verb == "delete" or attributes.subresource == "finalizers"
        )
        return NO_OPINION if limited else ALLOWED

    async def ask(self, attributes: Attributes) -> Verdict:
        return self.decide(attributes)


MORE = stories("more_plugins.yaml")
LACKING = {"EventRateLimit", "ImagePolicyWebhook"}
ALL = ApiOptions(
    controllers=frozenset(),
    plugins=parse_plugins(
        [plugin.name for plugin in PLUGINS if plugin.name not in {*LACKING, "AlwaysDeny", "ServiceAccount"}],
        [],
    ),
    toleration_seconds=(7, 8),
)


@pytest.mark.parametrize("about", MORE)
def test_more_plugins(about: str) -> None:
    run(lambda api: told(api, MORE[about]), ALL, AccessOptions(modes=(lambda cache: Carl(),)))


def test_always_deny_leaves_the_servers_own_writes() -> None:
    async def story(api: AssembledApi) -> None:
        assert (await ask(api, "GET", "/api/v1/namespaces/default"))[0] == 200
        code, answer, _ = await ask(api, "POST", PODS, POD, user=WHO["carl"])
        assert (code, answer["message"]) == (
            403,
            'pods "p" is forbidden: admission control is denying all modifications',
        )

    run(story, ApiOptions(controllers=frozenset(), plugins=parse_plugins(["AlwaysDeny"], [])))


def test_a_plugin_that_is_off_does_nothing() -> None:
    async def story(api: AssembledApi) -> None:
        code, pod, _ = await ask(api, "POST", PODS, POD)
        assert code == 201
        assert "tolerations" not in pod["spec"] and pod["spec"]["priority"] == 0

    off = parse_plugins([], ["DefaultTolerationSeconds"])
    run(story, ApiOptions(controllers=frozenset(), plugins=off))


def test_names_of_plugins() -> None:
    assert parse_plugins([], []) == DEFAULT
    assert parse_plugins(["Priority"], ["Priority,RuntimeClass", "NodeRestriction"]) == DEFAULT - {
        "Priority",
        "RuntimeClass",
    }
    with pytest.raises(OptionError, match="'Prioity' is none; use AlwaysAdmit, "):
        parse_plugins([], ["Prioity"])
    assert parse_plugins(["NodeRestriction,PodGroupProtection"], []) == DEFAULT | {
        "NodeRestriction",
        "PodGroupProtection",
    }
    for name in sorted(LACKING):
        with pytest.raises(OptionError, match=f"{name}: it needs --admission-control-config-file, which"):
            parse_plugins([name], [])


def test_plugins_are_those_of_kube_apiserver_and_on_as_there() -> None:
    """Names as ``kube-apiserver --help`` of 1.36 lists them."""
    names = [plugin.name for plugin in PLUGINS]
    assert len(names) == len(set(names)) == 41
    on = """NamespaceLifecycle LimitRanger ServiceAccount TaintNodesByCondition PodSecurity Priority
    DefaultTolerationSeconds DefaultStorageClass StorageObjectInUseProtection PodGroupProtection
    PersistentVolumeClaimResize RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest
    CertificateSubjectRestriction DefaultIngressClass PodTopologyLabels PodGroupWorkloadExists
    NodeDeclaredFeatureValidator JobValidation PodResizeValidator MutatingAdmissionPolicy MutatingAdmissionWebhook
    ValidatingAdmissionPolicy ValidatingAdmissionWebhook ResourceQuota""".split()
    assert [plugin.name for plugin in PLUGINS if plugin.default] == on
    assert set(on) - {"ServiceAccount"} == DEFAULT


ACCOUNTS = stories("service_accounts.yaml")
WITH_ACCOUNTS = ApiOptions(
    controllers=frozenset({"serviceaccount", "root-ca-cert-publisher"}),
    plugins=parse_plugins(["ServiceAccount"], []),
    root_authority="PEM",
)


@pytest.mark.parametrize("about", ACCOUNTS)
def test_accounts(about: str) -> None:
    run(lambda api: told(api, ACCOUNTS[about]), WITH_ACCOUNTS)


def test_an_account_that_is_deleted_comes_back_and_so_do_the_authorities() -> None:
    async def story(api: AssembledApi) -> None:
        namespace = "/api/v1/namespaces/default"

        async def there(path: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
            async with asyncio.timeout(60):
                while True:
                    code, found, _ = await ask(api, "GET", path)
                    if code == 200 and holds(found):
                        return found
                    await asyncio.sleep(0.01)

        for path in (f"{namespace}/serviceaccounts/default", f"{namespace}/configmaps/kube-root-ca.crt"):
            former = (await there(path, lambda found: True))["metadata"]["uid"]
            await ask(api, "DELETE", path)
            after = await there(path, lambda found, former=former: found["metadata"]["uid"] != former)
        assert after["data"] == {"ca.crt": "PEM"}
        await ask(api, "PATCH", path, {"data": {"ca.crt": "mine"}}, MERGE)
        await there(path, lambda found: found["data"] == {"ca.crt": "PEM"})

    run(story, WITH_ACCOUNTS)


def test_a_pod_waits_a_moment_only_where_no_controller_makes_accounts() -> None:
    async def story(api: AssembledApi) -> None:
        code, answer, _ = await ask(api, "POST", PODS, POD)
        assert code == 403
        why = 'error looking up service account default/default: serviceaccount "default" not found'
        assert answer["message"] == f'pods "p" is forbidden: {why}'

    run(story, ApiOptions(controllers=frozenset(), plugins=parse_plugins(["ServiceAccount"], [])))


def test_controllers_that_make_accounts() -> None:
    assert not parse_controllers("all") & set(ACCOUNT_CONTROLLERS)
    assert parse_controllers("all", accounts=True) >= set(ACCOUNT_CONTROLLERS)
    assert parse_controllers("serviceaccount") == {"serviceaccount"}
    assert parse_controllers("all,node") == parse_controllers("all") | {"node", "scheduler", "serviceaccount"}
    assert "serviceaccount" not in parse_controllers("all,node,-serviceaccount")
    assert parse_controllers("none", accounts=True) == frozenset()
