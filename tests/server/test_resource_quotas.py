"""Quotas: conversations, many requests at once, and what was counted for objects that never came."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.server.stories import stories
from tests.server.test_admission_plugins import told
from tests.server.test_api import CM, ask, run

from apimachinery.server.admission.builtin import resource_quota
from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions

STORIES = stories("resource_quotas.yaml")
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
COUNTING = ApiOptions(controllers=frozenset({"resourcequota"}))


@pytest.mark.parametrize("about", STORIES)
def test_quota(about: str) -> None:
    run(lambda api: told(api, STORIES[about]), COUNTING)


def of(**hard: int) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard}}


async def quota(api: AssembledApi, **hard: int) -> None:
    await ask(api, "POST", QUOTAS, of(**hard))
    async with asyncio.timeout(60):
        while not (await ask(api, "GET", f"{QUOTAS}/q"))[1].get("status", {}).get("used"):
            await asyncio.sleep(0.01)


async def uses(api: AssembledApi, wanted: dict[str, str]) -> None:
    async with asyncio.timeout(60):
        while (await ask(api, "GET", f"{QUOTAS}/q"))[1]["status"]["used"] != wanted:
            await asyncio.sleep(0.01)


def test_of_thirty_at_once_ten_are_let_in() -> None:
    async def story(api: AssembledApi) -> None:
        await quota(api, configmaps=10)
        calls = [ask(api, "POST", CM, {"metadata": {"name": f"c{number}"}}) for number in range(30)]
        codes = sorted(answer[0] for answer in await asyncio.gather(*calls))
        assert codes == [201] * 10 + [403] * 20
        await uses(api, {"configmaps": "10"})

    run(story, COUNTING)


def test_what_never_came_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_quota, "ON_ITS_WAY_SECONDS", 0.3)

    async def story(api: AssembledApi) -> None:
        await quota(api, configmaps=3)
        assert (await ask(api, "POST", CM, {"metadata": {"name": "a"}}))[0] == 201
        assert (await ask(api, "POST", CM, {"metadata": {"name": "a"}}))[0] == 409
        await uses(api, {"configmaps": "1"})

    run(story, COUNTING)


def test_a_quota_that_nobody_counts_limits_nobody() -> None:
    async def story(api: AssembledApi) -> None:
        await ask(api, "POST", QUOTAS, of(configmaps=0))
        assert (await ask(api, "POST", CM, {"metadata": {"name": "a"}}))[0] == 201

    run(story, ApiOptions(controllers=frozenset()))
