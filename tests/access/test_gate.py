"""The gate of a running server: who asks, as whom, whether he may, and what he is told."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apimachinery.access import service_accounts
from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authentication.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def server():
    with ApiServer(tls=True) as running:
        yield running


def raw(server, method, path, headers=None, body=None, context=None):
    """Status and JSON of a call with no more than these headers."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=context or server._context, timeout=90
    )
    sent = None if body is None else json.dumps(body)
    connection.putrequest(method, path)
    for name, value in [*(headers or ()), ("Content-Length", str(len(sent or "")))]:
        connection.putheader(name, value)
    connection.endheaders(sent.encode() if sent else None)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, (json.loads(text) if text.startswith(b"{") else text.decode())


def refused(server, method, path, body=None, **who) -> str:
    with pytest.raises(ApiError) as refusal:
        server.request(method, path, body, **who)
    return f"{refusal.value.code} {refusal.value.message}"


@pytest.mark.parametrize(("path", "is_page"), [("/", True), ("/apis", False)])
def test_a_browser_without_credentials_reads_how_to_come_in(server, path, is_page):
    """It got a Status, since nobody is authorized to read the index without credentials."""
    for accept, wants_page in (("text/html,*/*;q=0.8", True), ("application/json", False)):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", server.port, context=server._context, timeout=90
        )
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        text, media_type = answer.read().decode(), answer.headers["Content-Type"].partition(";")[0]
        connection.close()
        assert answer.status in (401, 403)
        assert media_type == ("text/html" if is_page and wants_page else "application/json")
        assert ("kubewright explore" in text) == (is_page and wants_page)


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [
        ("GET", MAPS, 'User "ann" cannot list resource "configmaps" in API group "" in the namespace "default"'),
        ("GET", f"{MAPS}?watch=1", 'User "ann" cannot watch resource "configmaps"'),
        ("GET", f"{MAPS}?fieldSelector=metadata.name%3Dx", 'configmaps "x" is forbidden: User "ann" cannot list'),
        ("DELETE", MAPS, "cannot deletecollection resource"),
        ("GET", "/api/v1/namespaces/default", 'in API group "" in the namespace "default"'),
        ("GET", "/apis/apps/v1/deployments", 'deployments.apps is forbidden: User "ann" cannot list resource'),
        ("GET", "/apis/apps/v1/deployments", 'in API group "apps" at the cluster scope'),
        ("GET", "/apis/none.example.com/v1/things", 'things.none.example.com is forbidden'),
        ("GET", "/metrics", 'forbidden: User "ann" cannot get path "/metrics"'),
        ("POST", MAPS, "cannot create resource"),
    ],
)  # fmt: skip
def test_refusals(server, method, path, text):
    said = refused(server, method, path, {} if method == "POST" else None, user="ann")
    assert said.startswith("403 ") and text in said


def test_nobody(server):
    assert raw(server, "GET", "/healthz")[0] == 200
    assert raw(server, "GET", "/version")[0] == 200
    status, body = raw(server, "GET", MAPS)
    assert status == 403 and 'User "system:anonymous" cannot list' in body["message"]
    assert raw(server, "GET", "/livez/ping")[0] == 403
    assert raw(server, "GET", "/version", [("Authorization", "Bearer wrong")])[0] == 401
    assert raw(server, "GET", MAPS, [("Authorization", "Basic YTpi")])[0] == 403


def admin(server):
    return ("Authorization", f"Bearer {server._users.token('admin')}")


def test_impersonation(server):
    def whoami(*headers):
        return raw(server, "POST", f"{REVIEWS}/selfsubjectreviews", [admin(server), *headers], {})

    status, body = whoami(
        ("Impersonate-User", "bob"), ("Impersonate-Group", "a, b"), ("Impersonate-Group", "c")
    )
    assert body["status"]["userInfo"] == {"username": "bob", "groups": ["a, b", "c", "system:authenticated"]}
    _, body = whoami(
        ("Impersonate-User", "system:serviceaccount:default:x"), ("Impersonate-Extra-A%2fB", "1")
    )
    assert body["status"]["userInfo"]["extra"] == {"a/b": ["1"]}
    assert whoami(("Impersonate-Group", "x"))[0] == 400
    status, body = raw(server, "GET", MAPS, [admin(server), ("Impersonate-User", "system:anonymous")])
    assert status == 403 and 'User "system:anonymous"' in body["message"]
    ann = ("Authorization", f"Bearer {server._users.token('ann')}")
    status, body = raw(
        server, "GET", MAPS, [ann, ("Impersonate-User", "admin"), ("Impersonate-Group", "system:masters")]
    )
    assert status == 403 and "cannot impersonate-on:user-info:list" in body["message"]


