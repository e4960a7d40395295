"""Named pipes, devices and sockets where a file is wanted: an error, at once. In folders they are left out."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crds import crd_text
from tests.tools.command import kubewright

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
COMMANDS = {
    "validate": ["validate", "FILE"],
    "lint": ["lint", "FILE"],
    "lint config": ["lint", "crd.json", "--config", "FILE"],
    "lint baseline": ["lint", "crd.json", "--baseline", "FILE"],
    "diff": ["diff", "crd.json", "FILE"],
    "diff exceptions": ["diff", "crd.json", "crd.json", "--exceptions", "FILE"],
    "migrate": ["migrate", "FILE"],
    "docs": ["docs", "FILE", "--output", "made"],
    "sdk": ["sdk", "--from", "FILE", "--package", "x_api", "--output", "made"],
    "generate": ["generate", "FILE", "--package", "x_api", "--output", "made"],
    "crd": ["crd", "FILE"],
    "convert": ["convert", "-f", "FILE", "--output-version", "example.com/v1"],
    "explain": ["explain", "things", "--crds", "FILE"],
    "validate crds": ["validate", "crd.json", "--crds", "FILE"],
}

ODD = [("pipe.yaml", "named pipe"), ("socket.yaml", "socket"), ("/dev/zero", "device")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "crd.json").write_text(crd_text("Thing", "type: object\nproperties: {a: {type: string}}"))
    os.mkfifo(tmp_path / "pipe.yaml")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.yaml")
        yield tmp_path


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(
    ("file", "kind"), [("pipe.yaml", "named pipe"), ("socket.yaml", "socket"), ("/dev/zero", "device")]
)
def test_what_is_no_file_is_refused(folder: Path, arguments: list[str], file: str, kind: str) -> None:
    code, out, err = kubewright(*(file if each == "FILE" else each for each in arguments))
    assert code == 2, err
    assert re.search(rf"this is a {kind}; give it on standard input: - < {re.escape(file)}", out + err)


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "."],
        ["lint", "."],
        ["generate", ".", "--package", "x_api", "--output", "../made", "-q"],
        ["migrate", "."],
        ["crd", "."],
    ],
    ids=lambda each: each[0],
)
def test_a_folder_may_hold_pipes_and_sockets(folder: Path, arguments: list[str]) -> None:
    code, _, err = kubewright(*arguments)
    assert code in (0, 1), err  # lint has findings
    assert "this is a" not in err
    shutil.rmtree(folder.parent / "made", ignore_errors=True)
