"""Metrics: the text format, and what requests are counted under."""

from __future__ import annotations

import asyncio

import pytest

from apimachinery.http.messages import Request, Response, StreamResponse
from apimachinery.metrics import Metrics, number
from apimachinery.server.operate.api_metrics import ApiMetrics
from apimachinery.server.operate.requests import RequestMetrics


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (3, "3"), (0.005, "0.005"), (1e6, "1e+06"), (1_050_000, "1.05e+06"), (1234567, "1.234567e+06"),
     (float("inf"), "+Inf"), (1.5, "1.5"), (1e9, "1e+09"), (999_999, "999999"), (0.25, "0.25"), (1e-8, "1e-08"),
     (-2_000_000, "-2e+06")],
)  # fmt: skip
def test_numbers_are_written_as_the_reference_writes_them(value, text):
    assert number(value) == text


def test_families_in_text():
    metrics = Metrics()
    metrics.gauge("b_gauge", "Its text.", lambda: 7)
    counter = metrics.counter("a_total", "A\nline.", "code", "path")
    counter.at("200", 'x"\\\n').add(2)
    counter.at("100", "").add()
    seconds = metrics.histogram("c_seconds", "Seconds.", (0.1, 1), "verb").at("GET")
    for value in (0.1, 0.5, 30):
        seconds.observe(value)
    metrics.asked("d", "Asked.", ("kind",), lambda: [(("b",), 2), (("a",), 1)], kind="counter")
    assert metrics.text() == (
        "# HELP a_total A\\nline.\n# TYPE a_total counter\n"
        'a_total{code="100",path=""} 1\na_total{code="200",path="x\\"\\\\\\n"} 2\n'
        "# HELP b_gauge Its text.\n# TYPE b_gauge gauge\nb_gauge 7\n"
        "# HELP c_seconds Seconds.\n# TYPE c_seconds histogram\n"
        'c_seconds_bucket{verb="GET",le="0.1"} 1\nc_seconds_bucket{verb="GET",le="1"} 2\n'
        'c_seconds_bucket{verb="GET",le="+Inf"} 3\nc_seconds_sum{verb="GET"} 30.6\nc_seconds_count{verb="GET"} 3\n'
        '# HELP d Asked.\n# TYPE d counter\nd{kind="a"} 1\nd{kind="b"} 2\n'
    )
    with pytest.raises(ValueError, match="two metrics a_total"):
        metrics.counter("a_total", "Again.")
    with pytest.raises(ValueError, match="has the labels"):
        counter.at("200")


def counted() -> tuple[Metrics, RequestMetrics]:
    metrics = Metrics()
    return metrics, RequestMetrics(metrics)


def test_a_request_for_a_resource_is_counted_once_under_its_labels():
    metrics, counts = counted()
    request = Request("PATCH", "/api/v1/namespaces/a/configmaps/b", "dryRun=All", body=b"x" * 60_000)
    request.counted = counts.resource(("", "v1", "configmaps"), "apply", "", "resource")
    counts.answered(request, Response(201, b"y" * 10), 0.07)
    text = metrics.text()
    assert (
        'apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="configmaps",'
        'scope="resource",subresource="",system_client="",verb="APPLY",version="v1"} 1\n'
    ) in text
    labels = 'group="",version="v1",resource="configmaps",subresource="",scope="resource",verb="APPLY"'
    for bound, below in (("0.05", 0), ("0.1", 1), ("+Inf", 1)):
        assert (
            f'apiserver_request_duration_seconds_bucket{{component="apiserver",dry_run="",{labels},'
            f'le="{bound}"}} {below}\n'
        ) in text
        assert (
            f'apiserver_request_sli_duration_seconds_bucket{{component="apiserver",{labels},le="{bound}"}} {below}\n'
        ) in text
    sizes = 'apiserver_request_body_size_bytes_bucket{group="",resource="configmaps",verb="apply"'
    assert f'{sizes},le="50000"}} 0\n' in text and f'{sizes},le="150000"}} 1\n' in text
    assert "apiserver_response_sizes_bucket" not in text


def test_a_fast_request_falls_into_the_first_bucket_of_both_histograms():
    metrics, counts = counted()
    request = Request("GET", "/x")
    request.counted = counts.resource(("", "v1", "pods"), "list", "", "cluster")
    counts.answered(request, Response(200, (b"a" * 600, b"b" * 600)), 0.001)
    text = metrics.text()
    for name, bound in (("duration", "0.005"), ("sli_duration", "0.05")):
        (line,) = [
            x for x in text.splitlines()
            if x.startswith(f"apiserver_request_{name}_seconds_bucket") and f'le="{bound}"' in x
        ]  # fmt: skip
        assert line.endswith(" 1")
    (line,) = [x for x in text.splitlines() if x.startswith("apiserver_response_sizes_sum")]
    assert line.endswith(" 1200")


def test_a_watch_runs_until_it_is_sent():
    async def parts():
        yield b""

    metrics, counts = counted()
    request = Request("GET", "/x", "watch=1")
    request.counted = counts.resource(("", "v1", "pods"), "watch", "", "cluster")
    counts.answered(request, StreamResponse(200, parts()), 0.001)
    running = 'subresource="",scope="cluster",verb="WATCH"}'
    assert f"{running} 1\n" in metrics.text()
    assert 'apiserver_request_total{code="200"' not in metrics.text()
    assert request.done is not None
    request.done()
    assert f"{running} 0\n" in metrics.text()
    assert 'apiserver_request_total{code="200"' in metrics.text()
    assert "apiserver_request_sli_duration_seconds_count" not in metrics.text()