@pytest.mark.parametrize("space", ["\t", " \t ", "\t\t"])
def test_spaces_and_tabs_around_values_are_no_part_of_them(server, space):
    """RFC 9110 section 5.5: ``bob`` and a tab would be another user than ``bob``."""
    headers = [
        admin(server),
        ("Impersonate-User", f"{space}bob{space}"),
        ("Impersonate-Group", f"{space}one{space}"),
        ("Impersonate-Group", f"a\tb{space}"),
        ("Impersonate-Extra-Example.com%2fkey", f"value{space}"),
        ("Content-Type", f"application/json{space}"),
    ]
    status, body = raw(server, "POST", f"{REVIEWS}/selfsubjectreviews", headers, {})
    assert status == 201, body
    assert body["status"]["userInfo"] == {
        "username": "bob",
        "groups": ["one", "a\tb", "system:authenticated"],
        "extra": {"example.com/key": ["value"]},
    }


def test_roles_let_in_and_escalation_is_refused(server):
    def role(name, verbs):
        rules = [
            {
                "verbs": verbs,
                "apiGroups": ["rbac.authorization.k8s.io"],
                "resources": ["roles", "rolebindings"],
            }
        ]
        return {"metadata": {"name": name}, "rules": rules}

    own = "/namespaces/default"
    server.request("POST", f"{RBAC}{own}/roles", role("writer", ["create", "get", "update"]))
    bound = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"}}
    subject = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "cat"}]
    server.request(
        "POST", f"{RBAC}{own}/rolebindings", {"metadata": {"name": "w"}, "subjects": subject, **bound}
    )
    server.request("POST", f"{RBAC}{own}/roles", role("less", ["get"]), user="cat")
    said = refused(server, "POST", f"{RBAC}{own}/roles", role("more", ["delete"]), user="cat")
    assert said.endswith('{APIGroups:["rbac.authorization.k8s.io"], Resources:["roles"], Verbs:["delete"]}')
    stored = server.request("GET", f"{RBAC}{own}/roles/less", user="cat")
    stored["rules"][0]["verbs"].append("delete")
    assert "attempting to grant" in refused(server, "PUT", f"{RBAC}{own}/roles/less", stored, user="cat")
    above = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    body = {"metadata": {"name": "up"}, "roleRef": above, "subjects": subject}
    assert "attempting to grant" in refused(server, "POST", f"{RBAC}{own}/rolebindings", body, user="cat")


def test_an_update_that_creates_needs_both_rights(server):
    rules = [{"verbs": ["update", "patch"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}]
    server.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "leaser"}, "rules": rules})
    bound = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "leaser"}}
    subject = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "lee"}]
    server.request(
        "POST", f"{RBAC}/clusterrolebindings", {"metadata": {"name": "l"}, "subjects": subject, **bound}
    )
    lease = {"metadata": {"name": "x"}, "apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/x"
    assert 'cannot create resource "leases"' in refused(server, "PUT", path, lease, user="lee")


def token_of(server, name="robot", **spec):
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}"
    return server.request("POST", f"{path}/token", {"spec": spec})["status"]["token"]


@pytest.fixture(scope="module")
def robot(server):
    server.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    return token_of(server)


def bearer(token):
    return [("Authorization", f"Bearer {token}")]


