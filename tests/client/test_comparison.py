"""The everyday tasks of docs/comparison.md: every snippet runs, and ours is as short as the shortest.

That ours is typed is tested with the Python of all documents.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.controller.forms import until

from kubewright.testing import ApiServer
from kubewright.testing.ports import free_ports

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/comparison.md").read_text().partition("## Fifteen")[2].partition("\n## ")[0]
LIBRARIES = ("kubewright", "lightkube", "kr8s")
ROWS = re.findall(r"^\| (?!\|)(\w[^|]*) \| (\S+) \| (\S+) \| (\S+) \|$", TEXT, re.MULTILINE)
OBJECTS = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "two"}, "stringData": {"a": "b"}},
]


def snippets(library: str) -> list[str]:
    """What comes before all, then the snippet of each task, empty where there is none."""
    before, *tasks = re.split(r"^### ", TEXT, flags=re.MULTILINE)
    found = [
        re.search(rf'^```python title="{library}"\n(.*?)^```$', part, re.M | re.S)
        for part in (before, *tasks)
    ]
    return [match[1] if match else "" for match in found]


def lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def test_the_table_has_the_lines_of_the_snippets() -> None:
    titles = re.findall(r"^### (.*)$", TEXT, re.MULTILINE)
    counted = {library: snippets(library)[1:] for library in LIBRARIES}
    assert [row[0] for row in ROWS] == titles and len(titles) == 15
    for number, (title, *shown) in enumerate(ROWS):
        each = [counted[library][number] for library in LIBRARIES]
        assert shown == [str(lines(text)) if text else "–" for text in each], title
        shortest = min(lines(text) for text in each if text)
        assert lines(each[0]) == shortest, f"{title}: ours is not the shortest"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(node=True) as running:
        yield running


@pytest.mark.parametrize("library", LIBRARIES)
def test_snippets_run_as_written(library: str, server: ApiServer, tmp_path: Path) -> None:
    if library != "kubewright":
        pytest.importorskip(library)
    with server.namespace() as namespace:
        labels = {"app": "web"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        named = {**pod, "metadata": {"name": "web", "labels": labels}}
        server.request("POST", f"/api/v1/namespaces/{namespace}/pods", named)
        spec = {"selector": {"matchLabels": labels}, "template": pod}
        deployment = {"metadata": {"name": "web"}, "spec": spec}
        server.request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment)
        config = yaml.safe_load(server.kubeconfig_text)
        config["contexts"][0]["context"]["namespace"] = namespace
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(OBJECTS))
        path = f"/api/v1/namespaces/{namespace}/pods/web"
        until(lambda: server.request("GET", path)["status"].get("phase") == "Running")
        # kr8s draws among ports that the system gives to connections meanwhile.
        drawn = f"local_port={free_ports(1)[0]}"
        program = "\n".join(snippets(library)).replace("local_port=0", drawn)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            cwd=tmp_path,
            env={
                **os.environ,
                "KUBECONFIG": str(tmp_path / "kubeconfig"),
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "hi" in done.stdout.splitlines()
        scaled = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
        assert server.request("GET", scaled)["spec"]["replicas"] == 2
        maps = server.request("GET", f"/api/v1/namespaces/{namespace}/configmaps")["items"]
        assert {each["metadata"]["name"] for each in maps} >= {"one"}
        assert "settings" not in {each["metadata"]["name"] for each in maps}
