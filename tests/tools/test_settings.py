"""Helps by groups, and options from a file and from the environment."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kubewright import cli
from kubewright.tools.arguments.settings import SettingError, settled
from tests.tools.command import kubewright

EVERYDAY = 12


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    waiting = [(name, cli.parser_of(name)) for name in cli.COMMANDS]
    for name, parser in waiting:
        yield name, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [(f"{name} {inner}", each) for inner, each in action.choices.items()]


def test_every_option_has_a_description() -> None:
    bare = [
        f"{name} {action.option_strings or action.dest}"
        for name, parser in parsers()
        for action in parser._actions
        if not action.help and not isinstance(action, argparse._SubParsersAction)
    ]
    assert bare == []


def test_every_usage_is_a_line_or_two() -> None:
    for name, parser in parsers():
        lines = parser.format_usage().splitlines()
        assert len(lines) <= 2 and lines[0].startswith(f"usage: kubewright {name} [options]"), lines


def test_the_help_of_serve_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    parser = cli.parser_of("serve")
    assert len(parser._optionals._group_actions) == EVERYDAY
    short = shown(capsys, "--help")
    assert "--storage" in short and "--audit-log-path" not in short
    for title in parser.groups():
        assert f"--help={title} " in short
        page = shown(capsys, f"--help={title}")
        assert page.startswith("usage: kubewright serve [options]") and "--storage URL" not in page
    whole = shown(capsys, "--help=all")
    assert all(name in whole for name in ("--storage", "--audit-log-path", "--oidc-issuer-url", "examples:"))
    assert shown(capsys, "-h") == short


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as end:
        cli.main(["serve", *words])
    assert end.value.code == 0
    return capsys.readouterr().out


def test_a_group_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["serve", "--help=adit"])
    err = capsys.readouterr().err
    assert end.value.code == 2 and "--help=adit: there is no such group; did you mean audit?" in err


def options(folder: Path, config: str, environ: Mapping[str, str], *words: str) -> argparse.Namespace:
    parser = cli.parser_of("serve")
    if config:
        (folder / "serve.yaml").write_text(config)
        words = (*words, "--config", str(folder / "serve.yaml"))
    return parser.parse_args(settled(parser, words, environ))


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    config = """
    port: 7001
    host: 127.0.0.2
    storage: memory://
    anonymous-admin: true
    audit-log-compress: false
    profiling: false
    runtime-config: [api/all=true, apps/v1=false]
    service-account-issuer: https://a.example
    """
    environ = {"KUBEWRIGHT_HOST": "127.0.0.3", "KUBEWRIGHT_PORT": "7002", "KUBEWRIGHT_READ_ONLY": "True"}
    read = options(tmp_path, config, environ, "--secure-port", "7003", "--runtime-config=api/beta=true")
    assert (read.port, read.host, read.storage) == (7003, "127.0.0.3", "memory://")
    assert (read.anonymous_admin, read.audit_log_compress, read.read_only) == (True, False, True)
    assert read.profiling == "false"
    assert read.runtime_config == ["api/beta=true"]
    assert read.service_account_issuer == ["https://a.example"]


def test_lists_of_the_file_are_repeated_options(tmp_path: Path) -> None:
    read = options(tmp_path, "runtime-config: [api/all=true, apps/v1=false]\n", {})
    assert read.runtime_config == ["api/all=true", "apps/v1=false"]


def test_the_environment_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "serve.yaml").write_text("port: 7001\n")
    assert options(tmp_path, "", {"KUBEWRIGHT_CONFIG": str(tmp_path / "serve.yaml")}).port == 7001


def test_the_help_is_printed_whatever_the_settings(tmp_path: Path) -> None:
    assert settled(cli.parser_of("serve"), ["--help=audit"], {"KUBEWRIGHT_PORT": "x"}) == ["--help=audit"]


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ("prt: 1", ":1:1: there is no option 'prt'; did you mean port?"),
        ("port: http", ":1:1: port: 'http' is no port: give 0 to 65535"),
        ("storage: memory://\nport: 99999", ":2:1: port: '99999' is no port"),
        ("anonymous-admin: maybe", ":1:1: anonymous-admin: 'maybe' is neither true nor false"),
        ("log-level: loud", ":1:1: log-level: invalid choice: 'loud'"),
        ("port: [1, 2]", ":1:1: port: takes one value, not a list"),
        ("storage: {a: b}", ":1:1: storage: give text, a number, true or false"),
        ("storage:", ":1:1: storage: give text"),
        ("config: other.yaml", "there is no option 'config'"),
        ("- port", "write options and their values"),
        ("port: [", "--config: "),
        ("", "is empty"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_their_place(
    config: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "serve.yaml").write_text(config)
    with pytest.raises(SystemExit) as end:
        cli.main(["serve", "--config", str(tmp_path / "serve.yaml")])
    err = capsys.readouterr().err
    assert end.value.code == 2 and fault in err and "serve.yaml" in err, err


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("KUBEWRIGHT_PORT", "http", "KUBEWRIGHT_PORT: port: 'http' is no port"),
        (
            "KUBEWRIGHT_TOKEN_FLE",
            "x",
            "KUBEWRIGHT_TOKEN_FLE: there is no such option; did you mean KUBEWRIGHT_TOKEN_FILE?",
        ),
        ("KUBEWRIGHT_CONFIG", "/none", "--config: /none: "),
    ],
)
def test_variables_that_cannot_be_are_refused(name: str, value: str, fault: str) -> None:
    with pytest.raises(SettingError) as refused:
        settled(cli.parser_of("serve"), [], {name: value})
    assert str(refused.value).startswith(fault)


def test_other_variables_of_the_name_are_left_alone() -> None:
    assert settled(cli.parser_of("serve"), [], {"KUBEWRIGHT_ETCD": "x", "KUBEWRIGHT_TABLES": "y"}) == []


def test_a_wrong_config_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "serve.yaml").write_text("storage: memory://\nread-only: true\n")
    code, _, err = kubewright("serve", "--config", str(tmp_path / "serve.yaml"))
    assert code == 2 and "--read-only: memory:// is this server's own" in err
