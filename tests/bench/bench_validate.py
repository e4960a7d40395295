"""``kubewright validate`` against kubernetes-validate: 2,000 Deployments in YAML, and the time to start."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path

import yaml
from tests.bench.measuring import Peer, Row, compare, installed, python

from kubewright import cli

DOCUMENTS = 2000
PEER_DOCUMENTS = 20
"""The peer is given fewer and its time is scaled: it takes tens of milliseconds for each."""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        text = "---\n".join(_deployment(number) for number in range(DOCUMENTS))
        plain = "---\n".join(json.dumps(yaml.safe_load(_deployment(n))) + "\n" for n in range(DOCUMENTS))
        rows = []
        for form, content in (("YAML", text), ("JSON", plain)):
            path = Path(folder) / f"all-{form}.yaml"
            path.write_text(content)
            one = Path(folder) / f"few-{form}.yaml"
            one.write_text("---\n".join(content.split("---\n")[:PEER_DOCUMENTS]))
            rows += _files(form, path, one)
        single = Path(folder) / "one.yaml"
        single.write_text(_deployment(0))
        start = python("-m", "kubewright", "validate", "-q", str(single))
        rows += compare(
            "validate: start, one document", start, [Peer("import yaml", python("-c", "import yaml"))]
        )
        rows.append(Row(bench=rows[-1].bench, peer="0.5 s", ours=rows[-1].ours, theirs=0.5, target=1.0))
    return rows


def _files(form: str, path: Path, few: Path) -> list[Row]:
    bench = f"validate: {DOCUMENTS:,} Deployments in {form}"
    peers = []
    if installed("kubernetes_validate"):
        peers.append(Peer(f"kubernetes-validate ({PEER_DOCUMENTS} of them, scaled)", lambda: _theirs(few)))
    rows = compare(bench, lambda: _ours(path), peers or [Peer("reading", path.read_bytes)], repeat=3)
    first = rows[0]
    scaled = [
        Row(
            bench=row.bench,
            peer=row.peer,
            ours=row.ours,
            theirs=row.theirs * DOCUMENTS / PEER_DOCUMENTS,
            target=1.0,
        )
        for row in rows
        if peers
    ]
    return [
        *scaled,
        Row(bench=bench, peer="2,000 documents a second", ours=first.ours, theirs=1.0, target=1.0),
    ]


def _ours(path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert cli.main(["validate", "-q", str(path)]) == 0


def _theirs(path: Path) -> None:
    import kubernetes_validate

    for document in yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader):
        kubernetes_validate.validate(document, "1.37", strict=True)


def _deployment(number: int) -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{number}
  labels:
    app.kubernetes.io/name: web
    app.kubernetes.io/instance: web-{number}
spec:
  replicas: 3
  selector:
    matchLabels:
      app.kubernetes.io/name: web
  template:
    metadata:
      labels:
        app.kubernetes.io/name: web
    spec:
      serviceAccountName: web
      containers:
        - name: web
          image: registry.example.com/web:{number}
          ports:
            - name: http
              containerPort: 8080
          env:
            - name: MODE
              value: fast
          readinessProbe:
            httpGet:
              path: /ready
              port: http
          resources:
            requests:
              cpu: 100m
              memory: 128Mi
            limits:
              memory: 256Mi
"""
