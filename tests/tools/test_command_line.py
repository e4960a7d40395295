"""The command line as a whole: spellings, suggestions, inputs that every command reads alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubewright import cli
from tests.tools.command import kubewright

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "specs/backup/crds"


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(("command", "old"), [*cli.RENAMED])
def test_old_spellings_name_the_new_one(command: str, old: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{command}: error: {old} is now {cli.RENAMED[command, old]}" in refused(capsys, command, old, "x")
    assert "is now" in refused(capsys, command, f"{old}=x")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["lnt"], "there is no command 'lnt'; did you mean lint?"),
        (["lint", "--basline", "x"], "there is no option --basline; did you mean --baseline?"),
        (
            ["lint", "--base", "x"],
            "there is no option --base; did you mean --baseline? Options are written out",
        ),
        (["cel", "eval", "1", "--csot"], "there is no option --csot"),
        (
            ["explain", "a", "b"],
            "kubewright explain: error: unexpected: b\n  hint: kubewright explain --help",
        ),
        (["storage", "chek", "a.db"], "'chek' (choose from "),
        (["storage", "chek", "a.db"], "; did you mean check?"),
        (["lint", "a", "--fail-on", "errors"], "; did you mean error?"),
    ],
)
def test_what_was_meant_is_suggested(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in refused(capsys, *arguments)


def test_one_vocabulary_of_options() -> None:
    """What an option is called says what it takes, in every command."""
    metavars: dict[str, set[str]] = {}
    for name in cli.COMMANDS:
        for option, metavar in options_of(name).items():
            metavars.setdefault(option, set()).add(metavar)
    assert metavars["--kubernetes"] == {"RELEASE"}
    assert metavars["--crds"] == {"PATH"}
    assert metavars["--output"] == {"DIR"}
    assert not {"--out", "--to", "--crd", "--server"} & {*metavars}


def options_of(name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    parsers = [cli.parser_of(name)]
    for parser in parsers:
        for action in parser._actions:
            found |= {option: str(action.metavar) for option in action.option_strings}
            if action.choices and isinstance(action.choices, dict):
                parsers += action.choices.values()
    return found


@pytest.mark.parametrize(
    "arguments",
    [["validate", "@"], ["lint", "@"], ["docs", "@"], ["crd", "@"], ["generate", "@"], ["migrate", "@"],
     ["cel", "check", "@"], ["explain", "a", "--crds", "@"]],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_addresses_are_refused_by_name(arguments: list[str]) -> None:
    words = ["https://example.com/crd.yaml" if word == "@" else word for word in arguments]
    code, out, err = kubewright(*words)
    assert code == 2 and "curl" in out + err, out + err
    assert "https://example.com/crd.yaml: " in out + err and "this is a URL" in out + err


@pytest.mark.parametrize("command", ["lint", "docs", "crd", "diff"])
def test_a_dash_is_standard_input(command: str) -> None:
    text = (CRDS / "restores.yaml").read_text()
    given = ["diff", "-", str(CRDS / "restores.yaml")] if command == "diff" else [command, "-"]
    code, out, err = kubewright(*given, stdin=text)
    assert code == (command == "lint"), out + err
    assert "K0" not in out + err


@pytest.fixture
def locked(tmp_path: Path) -> Any:
    """A folder with a CRD beside a folder that cannot be listed."""
    (tmp_path / "a.yaml").write_text((CRDS / "restores.yaml").read_text())
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "b.yaml").write_text("kind: [")
    inner.chmod(0)
    yield tmp_path
    inner.chmod(0o755)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize(
    "arguments",
    [["lint", "@"], ["validate", "@"], ["validate", "-", "--crds", "@"], ["migrate", "@"], ["generate", "@"]],
    ids=" ".join,
)
def test_a_folder_that_cannot_be_read_is_no_success(arguments: list[str], locked: Path) -> None:
    unreadable(arguments, locked)


def unreadable(arguments: list[str], folder: Path) -> None:
    words = [str(folder) if word == "@" else word for word in arguments]
    code, out, err = kubewright(*words, stdin="apiVersion: v1\nkind: Pod\n")
    assert code == 2 and "K001" in out + err and "inner" in out + err, out + err


def test_a_folder_that_fails_while_it_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, where the tests run as root."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.yaml").write_text((CRDS / "restores.yaml").read_text())
    real = os.scandir

    def scandir(path: Any = ".") -> Any:
        if str(path).endswith("inner"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for arguments in (["lint", "@"], ["validate", "@"], ["migrate", "@"], ["generate", "@"]):
        unreadable(arguments, tmp_path)


def test_completion_knows_commands_options_and_values(tmp_path: Path) -> None:
    script = tmp_path / "kubewright.bash"
    script.write_text(kubewright("completion", "bash")[1])

    def completed(*words: str) -> set[str]:
        quoted = " ".join(map(json.dumps, words))
        program = (
            f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _kubewright; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return {*done.stdout.split()}

    assert completed("kubewright", "li") == {"lint", "lifecycle"}
    assert completed("kubewright", "lint", "--format", "") == {"text", "json", "sarif", "junit", "github"}
    assert completed("kubewright", "cel", "ch") == {"check"}
    assert "--storage" in completed("kubewright", "scaffold", "version", "--sto")
    assert completed("kubewright", "lint", "kubewright.b") == {"kubewright.bash"}
    for shell in ("zsh", "fish"):
        code, out, _ = kubewright("completion", shell)
        assert code == 0 and "kubewright" in out and "baseline" in out


@pytest.mark.parametrize("port", ["99999", "-1", "http", "65536"])
def test_a_port_that_is_none_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "give 0 to 65535" in refused(capsys, "serve", f"--port={port}")


@pytest.mark.parametrize("release", ["1.99", "1.24", "banana", "2.0", "1.36.1", ""])
def test_a_release_that_nobody_knows_is_not_emulated(release: str) -> None:
    code, _, err = kubewright("serve", "--storage", "memory://", "--port", "0", "--emulated-version", release)
    assert (code, "is none of 1.25 to 1.37" in err) == (2, True), err


def test_warnings_are_no_failures_in_junit() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: 1\n"
    _, out, _ = kubewright("validate", "-", "--format", "junit", stdin=text)
    assert 'failures="0"' in out and "<system-out>" in out and "V011" in out
    _, out, _ = kubewright("validate", "-", "--format", "junit", "--strict", stdin=text)
    assert 'failures="1"' in out and "<failure" in out


def test_lint_is_quiet_counts_by_rule_and_has_statistics() -> None:
    code, out, err = kubewright("lint", CRDS)
    assert code == 1 and " note L" not in out
    assert "by rule: L206 enum-form" in err and "--least note shows all" in err
    short = kubewright("lint", CRDS, "--least", "note")
    table = short[1].splitlines()
    assert table[0].split() == ["FINDINGS", "RULE", "SEVERITY", "NAME", "FIRST"] and "--all" in short[2]
    every = kubewright("lint", CRDS, "--least", "note", "--all")[1]
    assert sum(int(line.split()[0]) for line in table[1:]) == every.count(" L")
    assert " note L" in every
    assert kubewright("lint", CRDS, "-q")[2] == ""
    lines = kubewright("lint", CRDS, "--statistics")[1].splitlines()
    counts = [int(line.split()[0]) for line in lines]
    assert counts == sorted(counts, reverse=True) and any("L206  warning enum-form" in line for line in lines)
    rows = json.loads(kubewright("lint", CRDS, "--statistics", "--format", "json")[1])
    assert [row["count"] for row in rows] == counts


def test_a_patch_may_stand_on_the_command_line() -> None:
    live = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"
    given = ("patch", "-f", "-", "--type", "merge", "-p")
    code, out, err = kubewright(*given, '{"data":{"a":"c"}}', stdin=live)
    assert code == 0 and "a: c" in out, err
    assert kubewright(*given, '{"data":', stdin=live)[0] == 2
    assert "no such file" in kubewright(*given, "data.json", stdin=live)[2].lower()


@pytest.mark.parametrize(
    "command", [["explain", "restores.spec", "--crds"], ["cel", "check"]], ids=lambda c: c[0]
)
def test_folders_of_crds_are_read(command: list[str]) -> None:
    code, out, err = kubewright(*command, CRDS)
    assert code == 0, err
    assert "restore" in out.lower()


def test_what_cannot_be_read_is_said_in_the_form_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: [")
    given: list[list[str | Path]] = [
        ["validate", tmp_path],
        ["validate", "-", "--crds", tmp_path],
        ["lint", tmp_path],
        ["lint", tmp_path / "b"],
        ["migrate", tmp_path / "b"],
        ["diff", tmp_path, tmp_path],
        ["lifecycle", tmp_path / "b"],
    ]
    for arguments in given:
        words = map(str, arguments)
        code, out, _ = kubewright(*words, "--format", "json", stdin="apiVersion: v1\nkind: Pod\n")
        found = json.loads(out)["findings"]
        assert code in (1, 2) and {f["code"] for f in found} & {"K001", "K003", "K011"}, out


@pytest.mark.parametrize(
    ("argument", "spared"),
    [("--version", {"argparse", "difflib", "shutil"}), ("--help", {"difflib", "shutil"})],
)
def test_what_scripts_ask_imports_little(argument: str, spared: set[str]) -> None:
    code = (
        "import sys; from kubewright.cli import main\n"
        f"try: main([{argument!r}])\nexcept SystemExit: pass\n"
        f"print('imported:', *sorted({spared!r} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.startswith(("kubewright ", "usage: kubewright COMMAND"))
    assert ran.stdout.rstrip().endswith("imported:")


def test_no_help_imports_a_command() -> None:
    """``--help`` of any command reads options alone, and imports hardly more than Python itself does."""
    code = """
import sys
from kubewright import cli
for name in cli.COMMANDS:
    try:
        cli.main([name, "--help"])
    except SystemExit:
        pass
print("imported:", len(sys.modules), *sorted(sys.modules))
"""
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    number, *modules = ran.stdout.rpartition("imported: ")[2].split()
    own = {name for name in modules if name.startswith(("kubewright.", "apimachinery."))}
    allowed = ("kubewright.cli", "kubewright.tools.arguments", "apimachinery.meta.version")
    assert {name for name in own if not name.startswith(allowed)} <= {"kubewright.tools", "apimachinery.meta"}
    assert not {"yaml", "msgspec", "re2", "dataclasses", "inspect", "json", "asyncio"} & set(modules)
    assert int(number) < 160


def test_help_is_as_wide_as_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    def no_terminal(file: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", no_terminal)
    widest = []
    for columns in ("60", "120", "x", "0"):
        monkeypatch.setenv("COLUMNS", columns)
        with pytest.raises(SystemExit):
            cli.main(["validate", "--help"])
        text = capsys.readouterr().out.partition("examples:")[0]
        widest.append(max(map(len, text.splitlines())))
    assert widest[0] < widest[2] < widest[1] <= 118
    assert widest[2] == widest[3] <= 78
