"""The operator of docs/tutorial.md with its fixture, which ten tests use one after the other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.tools.command import kubewright

ROOT = Path(__file__).parents[2]
TEST = "def test_a_book_gets_its_config_map("


def test_ten_tests_share_the_operator_of_the_tutorial(tmp_path: Path) -> None:
    group = tmp_path / "library"
    for words in (
        ("scaffold", "group", "library", "--domain", "example.com", "--output", group),
        ("scaffold", "kind", "Book", "--version", "v1alpha1", "--output", group),
        ("generate", "--config", group / "kubewright.yaml", "-q"),
    ):
        code, out, err = kubewright(*words)
        assert code == 0, out + err
    text = (ROOT / "docs/tutorial.md").read_text()
    for title, block in re.findall(r'```\w+ title="([^"/]+)"\n(.*?)```', text, re.DOTALL):
        (group / title).write_text(block)
    tests = group / "test_book_operator.py"
    assert TEST in tests.read_text()
    ten = f'@pytest.mark.parametrize("number", range(10))\n{TEST}number, '
    tests.write_text(tests.read_text().replace(TEST, ten))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "100", tests],
        cwd=group,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("generator", "generated")),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "10 passed" in done.stdout, done.stdout + done.stderr
