"""``kubewright migrate --from-cluster``: who still calls deprecated APIs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.cli import main
from kubewright.source.lifecycle import LifeCycle
from kubewright.tools.migrate.callers import Callers, samples

METRICS = """\
# HELP apiserver_requested_deprecated_apis x
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="g.io",removed_release="1.40",resource="o",subresource="s",version="v1"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="never",subresource="",version="v1"} 0
apiserver_request_total{code="200",group="",resource="endpoints",subresource="",verb="LIST",version="v1"} 3
apiserver_request_total{code="404",group="",resource="endpoints",subresource="",verb="LIST",version="v1"} 2
apiserver_request_total{code="200",group="",resource="endpoints",subresource="",verb="GET",version="v1"} 1e+06
apiserver_request_total{code="200",group="",resource="pods",subresource="",verb="GET",version="v1"} 9
apiserver_request_total{code="200",group="batch",resource="cronjobs",subresource="",verb="GET",version="v1beta1"} 7
apiserver_request_duration_seconds_bucket{verb="GET",le="+Inf"} 7
"""
LIVES = {("batch/v1beta1", "CronJob"): LifeCycle("1.8", "1.21", "1.25", "batch/v1/CronJob")}
PLURALS = {("batch", "cronjobs"): "CronJob"}


def event(user: str, agent: str, verb: str = "list", **changes: Any) -> bytes:
    made: dict[str, Any] = {
        "kind": "Event", "stage": "ResponseComplete", "verb": verb, "user": {"username": user},
        "userAgent": agent, "objectRef": {"resource": "endpoints", "apiVersion": "v1"},
        "requestReceivedTimestamp": "2026-01-02T00:00:00.000000Z",
        "annotations": {"k8s.io/deprecated": "true"},
    }  # fmt: skip
    return json.dumps({**made, **changes}).encode() + b"\n"


def test_metrics_say_what_is_called():
    callers = Callers("1.36", LIVES, PLURALS)
    callers.add_metrics(METRICS)
    assert [(called.asked, called.removed, dict(called.verbs)) for called in callers.in_order()] == [
        (("batch", "v1beta1", "cronjobs", ""), "1.25", {"get": 7}),
        (("g.io", "v1", "o", "s"), "1.40", {}),
        (("", "v1", "endpoints", ""), "", {"list": 5, "get": 1_000_000}),
    ]
    assert callers.text().splitlines()[0] == (
        "batch/v1beta1 cronjobs: deprecated in 1.21, removed in 1.25, use batch/v1/CronJob"
    )
    early = Callers("1.20", LIVES, PLURALS)
    early.add_metrics(METRICS)
    assert ("batch", "v1beta1", "cronjobs", "") not in early.called


def test_logs_say_who(tmp_path):
    log = tmp_path / "audit.log"
    log.write_bytes(
        event("ann", "kubectl/v1.20")
        + event("ann", "kubectl/v1.20", "get", requestReceivedTimestamp="2026-01-03T00:00:00.000000Z")
        + event("ann", "kubectl/v1.20", stage="RequestReceived")
        + event("bob", "x\x1b[2J", impersonatedUser={"username": "carol"})
        + event("eve", "e", annotations={})
        + event("dan", "d", annotations={}, objectRef={"resource": "cronjobs", "apiGroup": "batch",
                                                        "apiVersion": "v1beta1"})
        + b"not json\n[]\n{}\n\n"
    )  # fmt: skip
    (tmp_path / "audit-1.log.gz").write_bytes(gzip.compress(event("old", "o")))
    (tmp_path / "folder").mkdir()
    callers = Callers("1.36", LIVES, PLURALS)
    callers.add_log(tmp_path)
    endpoints = callers.called["", "v1", "endpoints", ""]
    assert {key: dict(caller.verbs) for key, caller in endpoints.callers.items()} == {
        ("ann", "kubectl/v1.20"): {"list": 1, "get": 1},
        ("carol", "x\x1b[2J"): {"list": 1},
        ("old", "o"): {"list": 1},
    }
    assert endpoints.callers["ann", "kubectl/v1.20"].last.startswith("2026-01-03")
    assert list(callers.called["batch", "v1beta1", "cronjobs", ""].callers) == [("dan", "d")]
    assert (callers.events.read, callers.events.unreadable) == (6, 3)
    assert "\x1b" not in callers.text()
    assert json.loads(callers.json())["events"]["unreadable"] == 3


def test_labels_with_odd_text():
    line = 'm{a="x,y=\\"z\\"",b="\\n"} 1.5\nbroken{ 1\nn 2\n'
    assert list(samples(line)) == [("m", {"a": 'x,y="z"', "b": "\n"}, 1.5), ("n", {}, 2.0)]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--from-cluster", "x.yaml"], 2, "there are no manifests"),
        (["--audit-log", "none.log"], 2, "none.log"),
        (["--from-cluster", "--kubeconfig", "none"], 2, "cannot be read"),
        ([], 2, "give manifests, or --from-cluster"),
    ],
)
def test_misuse(arguments, code, text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["migrate", *arguments]) == code
    assert text in capsys.readouterr().err


def test_a_cut_log(tmp_path, capsys):
    path: Path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(event("a", "b"))[:-9])
    assert main(["migrate", "--audit-log", str(path)]) == 2
    assert "Compressed file ended" in capsys.readouterr().err


def test_nothing_found_is_0(tmp_path, capsys):
    (tmp_path / "a.log").write_bytes(event("a", "b", annotations={}))
    assert main(["migrate", "--audit-log", str(tmp_path), "--kubernetes", "1.20"]) == 0
    assert "0 deprecated APIs called; 1 events" in capsys.readouterr().err
