"""Health, metrics, tokens, certificates, kubeconfig, options: what surrounds the API."""

from __future__ import annotations

import argparse
import base64
import json
import ssl
import stat

import pytest

from apimachinery.access.authentication import BearerTokens, TokenFileError, read_token_file
from apimachinery.http.messages import Request
from apimachinery.http.queries import parse_query
from apimachinery.http.tls import TlsError, ensure_certificate, server_context
from apimachinery.server.catalog.options import (
    OptionError,
    parse_controllers,
    parse_runtime_config,
)
from apimachinery.server.describe.front_page import front_page, wants_page
from apimachinery.server.operate.health import Check, Health
from apimachinery.server.operate.kubeconfig import kubeconfig, write_kubeconfig
from kubewright.tools.arguments.serve import add_arguments
from kubewright.tools.serve import command as serve
from kubewright.tools.serve.files import write_private


def ask(health: Health, path: str, query: str = "", method: str = "GET") -> tuple[int, str]:
    answer = health.answer(Request(method, path, query))
    assert answer is not None
    assert isinstance(answer.body, bytes)
    return answer.status, answer.body.decode()


def ready() -> Health:
    health = Health()
    health.started = True
    return health


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_health(path):
    assert ask(ready(), path) == (200, "ok")
    assert ask(ready(), path, method="POST") == (200, "ok")
    status, text = ask(ready(), path, "verbose")
    assert status == 200
    assert text.startswith("[+]ping ok\n[+]log ok\n")
    assert text.endswith(f"{path[1:]} check passed\n")
    assert ask(ready(), f"{path}/ping") == (200, "ok")
    assert ask(ready(), f"{path}/nosuch") == (404, "404 page not found\n")


def test_other_paths_are_not_of_health():
    for path in ("/", "/livezz", "/live", "/livez/", "/api", "/api/livez"):
        assert ready().answer(Request("GET", path)) is None


def test_a_failing_check_is_500_can_be_excluded_and_says_no_reason():
    health = ready()
    health.add(Check("etcd", lambda: False))
    status, text = ask(health, "/readyz")
    assert status == 500
    assert "[-]etcd failed: reason withheld\n" in text and text.endswith("readyz check failed\n")
    assert ask(health, "/readyz", "exclude=etcd") == (200, "ok")
    assert "[+]etcd excluded: ok" in ask(health, "/readyz", "exclude=etcd&verbose")[1]
    assert ask(health, "/readyz/etcd")[0] == 500
    unknown = ask(ready(), "/livez", "exclude=nosuch&verbose")
    assert unknown[0] == 200 and 'no matches for "nosuch"' in unknown[1]


def test_start_and_end():
    health = Health(grace_seconds=60)
    assert ask(health, "/readyz")[0] == 500
    assert ask(health, "/livez")[0] == 200
    assert ask(Health(), "/livez")[0] == 500
    health.started = True
    assert ask(health, "/readyz")[0] == 200
    health.ending = True
    assert ask(health, "/readyz")[0] == 500
    assert ask(health, "/livez")[0] == 200
    assert ask(health, "/healthz")[0] == 200


def test_a_token_file(tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text('t1,ann,1,"devs,ops"\n\nt2,bob,2\nt3,root,3,system:masters\n')
    tokens = read_token_file(path)
    assert tokens.administrator() == "t3"
    bearer = BearerTokens([tokens])
    user = bearer.authenticate(Request("GET", "/", headers={"authorization": "Bearer t1"})).user
    assert (user.name, user.uid, user.groups) == ("ann", "1", ("devs", "ops", "system:authenticated"))
    assert bearer.authenticate(Request("GET", "/")) is None
    assert bearer.authenticate(Request("GET", "/", headers={"authorization": "Basic dDE="})) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "holds no token"),
        ("t,ann\n", ":1: a line needs"),
        ("a,b,c\n,x,y\n", ":2: a line needs"),
        ("\xff", "not a CSV file"),
    ],
)
def test_what_is_no_token_file(tmp_path, text, fault):
    path = tmp_path / "tokens.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(TokenFileError, match=fault):
        read_token_file(path)


