"""Users and rights that others know: OpenID issuers, webhooks, a proxy in front; and the files that name them."""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import jwt
import pytest
from msgspec import structs

from apimachinery.access.authentication import (
    BearerTokens,
    Identity,
    MustAsk,
    TokenRefused,
)
from apimachinery.access.authorization import Attributes
from apimachinery.access.front_proxy import FrontProxy
from apimachinery.access.keys import key_set, made_key, verifying
from apimachinery.access.oidc import (
    BadIssuer,
    Checked,
    Issuer,
    IssuerTokens,
    Mapped,
)
from apimachinery.access.webhooks import (
    AuthorizationWebhook,
    BadCondition,
    TokenWebhook,
    WebhookRules,
)
from apimachinery.http.messages import Request, User
from apimachinery.http.outgoing import CallFailed, Endpoint, Outgoing
from apimachinery.server.catalog.options import OptionError
from kubewright.tools.arguments import serve_access
from kubewright.tools.serve import access as flags

URL = "https://issuer.example.com"
KEY = made_key()
ISSUER = Issuer(URL, Endpoint(f"{URL}/discovery"), ("kube",), Mapped("sub", "oidc:"), Mapped("groups", "o:"))


class Keys:
    """An issuer that answers; counts what it is asked."""

    def __init__(self, *keys) -> None:
        self.keys = list(keys)
        self.asked = 0
        self.issuer = URL

    async def __call__(self, endpoint):
        self.asked += 1
        if endpoint.url.endswith("/discovery"):
            return {"issuer": self.issuer, "jwks_uri": f"{URL}/keys"}
        return key_set([verifying(key.key.public_key(), "x") for key in self.keys])


def signed(key=KEY, **claims):
    now = int(time.time())
    return key.sign({"iss": URL, "aud": "kube", "sub": "ann", "exp": now + 60, "iat": now, **claims})


def identify(kind, token, audiences=("kube",)):
    try:
        return kind.identify(token, audiences)
    except MustAsk as must:
        return asyncio.run(must.ask())


def test_claims_make_a_user_and_keys_are_fetched_once():
    keys = Keys(KEY)
    kind = IssuerTokens(ISSUER, keys)
    user = identify(kind, signed(groups=["devs"], jti="7")).user
    assert (user.name, user.groups) == ("oidc:ann", ("o:devs",))
    assert user.extra == (("authentication.kubernetes.io/credential-id", ("JTI=7",)),)
    identify(kind, signed(sub="bob"))
    assert keys.asked == 2
    assert identify(kind, "a.b.c") is None and identify(kind, signed(iss="https://other")) is None


def test_a_rotated_key_is_fetched():
    keys, other = Keys(KEY), made_key()
    kind = IssuerTokens(ISSUER, keys)
    identify(kind, signed())
    keys.keys.append(other)
    with pytest.raises(TokenRefused):
        identify(kind, signed(other))  # not again within ten seconds
    kind._tried -= 11
    assert identify(kind, signed(other)).user.name == "oidc:ann"


@pytest.mark.parametrize(
    ("claims", "fault"),
    [
        ({"aud": "other"}, "expected audience"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "exp"),
        ({"nbf": 1 << 40}, "not yet valid"),
        ({"sub": ""}, "username claim"),
        ({"sub": 7}, "ubject|username"),
        ({"groups": {"a": 1}}, "groups claim"),
    ],
)
def test_what_is_refused(claims, fault):
    with pytest.raises(TokenRefused, match=fault):
        identify(IssuerTokens(ISSUER, Keys(KEY)), signed(**claims))


def test_foreign_keys_and_issuers_are_refused():
    with pytest.raises(TokenRefused):
        identify(IssuerTokens(ISSUER, Keys(KEY)), signed(made_key()))
    with pytest.raises(TokenRefused):
        identify(IssuerTokens(ISSUER, Keys(KEY)), jwt.encode({"iss": URL, "aud": "kube"}, "s" * 40, "HS256"))
    liar = Keys(KEY)
    liar.issuer = "https://other"
    with pytest.raises(TokenRefused, match="names the issuer"):
        identify(IssuerTokens(ISSUER, liar), signed())


@pytest.mark.parametrize(("algorithms", "accepted"), [({"ES256"}, True), ({"RS256", "PS256"}, False)])
def test_only_the_algorithms_of_the_issuer_verify(algorithms, accepted):
    kind = IssuerTokens(replace(ISSUER, algorithms=frozenset(algorithms)), Keys(KEY))
    if accepted:
        assert identify(kind, signed()).user.name == "oidc:ann"
    else:
        with pytest.raises(TokenRefused, match="signed by 'ES256', not by PS256, RS256"):
            identify(kind, signed())


