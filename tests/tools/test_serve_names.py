"""kube-apiserver's options: each is one of serve's, taken without effect, or refused by name."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import yaml

from apimachinery.server.admission.plugins import parse_plugins
from apimachinery.server.catalog.options import OptionError
from kubewright import cli
from kubewright.tools.arguments import serve_names
from kubewright.tools.envtest.flags import FlagError, read
from kubewright.tools.serve.names import etcd_url, said, settle
from tests.tools.command import kubewright

FLAGS: dict[str, dict[str, str | bool]] = yaml.safe_load(
    (Path(__file__).parent / "kube_apiserver_flags.yaml").read_text()
)
"""What becomes of a flag → flag → a value of it."""
NAMES = [name for flags in FLAGS.values() for name in flags]


def word_of(name: str, value: str | bool) -> str:
    return f"--{name}" if value is True else f"--{name}={value}"


def test_every_flag_is_known() -> None:
    known = {name.removeprefix("--") for name in cli.parser_of("serve")._option_string_actions}
    assert len({*NAMES}) == 171
    assert {*NAMES} <= known


def test_each_flag_is_taken_noted_or_refused() -> None:
    outcomes: dict[str, list[str]] = {outcome: [] for outcome in FLAGS}
    for name in NAMES:
        value = next(flags[name] for flags in FLAGS.values() if name in flags)
        try:
            lines = list(said(read([word_of(name, value)])))
        except FlagError as fault:
            assert str(fault) == f"--{name} is kube-apiserver's and not here; leave it out"
            outcomes["refused"].append(name)
        else:
            outcomes[
                "noted" if any(line.startswith(f"--{name}: taken") for line in lines) else "taken"
            ].append(name)
    assert {outcome: sorted(names) for outcome, names in outcomes.items()} == {
        outcome: sorted(flags) for outcome, flags in FLAGS.items()
    }


def test_nothing_is_listed_that_kube_apiserver_does_not_have() -> None:
    listed = {name.removeprefix("--") for name in (*serve_names.TAKEN, *serve_names.NOT_HERE)}
    assert listed <= set(NAMES)


def given(*words: str) -> argparse.Namespace:
    options = read(words)
    settle(options)
    return options


def test_options_are_read_as_go_reads_them() -> None:
    options = given(
        "--authorization-mode=Node", "--authorization-mode", "RBAC", "--audit-log-compress", "--profiling=F", "-v", "4",
        "--shutdown-send-retry-after=false", "--secure-port", "7443", "--request-timeout=1m30s", "--allow-privileged",
        "--service-account-max-token-expiration=2h", "--advertise-address=127.0.0.1", "--emulated-version=kube=1.35",
    )  # fmt: skip
    assert (options.authorization_mode, options.port, options.request_timeout) == ("Node,RBAC", 7443, 90.0)
    assert (options.audit_log_compress, options.shutdown_send_retry_after, options.profiling) == (
        True,
        False,
        "false",
    )
    assert options.service_account_max_token_expiration == 7200.0
    assert (options.advertise_address, options.emulated_version) == ("", "1.35")
    lines = list(said(options))
    assert any(line.startswith("--allow-privileged: taken, without effect") for line in lines)
    assert any(line.startswith("--v: taken") for line in lines)


def test_defaults_are_those_of_kube_apiserver() -> None:
    options = given()
    assert (options.host, options.port, options.authorization_mode) == ("0.0.0.0", 6443, "AlwaysAllow")


def test_the_storage_of_etcd_servers() -> None:
    assert given("--etcd-servers=http://a:1,http://b:2").storage == "etcd://a:1,b:2"
    assert given("--etcd-servers", "https://a:1", "--etcd-prefix=/x").storage == "etcds://a:1?prefix=/x"
    assert given("--etcd-servers=http://a:1", "--etcd-servers=http://b:2").storage == "etcd://a:1,b:2"
    for wrong in ("a:1", "http://a:1/path", "unix:///a", "http://a:1,https://b:2"):
        with pytest.raises(OptionError, match="--etcd-servers"):
            etcd_url(wrong, "")


def test_admission_control_names_all_plugins_there_are() -> None:
    options = given("--admission-control=ResourceQuota", "--admission-control", "LimitRanger, AlwaysDeny")
    names = parse_plugins(options.enable_admission_plugins, options.disable_admission_plugins)
    assert names == {"ResourceQuota", "LimitRanger", "AlwaysDeny"}


def test_kinds_have_an_etcd_of_their_own_where_none_keeps_anything() -> None:
    words = ["--etcd-servers-overrides", "/events#http://127.0.0.1:1"]
    assert list(said(given(*words, "--storage=memory://"))) == [
        "--etcd-servers-overrides: taken, without effect: objects of all kinds are in one storage"
    ]
    with pytest.raises(OptionError, match="--etcd-servers-overrides is not here with a storage in etcd"):
        given(*words, "--etcd-servers=http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--storage=memory://", "--etcd-servers=http://a:1"],
            "--storage and --etcd-servers exclude each other",
        ),
        (
            ["--storage=memory://", "--service-account-jwks-uri=http://a/keys"],
            "--service-account-jwks-uri: 'http://a/keys' is no https address",
        ),
        (["--tls-cert-file=a"], "--tls-cert-file and --tls-private-key-file go together"),
        (
            ["--tls=off", "--tls-cert-file=a", "--tls-private-key-file=b"],
            "--tls and --tls-cert-file exclude each other",
        ),
        (
            ["--admission-control=LimitRanger", "--disable-admission-plugins=Priority"],
            "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive",
        ),
        (["--admission-control=LimitRangr"], "'LimitRangr' is none"),
        (["--feature-gates=HPAScaleToZero=true"], "--feature-gates: HPAScaleToZero is false in 1.36"),
        (["--feature-gates=AllAlpha=true"], "--feature-gates: AllAlpha cannot be set here"),
        (["--feature-gates=X"], "--feature-gates: missing bool value for X"),
        (["--feature-gates=X=maybe"], "--feature-gates: invalid value of X: maybe"),
    ],
)
def test_what_cannot_be_is_refused_by_name(words: list[str], said: str) -> None:
    code, _, err = kubewright("serve", *words)
    assert (code, said in err) == (2, True), err


def test_gates() -> None:
    options = given("--feature-gates=kube:HPAScaleToZero=false,WatchList=true", "--feature-gates=Nope=true")
    assert list(said(options)) == [
        "--feature-gates WatchList, Nope: taken, without effect: nothing here depends on them"
    ]


def test_values_that_serve_refuses_are_refused_with_the_flag() -> None:
    with pytest.raises(FlagError, match="invalid argument for \"--secure-port\" flag: 'abc' is no port"):
        read(["--secure-port=abc"])
    with pytest.raises(FlagError, match="--service-account-lookup"):
        read(["--service-account-lookup=false"])
    with pytest.raises(FlagError, match="--egress-selector-config-file is kube-apiserver's and not here"):
        read(["--egress-selector-config-file=a"])
