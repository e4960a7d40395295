"""Calls that change or delete a pod, as conversations; and many evictions at once: a budget lets through what it
allows."""

from __future__ import annotations

import asyncio

import pytest
from tests.server.stories import stories
from tests.server.test_admission_plugins import told
from tests.server.test_api import MERGE, PODS, ask, run

from apimachinery.server.assembly.api import AssembledApi

STORIES = stories("pod_calls.yaml")
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.mark.parametrize("about", STORIES)
def test_call(about: str) -> None:
    run(lambda api: told(api, STORIES[about]))


def test_a_budget_of_three_lets_three_of_ten_go() -> None:
    async def story(api: AssembledApi) -> None:
        budget = {
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 7, "selector": {"matchLabels": {"a": "b"}}},
        }
        await ask(api, "POST", BUDGETS, budget)
        for number in range(10):
            pod = {
                "metadata": {"name": f"p{number}", "labels": {"a": "b"}},
                "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
            }
            await ask(api, "POST", PODS, pod)
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await ask(api, "PATCH", f"{PODS}/p{number}/status", {"status": ready}, MERGE)
        healthy = {"currentHealthy": 10, "desiredHealthy": 7, "expectedPods": 10}
        status = {"observedGeneration": 1, "disruptionsAllowed": 3, **healthy}
        await ask(api, "PATCH", f"{BUDGETS}/b/status", {"status": status}, MERGE)
        calls = [
            ask(api, "POST", f"{PODS}/p{number}/eviction", {"metadata": {"name": f"p{number}"}})
            for number in range(10)
        ]
        codes = sorted(answer[0] for answer in await asyncio.gather(*calls))
        assert codes == [201] * 3 + [429] * 7
        _, left, _ = await ask(api, "GET", f"{BUDGETS}/b")
        assert left["status"]["disruptionsAllowed"] == 0 and len(left["status"]["disruptedPods"]) == 3
        condition = left["status"]["conditions"][0]
        assert (condition["type"], condition["reason"]) == ("DisruptionAllowed", "InsufficientPods")
        gone = list(left["status"]["disruptedPods"])
        _, pod, _ = await ask(api, "GET", f"{PODS}/{gone[0]}")
        assert pod["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"

    run(story)