def test_expressions_map_and_judge():
    issuer = replace(
        ISSUER,
        username=Mapped(expression="'u:' + claims.email.split('@')[0]"),
        groups=Mapped(expression="claims.roles.filter(r, r != 'x')"),
        uid=Mapped(claim="sub"),
        extra={"example.com/team": "claims.team"},
        claim_rules=[
            Checked(claim="hd", value="example.com"),
            Checked(expression="claims.level > 2", message="too low"),
        ],
        user_rules=[Checked(expression="!user.username.startsWith('u:system')", message="reserved")],
    )
    good = {"email": "ann@example.com", "roles": ["a", "x"], "team": "red", "hd": "example.com", "level": 3}
    user = identify(IssuerTokens(issuer, Keys(KEY)), signed(**good)).user
    assert (user.name, user.uid, user.groups, user.extra) == (
        "u:ann",
        "ann",
        ("a",),
        (("example.com/team", ("red",)),),
    )
    for changed, fault in (
        ({"level": 1}, "too low"),
        ({"hd": "x"}, "required claim"),
        ({"email": "system@x"}, "reserved"),
    ):
        with pytest.raises(TokenRefused, match=fault):
            identify(IssuerTokens(issuer, Keys(KEY)), signed(**{**good, **changed}))
    with pytest.raises(TokenRefused, match="no such key"):
        identify(IssuerTokens(issuer, Keys(KEY)), signed(hd="example.com"))
    with pytest.raises(BadIssuer, match="claimMappings"):
        IssuerTokens(replace(ISSUER, username=Mapped(expression="claims.")), Keys(KEY))


def test_a_token_webhook():
    asked = []

    async def post(endpoint, review):
        asked.append(review)
        token = review["spec"]["token"]
        if token == "broken":
            raise CallFailed("no route")
        if token == "odd":
            return {"status": {"authenticated": True, "user": {"username": 7}}}
        return {"status": {"authenticated": token == "good", "user": {"username": "ann", "groups": ["devs"]}}}

    bearer = BearerTokens([TokenWebhook(Endpoint("https://hook"), post=post)], ("api",))

    def user(token):
        request = Request("GET", "/", headers={"authorization": f"Bearer {token}"})
        try:
            return bearer.authenticate(request)
        except MustAsk as must:
            return asyncio.run(must.ask())

    assert user("good").user.groups == ("devs", "system:authenticated")
    assert user("good") and len(asked) == 1
    for token in ("bad", "broken", "odd"):
        with pytest.raises(TokenRefused):
            user(token)


def test_an_authorization_webhook():
    asked = []

    async def post(endpoint, review):
        asked.append(review)
        if review["spec"]["user"] == "broken":
            raise CallFailed("no route")
        return {
            "status": {"allowed": review["spec"]["user"] == "ann", "denied": review["spec"]["user"] == "eve"}
        }

    rules = WebhookRules(
        conditions=[
            "has(request.resourceAttributes)",
            "request.resourceAttributes.namespace != 'kube-system'",
        ]
    )
    webhook = AuthorizationWebhook(Endpoint("https://hook"), post, rules)

    def ask(name, namespace="shop", **more):
        return asyncio.run(webhook.ask(Attributes(User(name), "get", namespace, resource="pods", **more)))

    assert ask("ann").allowed and ask("ann").allowed and len(asked) == 1
    assert ask("eve").denied and not ask("bob").allowed
    assert not ask("ann", "kube-system").allowed and len(asked) == 3
    failed = ask("broken")
    assert "no route" in failed.error and not failed.denied
    strict = AuthorizationWebhook(Endpoint("https://hook"), post, WebhookRules(deny_on_failure=True))
    assert asyncio.run(strict.ask(Attributes(User("broken"), "get"))).denied
    with pytest.raises(BadCondition):
        AuthorizationWebhook(Endpoint("https://hook"), post, WebhookRules(conditions=["'text'"]))


