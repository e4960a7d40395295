"""Where the project is: placeholders until it is published, and everybody who repeats them."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import yaml

from apimachinery.meta.version import REPOSITORY, SITE, VERSION

ROOT = Path(__file__).parents[2]


def test_every_address_of_the_project_is_the_one_of_the_version_file() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert urls == {
        "Documentation": SITE,
        "Source": REPOSITORY,
        "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    }
    files = subprocess.run(
        ["git", "ls-files", "*.md", "*.yml", "*.yaml", "*.toml", "Containerfile", "generator"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    pattern = re.compile(r"https://(?:github\.com|[\w-]+\.github\.io)/[\w-]*/?kubewright\b")
    wrong = {
        (name, address)
        for name in files
        for address in pattern.findall((ROOT / name).read_text(errors="replace"))
        if address not in (REPOSITORY, SITE)
    }
    assert wrong == set()


def test_the_image_and_the_composition_start_the_server() -> None:
    """Read as a builder reads them: nothing is built here."""
    from kubewright.cli import parser_of

    lines = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text()).splitlines()
    words = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert {word for word, _, _ in words} == known
    for word, _, rest in words:
        if word == "COPY" and not rest.startswith("--from"):
            assert (ROOT / rest.split()[0]).exists(), rest
    last = {word: yaml.safe_load(rest) for word, _, rest in words if word in ("ENTRYPOINT", "CMD")}
    assert last["ENTRYPOINT"] == ["kubewright"]
    (service,) = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"].values()
    for command in (last["CMD"], service["command"]):
        assert command[0] == "serve"
        options = parser_of("serve").parse_args(command[1:])
        assert options.host == "0.0.0.0" and options.token_file, "others reach it, so it asks who they are"
        assert options.storage.startswith("sqlite:////data/")
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    compile(service["healthcheck"]["test"][-1], "healthcheck", "exec")
    assert (ROOT / service["build"]["dockerfile"]).is_file()


def test_constraints_name_one_version_of_each_package() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines)
    assert len(pins) == len(lines) and all(re.fullmatch(r"[\w.+!-]+", version) for version in pins.values())
    assert {"msgspec", "PyYAML", "aiohttp", "pytest", "mypy", "ruff", "kubernetes-validate"} <= pins.keys()
    assert "kubewright" not in pins and VERSION