def test_paths_that_clients_make_up_are_counted_together():
    metrics, counts = counted()
    for number_ in range(50):
        counts.answered(Request("GET", f"/made/up/{number_}"), Response(404), 0.001)
        counts.answered(Request(f"M{number_}", "/api"), Response(405), 0.001)
    counts.answered(Request("GET", "/readyz/etcd"), Response(200), 0.001)
    counts.answered(Request("GET", "/openapi/v3/apis/apps/v1"), Response(200), 0.001)
    totals = [line for line in metrics.text().splitlines() if line.startswith("apiserver_request_total{")]
    assert len(totals) == 4
    assert any('subresource="/readyz"' in line for line in totals)
    assert any('subresource="openapi/v3"' in line for line in totals)


def test_users_are_not_told_apart_but_by_well_known_names():
    metrics, counts = counted()
    for name in ("admin", "ann", "bob"):
        counts.admitted(name, 0.0001, 0.01)
    counts.refused(403, "eve", 0.0001, 0.0001)
    counts.refused(401, None, 0.002, 0)
    text = metrics.text()
    assert (
        'authenticated_user_requests{username="admin"} 1\nauthenticated_user_requests{username="other"} 3'
        in text
    )
    assert 'authentication_attempts{result="success"} 4' in text
    assert 'authentication_attempts{result="failure"} 1' in text
    assert 'authorization_attempts_total{result="no-opinion"} 1' in text
    assert 'authorization_duration_seconds_bucket{result="allowed",le="0.008"} 0' in text
    assert 'authorization_duration_seconds_bucket{result="allowed",le="0.016"} 3' in text


def test_writes_to_the_storage_are_counted_by_resource_and_refusals_too():
    class Storage:
        async def create(self, key: str, value: object) -> str:
            if "bad" in key:
                raise ValueError("exists")
            return key

        async def update(self, key: str, expected: int, value: object) -> int:
            return expected

        async def delete(self, key: str, expected: int, last: object, *, marked: bool = False) -> int:
            return expected

    metrics = Metrics()
    storage = ApiMetrics(metrics).timed(Storage())

    async def run() -> None:
        assert await storage.create("/core/configmaps/ns/a", b"") == "/core/configmaps/ns/a"
        assert await storage.update("/core/configmaps/ns/b", 7, b"") == 7
        assert await storage.delete("/apps/deployments/ns/a", 8, b"") == 8
        with pytest.raises(ValueError, match="exists"):
            await storage.create("/core/nodes/bad", b"")

    asyncio.run(run())
    text = metrics.text()
    for labels in (
        'group="",operation="create",resource="configmaps"',
        'group="",operation="update",resource="configmaps"',
        'group="apps",operation="delete",resource="deployments"',
        'group="",operation="create",resource="nodes"',
    ):
        assert f"etcd_requests_total{{{labels}}} 1\n" in text
        assert f"etcd_request_duration_seconds_count{{{labels}}} 1\n" in text
    assert 'etcd_request_errors_total{group="",operation="create",resource="nodes"} 1' in text
    assert 'etcd_request_errors_total{group="",operation="create",resource="configmaps"} 0' in text


def test_admission_and_webhooks():
    metrics = Metrics()
    figures = ApiMetrics(metrics)
    figures.step("CREATE", False, False, 0.001)
    figures.step("CREATE", True, True, 0.2)
    figures.webhook("w", "UPDATE", "validating", 403, 0.03)
    figures.webhook("w", "UPDATE", "validating", 0, 11)
    figures.webhook("w", "UPDATE", "validating", 200, 0.03)
    text = metrics.text()
    steps = "apiserver_admission_step_admission_duration_seconds_bucket"
    assert f'{steps}{{operation="CREATE",rejected="false",type="admit",le="0.005"}} 1' in text
    assert f'{steps}{{operation="CREATE",rejected="true",type="validate",le="0.1"}} 0' in text
    assert f'{steps}{{operation="CREATE",rejected="true",type="validate",le="0.5"}} 1' in text
    rejections = 'name="w",operation="UPDATE",rejection_code'
    assert f'error_type="no_error",{rejections}="403",type="validating"}} 1' in text
    assert f'error_type="calling_webhook_error",{rejections}="0",type="validating"}} 1' in text
    assert (
        'request_total{code="200",name="w",operation="UPDATE",rejected="false",type="validating"} 1' in text
    )


def test_events_count_for_each_watcher():
    metrics = Metrics()
    figures = ApiMetrics(metrics)
    figures.watched(("apps", "v1", "deployments"))(2000, 3)
    figures.watched(("apps", "v1", "deployments"))(500, 1)
    labels = 'group="apps",resource="deployments",version="v1"'
    text = metrics.text()
    assert f"apiserver_watch_events_total{{{labels}}} 4" in text
    assert f'apiserver_watch_events_sizes_bucket{{{labels},le="1024"}} 1' in text
    assert f"apiserver_watch_events_sizes_sum{{{labels}}} 6500" in text
