"""Kubeconfig files as kubectl reads them; every refusal with its text."""

from __future__ import annotations

import base64
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.client.config import Config, ConfigError, proxy_of
from apimachinery.client.credentials import CredentialSource


def kubeconfig(**change: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://example.test:6443/"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        **change,
    }


def write(folder: Path, document: Any, name: str = "config") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_context_names_server_namespace_and_user(tmp_path: Path) -> None:
    config = Config.load(write(tmp_path, kubeconfig()), environment={})
    assert (config.server, config.namespace, config.token) == ("https://example.test:6443", "team", "secret")
    assert CredentialSource(config).current().authorization == "Bearer secret"


def test_of_several_files_the_first_gives_a_whole_entry(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a",
        kubeconfig(users=[{"name": "u", "user": {"username": "x", "password": "y"}}], clusters=[]),
    )
    second = write(tmp_path / "b", kubeconfig(**{"current-context": "two"}))
    environment = {"KUBECONFIG": f"{tmp_path}/absent:{first}:{second}"}
    config = Config.load(environment=environment)
    assert (config.server, config.token, config.username) == ("https://example.test:6443", "", "x")
    assert CredentialSource(config).current().authorization == "Basic " + base64.b64encode(b"x:y").decode()


def test_paths_are_relative_to_their_file_and_data_beats_files(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"from file")
    relative = {"server": "https://h", "certificate-authority": "ca.pem"}
    path = write(tmp_path, kubeconfig(clusters=[{"name": "c", "cluster": relative}]))
    assert Config.load(path, environment={}).certificate_authority == b"from file"
    both = {**relative, "certificate-authority-data": base64.b64encode(b"inline").decode()}
    path = write(tmp_path, kubeconfig(clusters=[{"name": "c", "cluster": both}]))
    assert Config.load(path, environment={}).certificate_authority == b"inline"


def test_home_is_read_without_kubeconfig_and_a_pod_without_either(tmp_path: Path) -> None:
    write(tmp_path / ".kube", kubeconfig())
    assert Config.load(environment={"HOME": str(tmp_path)}).namespace == "team"
    account = tmp_path / "account"
    account.mkdir()
    for name, text in {"token": "t1", "ca.crt": "pem", "namespace": "podns\n"}.items():
        (account / name).write_text(text)
    pod = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    config = Config.in_cluster(folder=account, environment=pod)
    assert (config.server, config.namespace) == ("https://[fd00::1]:443", "podns")


def test_a_rotated_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    source = CredentialSource(Config(server="https://h", token_file=str(token), token="stale"))
    assert source.current().authorization == "Bearer first"
    token.write_text("second")
    assert source.current().authorization == "Bearer first"
    later = time.monotonic() + 61
    monkeypatch.setattr("apimachinery.client.credentials.time.monotonic", lambda: later)
    assert source.current().authorization == "Bearer second"


def plugin(tmp_path: Path, program: str, **more: Any) -> Config:
    script = tmp_path / "plugin.py"
    script.write_text(program)
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
        **more,
    }
    return Config.load(
        write(tmp_path, kubeconfig(users=[{"name": "u", "user": {"exec": entry}}])), environment={}
    )


GIVES = """
import json, os
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
n = int(open(os.environ["COUNT"]).read() or 0) + 1
open(os.environ["COUNT"], "w").write(str(n))
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential",
                  "status": {"token": f"t{n}", "expirationTimestamp": os.environ["EXPIRES"]}}))
"""


def test_an_exec_plugin_is_run_once_until_its_credential_expires(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("")
    env = [{"name": "COUNT", "value": str(count)}, {"name": "EXPIRES", "value": "2999-01-01T00:00:00Z"}]
    source = CredentialSource(plugin(tmp_path, GIVES, env=env))
    assert [source.current().authorization for _ in range(3)] == ["Bearer t1"] * 3
    source.refresh()
    assert source.current().authorization == "Bearer t2"
    expired = [env[0], {"name": "EXPIRES", "value": "2001-01-01T00:00:00Z"}]
    source = CredentialSource(plugin(tmp_path, GIVES, env=expired))
    assert [source.current().authorization for _ in range(2)] == ["Bearer t3", "Bearer t4"]


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("raise SystemExit('no card')", "ended with 1: no card"),
        ("print('hello')", "printed no client.authentication.k8s.io/v1 ExecCredential: Expecting value"),
        ('print(\'{"kind": "Pod", "apiVersion": "v1", "status": {}}\')', "it answered v1 Pod"),
    ],
)
def test_a_failing_plugin_is_reported_in_its_own_words(tmp_path: Path, program: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text.replace(".", r"\.")):
        CredentialSource(plugin(tmp_path, program)).current()


def test_a_missing_plugin_gives_its_install_hint(tmp_path: Path) -> None:
    config = plugin(tmp_path, "", command="no-such-plugin-here", installHint="get it from the platform team")
    with pytest.raises(ConfigError) as caught:
        CredentialSource(config).current()
    assert str(caught.value) == 'exec plugin "no-such-plugin-here" not found: get it from the platform team'