def test_a_certificate_is_made_kept_and_made_anew(tmp_path):
    certificate, key = ensure_certificate(tmp_path / "certs", "127.0.0.1")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    first = certificate.read_bytes()
    server_context(certificate, key)
    ssl.create_default_context(cadata=first.decode())
    ensure_certificate(tmp_path / "certs", "127.0.0.1")
    assert certificate.read_bytes() == first
    ensure_certificate(tmp_path / "certs", "10.1.2.3")
    assert certificate.read_bytes() != first
    certificate.write_text("garbage")
    ensure_certificate(tmp_path / "certs", "127.0.0.1")
    server_context(certificate, key)


def test_what_is_no_certificate(tmp_path):
    with pytest.raises(TlsError, match="cannot load the certificate"):
        server_context(tmp_path / "no.crt", tmp_path / "no.key")


def test_a_kubeconfig_is_its_owner_s_only(tmp_path):
    path = tmp_path / "config"
    write_kubeconfig(path, kubeconfig("https://127.0.0.1:1", authority=b"PEM", token="t"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shown = json.loads(path.read_text())
    cluster = shown["clusters"][0]["cluster"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"PEM"
    assert shown["users"][0]["user"] == {"token": "t"}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a=b&a=c", {"a": ["b", "c"]}),
        ("a", {"a": [""]}),
        ("a=%41+b", {"a": ["A b"]}),
        ("a=%4&b=1", {"b": ["1"]}),
        ("a=%zz&b=1", {"b": ["1"]}),
        ("a=1;b=2&c=3", {"c": ["3"]}),
        ("a=%ff", {"a": ["\ufffd"]}),
        ("&&a=1&", {"a": ["1"]}),
    ],
)
def test_queries_are_read_as_go_reads_them(text, found):
    assert parse_query(text) == found


def test_controllers_and_runtime_config():
    assert {"namespace", "gc", "clusterrole-aggregation", "csrsigning"} <= parse_controllers("all")
    assert "node" not in parse_controllers("all")
    assert parse_controllers("none") == frozenset()
    assert parse_controllers("gc") == {"gc"}
    with pytest.raises(OptionError, match="'nosuch' is none"):
        parse_controllers("gc,nosuch")
    assert parse_runtime_config(["api/all=true,apps/v1=false", "x/v1"]) == {
        "api/all": True,
        "apps/v1": False,
        "x/v1": True,
    }
    for bad in ("apps/v1=perhaps", "=true"):
        with pytest.raises(OptionError, match="is not KEY=true"):
            parse_runtime_config([bad])


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--host", "0.0.0.0"], "give --token-file and --tls"),
        (["--host", "example.com", "--tls", "auto"], "give --token-file and --tls"),
        (["--tls", "only.crt"], "use auto, off, or CERT,KEY"),
        (["--tls", "no.crt,no.key"], "cannot load the certificate"),
        (["--token-file", "/nonexistent"], "No such file"),
        (["--storage", "ftp://x"], "is no storage"),
        (["--controllers", "x"], "is none"),
        (["--runtime-config", "a=b"], "is not KEY=true"),
        (
            ["--runtime-config", "apps/v2=true"],
            "'apps/v2' names nothing that is served; did you mean apps/v1?",
        ),
        (["--runtime-config", "apps/v1/deploymets=false"], "did you mean apps/v1/deployments?"),
        (["--tls", "off"], "kubectl sends no token over http"),
    ],
)
def test_options_that_cannot_be_end_with_2_and_one_line(arguments, fault, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert serve.run(parser.parse_args(["--port", "0", "--storage", "memory://", *arguments])) == 2
    said = capsys.readouterr().err
    assert fault in said
    assert said.count("\n") == 1 and said.startswith("kubewright serve: error: ")


def test_a_folder_that_is_made_for_private_files_is_private(tmp_path):
    write_private(tmp_path / "x.db.certs" / "kubeconfig", b"secret")
    assert stat.S_IMODE((tmp_path / "x.db.certs").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        ("text/html,application/xhtml+xml,*/*;q=0.8", True),
        ("application/json", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_a_browser_gets_a_page_and_a_client_does_not(accept, is_page):
    assert wants_page(Request("GET", "/", headers={"accept": accept})) is is_page
    page = front_page("1.36")
    assert page.status == 200 and b'href="/apis"' in page.body and b"Kubernetes 1.36" in page.body