def test_headers_count_from_the_proxy_only():
    proxy = FrontProxy(lambda peer: peer == (b"proxy",))
    headers = {"x-remote-user": "ann", "x-remote-group": "a, b", "x-remote-extra-scope%2fs": "x"}
    request = Request("GET", "/", headers=headers, repeated={"x-remote-group": ["a", "b"]}, peer=(b"proxy",))
    user = proxy.authenticate(request).user
    assert (user.name, user.groups, user.extra) == (
        "ann",
        ("a", "b", "system:authenticated"),
        (("scope/s", ("x",)),),
    )
    assert proxy.authenticate(structs.replace(request, peer=(b"other",))) is None
    assert proxy.authenticate(structs.replace(request, peer=())) is None
    assert proxy.authenticate(structs.replace(request, headers={})) is None


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        size = int(self.headers["Content-Length"])
        review = json.loads(self.rfile.read(size))
        allowed = review["spec"].get("user") == "ann"
        body = {"/endless": b"[" * (2 << 20), "/odd": b"{"}.get(
            self.path, json.dumps({"status": {"allowed": allowed}}).encode()
        )
        self.send_response({"/missing": 404, "/away": 302}.get(self.path, 200))
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def hook():
    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/missing", "answered 404"),
        ("/away", "answered 302"),
        ("/odd", "not answer JSON"),
        ("/endless", "more than"),
    ],
)
def test_answers_that_are_of_no_use(hook, path, fault):
    with pytest.raises(CallFailed, match=fault):
        asyncio.run(asked(Endpoint(hook + path)))


async def asked(endpoint):
    outgoing = Outgoing()
    try:
        return await outgoing.json(endpoint, {"spec": {}})
    finally:
        await outgoing.close()


def options(*arguments):
    parser = argparse.ArgumentParser()
    serve_access.add_everyday(parser)
    serve_access.add_arguments(parser)
    parser.add_argument("--tls", default="")
    return parser.parse_args([*map(str, arguments), "--anonymous-admin"])


def kubeconfig(tmp_path, server):
    path = tmp_path / "hook.kubeconfig"
    body = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(body))
    return path


def test_the_files_of_kube_apiserver(tmp_path, hook):
    authorization = tmp_path / "authz.yaml"
    authorization.write_text(f"""
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: hook
  webhook:
    timeout: 3s
    failurePolicy: NoOpinion
    subjectAccessReviewVersion: v1
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {kubeconfig(tmp_path, hook)}}}
    matchConditions: [{{expression: "request.user != 'bob'"}}]
- {{type: RBAC, name: rbac}}
""")
    authentication = tmp_path / "authn.yaml"
    authentication.write_text("""
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: false}
jwt:
- issuer: {url: https://issuer.example.com, audiences: [kube]}
  claimMappings: {username: {claim: sub, prefix: ""}, groups: {expression: claims.roles}}
  claimValidationRules: [{claim: hd, requiredValue: example.com}]
""")
    granted = flags.grant(
        options("--authorization-config", authorization, "--authentication-config", authentication),
        tmp_path / "kept",
    )
    webhook = granted.options.modes[0](None)
    assert granted.options.modes[1] == "RBAC" and not granted.options.anonymous
    assert len(granted.options.more_tokens) == 1

    async def verdicts():
        try:
            return [
                await webhook.ask(Attributes(User(name), "get", resource="pods")) for name in ("ann", "bob")
            ]
        finally:
            await granted.options.outgoing.close()

    assert [verdict.allowed for verdict in asyncio.run(verdicts())] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--authorization-mode", "Webhook"], "needs --authorization-webhook-config-file"),
        (["--authorization-mode", "Sometimes"], "is none; use"),
        (["--oidc-issuer-url", "http://x", "--oidc-client-id", "y"], "https address"),
        (["--oidc-issuer-url", "https://x", "--oidc-client-id", "y", "--oidc-required-claim", "z"], "not CLAIM=VALUE"),
        (["--oidc-issuer-url", "https://x", "--oidc-client-id", "y", "--oidc-signing-algs", "RS256,HS256"],
         "--oidc-signing-algs: 'HS256' is none of ES256"),
        (["--authorization-webhook-config-file", "x", "--authorization-webhook-cache-authorized-ttl", "y",
          "--authorization-mode", "Webhook"], "no duration"),
    ],
)  # fmt: skip
def test_options_that_cannot_be(tmp_path, arguments, fault):
    with pytest.raises(OptionError, match=fault):
        flags.grant(options(*arguments), tmp_path)


def test_identities_without_audiences_are_this_server_s():
    class Plain:
        def identify(self, token, audiences):
            return Identity(User("ann"))

    bearer = BearerTokens([Plain()], ("api",))
    assert bearer.identify("t", ("api", "x")).audiences == ("api",)
    with pytest.raises(TokenRefused):
        bearer.identify("t", ("x",))