REFUSED = [
    ("no such context", kubeconfig(**{"current-context": "x"}), 'context "x" does not exist; there are: one'),
    (
        "no context",
        kubeconfig(**{"current-context": ""}),
        "no context chosen: the kubeconfig has no current-context",
    ),
    ("no cluster", kubeconfig(clusters=[]), 'context "one": cluster "c" does not exist in the kubeconfig'),
    ("another kind", {"kind": "Pod"}, "{path}: not a kubeconfig (kind Config)"),
    ("nameless", kubeconfig(users=[{"user": {}}]), "{path}: users: an entry has no name"),
    (
        "bad URL",
        kubeconfig(clusters=[{"name": "c", "cluster": {"server": "h:6443"}}]),
        'cluster "c": server must be an http or https URL, not "h:6443"',
    ),
    (
        "bad data",
        kubeconfig(users=[{"name": "u", "user": {"client-key-data": "%%%"}}]),
        "client-key-data: not base64",
    ),
    (
        "old plugin",
        kubeconfig(users=[{"name": "u", "user": {"exec": {"apiVersion": "v0", "command": "x"}}}]),
        'user "u": exec.apiVersion "v0" is not one of client.authentication.k8s.io/v1, '
        "client.authentication.k8s.io/v1beta1",
    ),
]


@pytest.mark.parametrize(
    ("document", "text"), [(d, t) for _, d, t in REFUSED], ids=[name for name, _, _ in REFUSED]
)
def test_what_cannot_be_used_is_refused_with_file_and_entry(tmp_path: Path, document: Any, text: str) -> None:
    path = write(tmp_path, document)
    with pytest.raises(ConfigError) as caught:
        Config.load(path, environment={})
    assert str(caught.value) == text.replace("{path}", str(path))


def test_broken_yaml_and_absent_files_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("a: [")
    with pytest.raises(ConfigError, match="not a readable kubeconfig"):
        Config.load(broken, environment={})
    with pytest.raises(ConfigError, match="no such kubeconfig file"):
        Config.load(tmp_path / "absent", environment={})
    with pytest.raises(ConfigError, match="no kubeconfig found"):
        Config.load(environment={"HOME": str(tmp_path / "nobody")})


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxied"),
    [
        ("https://api.example.com", "", True),
        ("https://api.example.com", "example.com", False),
        ("https://api.example.com", ".example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://example.com:6443", "example.com:443", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://11.1.2.3:6443", "10.0.0.0/8", True),
        ("https://127.0.0.1:6443", "", False),
        ("https://api.example.com", "*", False),
    ],
)
def test_no_proxy(server: str, no_proxy: str, proxied: bool) -> None:
    environment = {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": no_proxy}
    assert proxy_of(server, environment) == ("http://proxy:3128" if proxied else "")


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    user = {"as": "jane", "as-groups": ["a", "b"], "as-user-extra": {"scopes": ["x"]}, "as-uid": "7"}
    config = Config.load(write(tmp_path, kubeconfig(users=[{"name": "u", "user": user}])), environment={})
    assert config.impersonation.headers() == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scopes", "x"),
    ]


def test_a_json_kubeconfig_is_a_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig()))
    assert Config.load(path, environment={}).token == "secret"


def test_base64_may_have_line_breaks(tmp_path: Path) -> None:
    wrapped = base64.encodebytes(b"certificate " * 20).decode()
    assert "\n" in wrapped[:-1]
    cluster = {"server": "https://h", "certificate-authority-data": wrapped}
    path = write(tmp_path, kubeconfig(clusters=[{"name": "c", "cluster": cluster}]))
    assert Config.load(path, environment={}).certificate_authority == b"certificate " * 20


def test_a_token_file_that_is_missing_for_a_moment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apimachinery.client.credentials.MISSING_FILE_SECONDS", 0.0)
    file = tmp_path / "token"
    file.write_text("one")
    source = CredentialSource(Config(server="https://h", token_file=str(file)))
    assert source.current().authorization == "Bearer one"
    file.unlink()
    source.refresh()
    assert source.current().authorization == "Bearer one"
    assert "going on with the token read before" in caplog.text
    file.write_text("two")
    assert source.current().authorization == "Bearer two"
    with pytest.raises(ConfigError, match="cannot read"):
        CredentialSource(Config(server="https://h", token_file=str(tmp_path / "never"))).current()


@pytest.mark.parametrize(
    ("provider", "fault"),
    [
        ({"name": "gcp"}, 'user "u": auth-provider "gcp" is not supported'),
        ({"name": "oidc", "config": {"client-id": "x"}}, r"needs config\.idp-issuer-url"),
        ({"name": "oidc", "config": {"idp-issuer-url": "https://i"}}, r"needs config\.client-id"),
    ],
)
def test_no_auth_provider_is_passed_over(tmp_path: Path, provider: dict[str, Any], fault: str) -> None:
    path = write(tmp_path, kubeconfig(users=[{"name": "u", "user": {"auth-provider": provider}}]))
    with pytest.raises(ConfigError, match=fault):
        Config.load(path, environment={})


def test_an_id_token_that_cannot_be_refreshed_says_so(tmp_path: Path) -> None:
    settings = {"idp-issuer-url": "https://i", "client-id": "x"}
    user = {"auth-provider": {"name": "oidc", "config": settings}}
    config = Config.load(write(tmp_path, kubeconfig(users=[{"name": "u", "user": user}])), environment={})
    with pytest.raises(ConfigError, match=r"auth-provider oidc: the id-token has expired .* log in again"):
        CredentialSource(config).current()
