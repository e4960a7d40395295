"""What bad input is answered with: every text the compiler prints, pinned.

One ``negative/*.txtar`` is one case: the files a user has, and ``expected``, what is printed. A ``spec`` (file
or folder) is given as the argument; without one there is a ``kubewright.yaml``. The first line of ``expected``
is the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compiler import txtar

from kubewright.cli import main

CASES = sorted((Path(__file__).parent / "negative").glob("*.txtar"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    yield


def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Exit code and diagnostics of ``kubewright generate`` in ``folder``."""
    monkeypatch.chdir(folder)
    given = sorted(path.name for path in folder.iterdir() if path.name.partition(".")[0] == "spec")
    code = main(["generate", "--quiet", "-j", "1", *given])
    printed = capsys.readouterr()
    assert printed.out == ""
    return f"exit {code}\n{printed.err}"


def test_the_corpus_is_large_enough() -> None:
    assert len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_bad_input(
    case: Path,
    rewrite: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = txtar.split(case.read_text(encoding="utf-8"))
    expected = files.pop("expected", "")
    txtar.unpack(files, tmp_path)
    printed = run(tmp_path, capsys, monkeypatch)
    if rewrite:
        case.write_text(txtar.join({**files, "expected": printed}), encoding="utf-8")
        return
    assert printed == expected
    if printed.startswith("exit 2"):
        assert not (tmp_path / "generated").exists() or not list((tmp_path / "generated").glob("*"))


DEEP = 100_000
ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
BIG: dict[str, tuple[str, bytes, str]] = {
    "yaml alias bomb": (
        "spec.yaml",
        ALIASES.encode(),
        "K009: the aliases of this document unfold into too much",
    ),
    "deep json": ("spec.json", b'{"a":' * DEEP + b"1" + b"}" * DEEP, "K008: nested deeper than 150 levels"),
    "deep yaml": ("spec.yaml", b"- " * 2_000 + b"x\n", "K008: nested deeper than 150 levels"),
    "deep flow yaml": (
        "spec.yaml",
        b"a: " + b"[" * DEEP + b"]" * DEEP,
        "K008: nested deeper than 150 levels",
    ),
    "not utf-8": (
        "spec.yaml",
        b'swagger: "2.0"\ninfo: \xff\xfe\n',
        "K002: not UTF-8: byte 0xff at offset 21",
    ),
    "utf-16": ("spec.yaml", 'swagger: "2.0"\n'.encode("utf-16"), "K002: not UTF-8: byte 0xff at offset 0"),
    "nul bytes": ("spec.yaml", b'swagger: "2.0"\ninfo: \x00\n', "K011: broken YAML"),
    "huge": ("spec.yaml", b"#" * (64 * 1024 * 1024 + 1), "K006: the file has more than the 67,108,864 bytes"),
    "deep schema": (
        "spec.json",
        b'{"swagger":"2.0","info":{"title":"x","version":"v1"},"paths":{},"definitions":{"a.v1.A":'
        + b'{"type":"array","items":' * 200
        + b"{}"
        + b"}" * 200
        + b"}}",
        "K008: nested deeper than 150 levels",
    ),
}


@pytest.mark.parametrize("name", BIG)
def test_input_made_to_hurt(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, content, expected = BIG[name]
    (tmp_path / file).write_bytes(content)
    printed = run(tmp_path, capsys, monkeypatch)
    assert printed.startswith("exit 2\n"), printed
    assert expected in printed
    assert "Traceback" not in printed
    assert len(printed) < 2_000