def test_tokens_of_service_accounts(server, robot):
    _, body = raw(server, "POST", f"{REVIEWS}/selfsubjectreviews", bearer(robot), {})
    user = body["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:robot"
    assert user["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]
    claims = jwt.decode(robot, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 3600 and claims["aud"] == ["https://kubernetes.default.svc"]
    assert raw(server, "GET", "/openid/v1/jwks", bearer(robot))[1]["keys"][0]["alg"] == "ES256"
    document = raw(server, "GET", "/.well-known/openid-configuration", bearer(robot))[1]
    assert document["jwks_uri"] == f"{server.url}/openid/v1/jwks"
    elsewhere = token_of(server, audiences=["vault"])
    assert raw(server, "GET", "/version", bearer(elsewhere))[0] == 401
    review = {"spec": {"token": elsewhere, "audiences": ["vault", "x"]}}
    assert server.request("POST", f"{REVIEWS}/tokenreviews", review)["status"]["audiences"] == ["vault"]
    assert "may not specify a duration" in refused(
        server,
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/robot/token",
        {"spec": {"expirationSeconds": 5}},
    )


def test_a_token_ends_with_what_it_is_bound_to(server, robot):
    server.request("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    bound = token_of(server, boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "s"})
    assert raw(server, "GET", "/version", bearer(bound))[0] == 200
    server.request("DELETE", "/api/v1/namespaces/default/secrets/s")
    assert raw(server, "GET", "/version", bearer(bound))[0] == 401
    server.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "brief"}})
    brief = token_of(server, "brief")
    server.request("DELETE", "/api/v1/namespaces/default/serviceaccounts/brief")
    server.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "brief"}})
    assert raw(server, "GET", "/version", bearer(brief))[0] == 401


def test_a_deletion_that_finalizers_hold_up_ends_a_token_too(server, monkeypatch):
    accounts, secrets = "/api/v1/namespaces/default/serviceaccounts", "/api/v1/namespaces/default/secrets"
    held = {"finalizers": ["example.com/hold"]}
    server.request("POST", accounts, {"metadata": {"name": "leaving", **held}})
    server.request("POST", secrets, {"metadata": {"name": "leaving", **held}})
    of_account = token_of(server, "leaving")
    server.request("POST", accounts, {"metadata": {"name": "staying"}})
    ref = {"apiVersion": "v1", "kind": "Secret", "name": "leaving"}
    of_secret = token_of(server, "staying", boundObjectRef=ref)

    def error(token):
        body = {"spec": {"token": token}}
        return server.request("POST", f"{REVIEWS}/tokenreviews", body)["status"].get("error")

    server.request("DELETE", f"{accounts}/leaving")
    server.request("DELETE", f"{secrets}/leaving")
    assert error(of_account) is None and error(of_secret) is None
    monkeypatch.setattr(service_accounts, "DELETED_GRACE_SECONDS", -60)
    gone = "service account default/leaving has been deleted"
    assert error(of_account) == f"[invalid bearer token, {gone}]"
    assert error(of_secret) == "[invalid bearer token, service account token has been invalidated]"
    assert (
        raw(server, "GET", MAPS, bearer(of_account))[0]
        == raw(server, "GET", MAPS, bearer(of_secret))[0]
        == 401
    )


def test_damaged_tokens(server, robot):
    head, claims, signature = robot.split(".")
    own = ec.generate_private_key(ec.SECP256R1())
    true = jwt.decode(robot, options={"verify_signature": False})
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    hostile = [
        f"{none}.{claims}.",
        f"{head}.{claims}.",
        f"{head}.{claims}.{signature[:-4]}AAAA",
        jwt.encode(true, own, "ES256"),
        jwt.encode(true, "secret" * 8, "HS256"),
        jwt.encode({**true, "iss": "https://other"}, own, "ES256"),
        f"{head}.{base64.urlsafe_b64encode(b'[' * 9000).decode()}.{signature}",
        f"{head}.{claims * 40}.{signature}",
        "a.b.c",
        "..",
    ]
    for token in hostile:
        assert raw(server, "GET", "/version", bearer(token))[0] == 401, token[:80]


def request_for(name, groups=()):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    subject += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject)).sign(key, hashes.SHA256())
    pem = csr.public_bytes(serialization.Encoding.PEM)
    return key, base64.b64encode(pem).decode()


CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def csr(name, request):
    spec = {
        "request": request,
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    return {"metadata": {"name": name}, "spec": spec}


def test_an_approved_certificate_lets_its_user_in(server, tmp_path):
    key, request = request_for("dora", ["ops"])
    made = server.request("POST", CSRS, csr("dora", request))
    made["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "x", "message": "y"}]}
    server.request("PUT", f"{CSRS}/dora/approval", made)
    until = time.monotonic() + 60
    while not (signed := server.request("GET", f"{CSRS}/dora")["status"].get("certificate")):
        assert time.monotonic() < until
        time.sleep(0.02)
    path = tmp_path / "dora.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(base64.b64decode(signed) + private)
    context = ssl.create_default_context(cadata=server._authority.decode())
    context.load_cert_chain(path)
    _, body = raw(server, "POST", f"{REVIEWS}/selfsubjectreviews", [], {}, context)
    assert body["status"]["userInfo"]["username"] == "dora"
    assert body["status"]["userInfo"]["groups"] == ["ops", "system:authenticated"]


def test_who_may_not_approve_and_what_may_not_be_asked_for(server):
    _, request = request_for("eve", ["system:masters"])
    assert "system:masters group is not allowed" in refused(server, "POST", CSRS, csr("eve", request))
    rules = [
        {
            "verbs": ["*"],
            "apiGroups": ["certificates.k8s.io"],
            "resources": ["certificatesigningrequests", "certificatesigningrequests/approval"],
        }
    ]
    server.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "csr"}, "rules": rules})
    bound = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "csr"}}
    subject = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "fay"}]
    server.request(
        "POST", f"{RBAC}/clusterrolebindings", {"metadata": {"name": "csr"}, "subjects": subject, **bound}
    )
    made = server.request("POST", CSRS, csr("fay", request_for("fay")[1]), user="fay")
    made["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "x", "message": "y"}]}
    said = refused(server, "PUT", f"{CSRS}/fay/approval", made, user="fay")
    assert (
        'user not permitted to approve requests with signerName "kubernetes.io/kube-apiserver-client"' in said
    )


def test_a_condition_that_ends_a_request_stays(server):
    wanted = csr("ended", request_for("gus")[1])
    wanted["spec"]["signerName"] = "example.com/nobody"
    made = server.request("POST", CSRS, wanted)
    both = [
        {"type": kind, "status": "True", "reason": "x", "message": "y"} for kind in ("Approved", "Failed")
    ]
    for part, conditions in (("approval", both[:1]), ("status", both)):
        made["status"] = {**made.get("status", {}), "conditions": conditions}
        made["metadata"].pop("resourceVersion", None)
        server.request("PUT", f"{CSRS}/ended/{part}", made)
    made["status"]["conditions"] = both[:1]
    for part in ("approval", "status"):
        said = refused(server, "PUT", f"{CSRS}/ended/{part}", made)
        assert said.endswith('updates may not remove a condition of type "Failed"')


def wait_for(true) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_rules_stay_where_there_is_nothing_to_gather(server):
    """As in kube-controller-manager: it gives up only rules that it has written."""
    path = f"{RBAC}/clusterroles"
    selects = {"clusterRoleSelectors": [{"matchLabels": {"nobody": "has-it"}}]}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    body = {"metadata": {"name": "own-rules"}, "aggregationRule": selects, "rules": [rule]}
    server.request("POST", path, body)
    gathering = {
        "metadata": {"name": "bell"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"b": "b"}}]},
    }
    server.request("POST", path, gathering)
    server.request("POST", path, {"metadata": {"name": "rings", "labels": {"b": "b"}}, "rules": [rule]})
    wait_for(lambda: server.request("GET", f"{path}/bell").get("rules") == [rule])
    assert server.request("GET", f"{path}/own-rules")["rules"] == [rule]
    server.request("DELETE", f"{path}/rings")
    wait_for(lambda: not server.request("GET", f"{path}/bell").get("rules"))


def test_cluster_roles_gather_rules(server):
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    rules = [{"verbs": ["get"], "apiGroups": ["shop.example.com"], "resources": ["orders"]}]
    server.request(
        "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "orders", "labels": label}, "rules": rules}
    )
    until = time.monotonic() + 60
    for name in ("view", "edit", "admin"):
        while rules[0] not in (server.request("GET", f"{RBAC}/clusterroles/{name}").get("rules") or []):
            assert time.monotonic() < until
            time.sleep(0.02)
