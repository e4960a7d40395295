"""Tokens that Secrets hold, and who may come without any."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import time
from http.client import HTTPConnection

import pytest

from apimachinery.access.authentication import TokenRefused
from apimachinery.access.control import Access, AccessOptions
from apimachinery.access.keys import made_key
from apimachinery.access.secret_tokens import (
    ACCOUNT_NAME,
    ACCOUNT_UID,
    AccountSecretTokens,
    BootstrapTokens,
    account_claims,
)
from apimachinery.access.service_accounts import ServiceAccountKeys
from apimachinery.http.messages import Request
from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.options import OptionError
from apimachinery.storage.interface import Record
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache
from kubewright.testing import ApiServer
from kubewright.tools.arguments import serve_access
from kubewright.tools.serve import access as flags

TOKEN = "abcdef.0123456789abcdef"
GOOD = {
    "token-id": "abcdef",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
    "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    "expiration": "2999-01-01T00:00:00Z",
}
EVERYBODY = ("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token")
BOOTSTRAP = [
    ("as it is", {}, {}, EVERYBODY),
    ("without groups and end", {"auth-extra-groups": None, "expiration": None}, {}, EVERYBODY[:1]),
    ("another secret", {"token-secret": "0123456789abcdee"}, {}, None),
    ("another id", {"token-id": "abcdeg"}, {}, None),
    ("no secret", {"token-secret": None}, {}, None),
    ("for signing only", {"usage-bootstrap-authentication": None}, {}, None),
    ("ended", {"expiration": "2020-01-01T00:00:00Z"}, {}, None),
    ("an end that is none", {"expiration": "soon"}, {}, None),
    ("an end without a zone", {"expiration": "2999-01-01T00:00:00"}, {}, None),
    ("a group of others", {"auth-extra-groups": "system:masters"}, {}, None),
    ("another type", {}, {"type": "Opaque"}, None),
    ("being deleted", {}, {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}, None),
]


def encoded(data):
    return {
        key: base64.b64encode(value.encode()).decode() for key, value in data.items() if value is not None
    }


@pytest.mark.parametrize(
    ("data", "more", "groups"), [row[1:] for row in BOOTSTRAP], ids=[r[0] for r in BOOTSTRAP]
)
def test_bootstrap_tokens(data, more, groups):
    secret = {"type": "bootstrap.kubernetes.io/token", "data": encoded(GOOD | data), **more}
    record = Record("k", 1, 1, json.dumps(secret).encode())
    held = {"/core/secrets/kube-system/bootstrap-token-abcdef": record}
    identity = BootstrapTokens(held.get).identify(TOKEN, ())
    assert (identity and identity.user.groups) == groups
    if identity:
        assert identity.user.name == "system:bootstrap:abcdef"


@pytest.mark.parametrize(
    "token", ["abcdef.0123456789abcdeF", "abcdef", "", "abcdef.0123456789abcdef0", "../etc.0123456789abcdef"]
)
def test_what_is_no_bootstrap_token_is_not_looked_up(token):
    def lookup(key):
        raise AssertionError(key)

    assert BootstrapTokens(lookup).identify(token, ()) is None


@pytest.fixture(scope="module")
def server():
    with ApiServer(controllers="serviceaccount-token") as running:
        yield running


SECRETS, ACCOUNTS = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/serviceaccounts"


def make(server, account, name="held", **annotations):
    annotations = {ACCOUNT_NAME: account, **annotations}
    body = {
        "metadata": {"name": name, "annotations": annotations},
        "type": "kubernetes.io/service-account-token",
    }
    return server.request("POST", SECRETS, body)


def until(call, seconds=60.0):
    end = time.monotonic() + seconds
    while True:
        try:
            if found := call():
                return found
        except ApiError:
            pass
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def who(server, token):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = json.dumps({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, headers)
    answer = connection.getresponse()
    shown = json.loads(answer.read())
    connection.close()
    return shown["status"]["userInfo"]["username"] if answer.status == 201 else answer.status


def test_a_secret_is_filled_and_its_token_holds_while_it_is_there(server):
    uid = server.request("POST", ACCOUNTS, {"metadata": {"name": "robot"}})["metadata"]["uid"]
    make(server, "robot")
    filled = until(
        lambda: (s := server.request("GET", f"{SECRETS}/held")) and "token" in (s.get("data") or {}) and s
    )
    assert filled["metadata"]["annotations"][ACCOUNT_UID] == uid
    assert base64.b64decode(filled["data"]["namespace"]) == b"default"
    token = base64.b64decode(filled["data"]["token"]).decode()
    assert who(server, token) == "system:serviceaccount:default:robot"
    server.request("DELETE", f"{SECRETS}/held")
    assert who(server, token) == 401


def test_it_goes_with_its_account(server):
    server.request("POST", ACCOUNTS, {"metadata": {"name": "brief"}})
    make(server, "brief", "brief-token")
    filled = until(
        lambda: (
            (s := server.request("GET", f"{SECRETS}/brief-token")) and "token" in (s.get("data") or {}) and s
        )
    )
    token = base64.b64decode(filled["data"]["token"]).decode()
    server.request("DELETE", f"{ACCOUNTS}/brief")
    assert who(server, token) == 401
    until(
        lambda: "brief-token" not in [s["metadata"]["name"] for s in server.request("GET", SECRETS)["items"]]
    )


def test_one_of_an_account_that_is_not_there_is_deleted(server):
    make(server, "nobody", "of-nobody")
    until(lambda: "of-nobody" not in [s["metadata"]["name"] for s in server.request("GET", SECRETS)["items"]])


REFUSED = [
    ("another copy", {"data": {"token": "b3RoZXI="}}, {}, "does not match server's copy"),
    ("another type", {"type": "Opaque"}, {}, "does not match server's copy"),
    ("a secret that goes", {"metadata": {"deletionTimestamp": "x"}}, {}, "has been invalidated"),
    ("another account of that name", {}, {"metadata": {"uid": "2"}}, r"UID \(2\) does not match claim \(1\)"),
]


@pytest.mark.parametrize(
    ("secret", "account", "fault"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_tokens_that_do_not_hold(secret, account, fault):
    keys = ServiceAccountKeys(made_key())
    token = keys.signing.sign(account_claims("ns", "robot", "1", "held"))
    held = {"type": "kubernetes.io/service-account-token", "data": encoded({"token": token}), **secret}
    records = {
        "/core/secrets/ns/held": held,
        "/core/serviceaccounts/ns/robot": {"metadata": {"uid": "1"}, **account},
    }
    tokens = AccountSecretTokens(
        keys, lambda key: Record(key, 1, 1, json.dumps(records[key]).encode()) if key in records else None
    )
    with pytest.raises(TokenRefused, match=fault):
        tokens.identify(token, ())


def test_a_token_of_another_key_is_refused():
    token = made_key().sign(account_claims("ns", "robot", "1", "held"))
    with pytest.raises(TokenRefused):
        AccountSecretTokens(ServiceAccountKeys(made_key()), lambda key: None).identify(token, ())


def options(*arguments):
    parser = argparse.ArgumentParser()
    serve_access.add_everyday(parser)
    serve_access.add_arguments(parser)
    return parser.parse_args([*map(str, arguments)])


def configured(tmp_path, anonymous):
    path = tmp_path / "authentication.yaml"
    path.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
        f"anonymous: {json.dumps(anonymous)}\n"
    )
    return options("--authentication-config", path)


@pytest.mark.parametrize(
    ("path", "code"), [("/livez", 0), ("/livez/ping", 401), ("/api", 401), ("/readyz", 0)]
)
def test_paths_that_are_open_without_credentials(tmp_path, path, code):
    conditions = [{"path": "/livez"}, {"path": "/readyz"}]
    granted = flags.grant(configured(tmp_path, {"enabled": True, "conditions": conditions}), tmp_path)

    async def admit():
        access = Access(granted.options, await WatchCache.open(MemoryStorage()))
        try:
            return (await access.identify(Request("GET", path))) and 0
        except ApiError as error:
            return error.code

    assert (asyncio.run(admit()) or 0) == code


@pytest.mark.parametrize(
    ("anonymous", "fault"),
    [
        ({"enabled": False, "conditions": [{"path": "/livez"}]}, "enabled should be set to true"),
        ({"enabled": True, "conditions": [{}]}, r"anonymous.conditions\[0\].path: required"),
        ([], "anonymous: must be an object"),
    ],
)
def test_conditions_that_cannot_be(tmp_path, anonymous, fault):
    with pytest.raises(OptionError, match=fault):
        flags.grant(configured(tmp_path, anonymous), tmp_path)


def test_bootstrap_tokens_are_taken_where_it_is_said(tmp_path):
    assert flags.grant(options("--enable-bootstrap-token-auth"), tmp_path).options.bootstrap_tokens
    assert not AccessOptions().bootstrap_tokens
