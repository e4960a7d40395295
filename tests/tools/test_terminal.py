"""Whatever an input holds, no output of a command steers a terminal: no ESC, no C1, no mark that turns the text."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.tools.command import kubewright
from tests.tools.test_lint import CLEAN

EVIL = "a\x1b[31m\x9b2J\x85\u202eb\u2028c\x07\u200e\u200f\u061c"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
FORMS = ("text", "json", "sarif", "junit", "github")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("evil")
    (place / "clean.json").write_text(json.dumps(CLEAN))
    crd: dict[str, Any] = copy.deepcopy(CLEAN)
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties[EVIL] = {"type": "string", "enum": [EVIL, "Fast"], "default": "x", "pattern": EVIL}
    properties["text"] = {
        "type": "array",
        "items": {"type": "string"},
        "description": EVIL + "\nDeprecated: " + EVIL,
    }
    properties["mode"]["enum"] = ["Fast", EVIL]
    del properties["replicas"]
    (place / "evil.json").write_text(json.dumps(crd))
    thing = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": EVIL, "labels": {EVIL: EVIL}},
        "spec": {"mode": EVIL, EVIL: EVIL, "replicas": EVIL},
    }
    (place / "thing.json").write_text(json.dumps(thing))
    (place / "ingress.json").write_text(
        json.dumps(
            {"apiVersion": "extensions/v1beta1", "kind": "Ingress", "metadata": {"name": EVIL}, EVIL: EVIL}
        )
    )
    (place / "broken.yaml").write_text(f'a: "{EVIL.encode("unicode_escape").decode()}\nb: [')
    return place


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "words",
    [
        "validate --strict --crds clean.json thing.json broken.yaml",
        "validate evil.json",
        "lint --least note evil.json",
        "diff clean.json evil.json",
        "migrate ingress.json",
    ],
)
def test_findings_in_every_form(folder: Path, words: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    _, out, err = kubewright(*words.split(), "--format", form)
    assert STEERS.findall(out + err) == []
    if form == "json":
        json.loads(out)
    if form == "text":
        assert out + err


@pytest.mark.parametrize(
    "words",
    [
        "explain things.spec --crds evil.json",
        "explain things.spec.text --crds evil.json",
        "docs evil.json --format markdown",
        "docs evil.json",
        "lint evil.json --statistics",
        "diff clean.json evil.json --format markdown",
        "generate evil.json --package evil_api --output made",
        "crd evil.json",
        "convert -f thing.json --output-version example.com/v2 --crds clean.json",
        "cel check evil.json",
        "rbac who-can get things -f thing.json",
    ],
)
def test_reports(folder: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    _, out, err = kubewright(*words.split())
    assert STEERS.findall(out + err) == []


@pytest.mark.parametrize(
    "words",
    [
        ["storage", "check", f"/none/{EVIL}"],
        ["storage", "backup", f"/none/{EVIL}", "copy"],
        ["serve", "--token-file", f"/none/{EVIL}"],
        ["serve", "--tls", f"/none/{EVIL},x"],
        ["serve", "--audit-policy-file", "thing.json"],
        ["rbac", "why", EVIL, "get", EVIL, "-f", "thing.json"],
        ["rbac", "who-can", "get", "pods", "-f", f"/none/{EVIL}"],
        ["convert", "-f", "thing.json", "--output-version", EVIL],
        ["convert", "-f", f"/none/{EVIL}", "--output-version", "v1"],
        [
            "patch",
            "-f",
            "thing.json",
            "--type",
            "json",
            "-p",
            json.dumps([{"op": "test", "path": f"/{EVIL}"}]),
        ],
        ["patch", "-f", "thing.json", "--type", "merge", "-p", f"/none/{EVIL}"],
        ["apply3", "--original", "thing.json", "--modified", "ingress.json", "--current", "clean.json"],
        ["webhook", "--package", EVIL],
        ["scaffold", "kind", EVIL, EVIL],
        ["migrate", f"/none/{EVIL}"],
        ["lint", "--config", f"/none/{EVIL}", "evil.json"],
        ["explain", EVIL],
        ["cel", "eval", EVIL],
        ["validate", f"--{EVIL}"],
        [EVIL],
    ],
)
def test_errors_of_commands(
    folder: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    try:
        status, out, err = kubewright(*words)
    except SystemExit as ended:  # what argparse refuses
        status, out, err = int(ended.code or 0), "", capsys.readouterr().err
    assert status
    assert STEERS.findall(out + err) == []


def test_tables_of_what_others_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subject of a binding may have any name, a CRD any rule."""
    monkeypatch.chdir(folder)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [
            {"kind": "User", "name": EVIL + "\n::error::x", "apiGroup": "rbac.authorization.k8s.io"}
        ],
    }
    (folder / "binding.json").write_text(json.dumps(binding))
    rules = [{"rule": f"self == '{EVIL}'"}, {"rule": f"self.{EVIL}"}]
    schema = {"type": "string", "maxLength": 9, "x-kubernetes-validations": rules}
    (folder / "schema.json").write_text(json.dumps(schema))
    for words in (
        ["rbac", "who-can", "get", "pods", "-f", "binding.json"],
        ["cel", "check", "schema.json"],
        ["cel", "check", "schema.json", "--format", "json"],
    ):
        _, out, err = kubewright(*words)
        assert out
        assert STEERS.findall(out + err) == []
        assert "\n::error" not in out + err


def test_colours_are_forced_and_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for forced, refused, coloured in (("1", "", True), ("0", "", False), ("", "", False), ("1", "1", False)):
        monkeypatch.setenv("FORCE_COLOR", forced)
        monkeypatch.setenv("NO_COLOR", refused)
        assert ("\x1b[1;31m" in kubewright("validate", "broken.yaml")[1]) is coloured
