"""The installed wheel works from any folder: templates, specs and the built-in models are in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(wheel: Path) -> Path:
    return wheel


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_built_in_groups_from_another_folder(installed: Path, tmp_path: Path) -> None:
    """What the wheel makes of a group is what is committed, and a file that is lacking is made again. Modules of all
    groups differ: the committed ones also have the versions that are gone."""
    made = tmp_path / "generated" / "kubernetes_api"
    shutil.copytree(ROOT / "generated" / "kubernetes_api", made, ignore=shutil.ignore_patterns("__pycache__"))
    (made / "apps_v1" / "models.py").unlink()
    done = run(installed, tmp_path, "-m", "kubewright", "generate", "kubernetes:1.37", "-q")
    assert done.returncode == 0, done.stderr
    committed = ROOT / "generated" / "kubernetes_api"
    assert (made / "apps_v1/models.py").read_bytes() == (committed / "apps_v1/models.py").read_bytes()
    files = {line for line in (made / "MANIFEST.sha256").read_text().splitlines() if "/" in line}
    assert len(files) > 300
    assert files <= {*(committed / "MANIFEST.sha256").read_text().splitlines()}


def test_nothing_is_made_where_nobody_said_what(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "-m", "kubewright", "generate")
    assert done.returncode == 2 and [*tmp_path.iterdir()] == []
    assert "kubewright generate crds/ --package NAME" in done.stderr and "kubernetes:1.37" in done.stderr


def test_own_specs_from_another_folder(installed: Path, tmp_path: Path) -> None:
    crds = str(ROOT / "specs" / "backup" / "crds")
    done = run(
        installed, tmp_path, "-m", "kubewright", "generate", crds, "--package", "mine", "--output", "src"
    )
    assert done.returncode == 0, done.stderr
    used = run(
        installed,
        tmp_path / "src",
        "-c",
        "from mine.backup_v1 import BackupSchedule; print(BackupSchedule.KIND)",
    )
    assert used.stdout == "BackupSchedule\n", used.stderr


def test_models_need_nothing_but_msgspec(installed: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from kubernetes_api.apps_v1 import Deployment; from kubernetes_api.scheme import SCHEME; "
        'SCHEME.decode(b\'{"apiVersion":"v1","kind":"Pod"}\'); '
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'yaml', 'jinja2', 'kubewright', 're2'}))"
    )
    done = run(installed, tmp_path, "-c", program)
    assert done.stdout == "[]\n", done.stderr


def test_without_the_extras_the_message_says_which_one(installed: Path, tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['yaml'] = None; from kubewright.cli import main; "
        "sys.exit(main(['generate', 'nothing.yaml']))"
    )
    done = run(installed, tmp_path, "-c", program)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "pip install 'kubewright[generate]'" in done.stderr


def test_descriptions_of_fields_are_in_the_wheel(wheel: Path) -> None:
    from kubewright.source import prose
    from kubewright.source.kubernetes_validate import described

    packed = wheel / "kubewright/specs/kubernetes" / prose.FILE
    assert prose.read(packed, "1.37") == prose.texts_of(described("1.37"))
    (notice,) = wheel.rglob("NOTICE")
    assert "The Kubernetes Authors" in notice.read_text()
