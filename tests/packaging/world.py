"""A folder that has what the documents speak of: CRDs, manifests, plans, in a git repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.packaging.environment import ROOT
from tests.tools.command import kubewright

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""
INGRESS = """\
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - host: a.example.com
    http: {paths: [{path: /, backend: {serviceName: web, servicePort: 80}}]}
"""
PLAN = """\
releases: ["1.30", "1.31", "1.32", "1.33", "1.34"]
resources:
  - {api_version: example.com/v1beta1, kind: Widget, introduced: "1.30", deprecated: "1.31", removed: "1.34"}
  - {api_version: example.com/v1, kind: Widget, introduced: "1.31"}
"""
FILES = {
    "deploy/web.yaml": DEPLOYMENT,
    "deploy.yaml": DEPLOYMENT,
    "deployment.yaml": DEPLOYMENT,
    "live.yaml": DEPLOYMENT,
    "applied-last.yaml": DEPLOYMENT,
    "wanted.yaml": DEPLOYMENT.replace("replicas: 2", "replicas: 3"),
    "patch.yaml": "spec: {replicas: 5}\n",
    "mine.yaml": DEPLOYMENT.replace("replicas: 2", "replicas: 4"),
    "manifests/ingress.yaml": INGRESS,
    "old.yaml": INGRESS.replace("extensions/v1beta1", "networking.k8s.io/v1beta1"),
    "plan.yaml": PLAN,
    "tokens.csv": 'secret,alice,1,"system:masters"\n',
    "lint-baseline.json": "{}\n",
}


def make_world(folder: Path) -> Path:
    """Fills ``folder`` and returns it: the scaffolded group ``shop.example.com`` with the versions v1alpha1 and v1 of
    Widget, and ``FILES``; all of it committed on the branch main."""
    for words in (
        ("group", "shop", "--domain", "example.com", "--output", folder),
        ("kind", "Widget", "--version", "v1alpha1", "--output", folder),
        ("version", "v1", "--kind", "Widget", "--storage", "--output", folder),
    ):
        code, out, err = kubewright("scaffold", *words)
        assert code == 0, out + err
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "w.yaml").write_text((folder / "samples/widgets-v1alpha1.yaml").read_text())
    shutil.copyfile(ROOT / "specs/messaging/openapi.yaml", folder / "openapi.yaml")
    shutil.copytree(folder / "crds", folder / "deploy/crds")
    shutil.copytree(ROOT / "specs/messaging", folder / "specs", dirs_exist_ok=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder
