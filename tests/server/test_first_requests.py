"""The first request for a kind, or in protobuf, loads and compiles apart from the loop, which others wait for."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.request
from collections.abc import Callable

import pytest
import yaml

from apimachinery.server.catalog.served import Served
from apimachinery.server.request.codecs import PROTOBUF_TYPE, Protobuf
from kubewright.testing import ApiServer


def test_what_first_requests_load_is_loaded_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    on_a_loop: list[str] = []

    def noted(load: Callable[..., None]) -> Callable[..., None]:
        def note(each: Served | Protobuf) -> None:
            name = each.plural if isinstance(each, Served) else "protobuf"
            loaded.append(name)
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop()
                on_a_loop.append(name)
            load(each)

        return note

    monkeypatch.setattr(Served, "warm", noted(Served.warm))
    monkeypatch.setattr(Protobuf, "warm", noted(Protobuf.warm))
    with ApiServer(controllers="none") as server:
        token = yaml.safe_load(server.kubeconfig_text)["users"][0]["user"]["token"]
        for accept in ("application/json", PROTOBUF_TYPE, PROTOBUF_TYPE):
            headers = {"Accept": accept, "Authorization": f"Bearer {token}"}
            asked = urllib.request.Request(f"{server.url}/apis/batch/v1/cronjobs", headers=headers)
            with urllib.request.urlopen(asked, timeout=60) as answer:
                assert answer.headers["Content-Type"] == accept
    assert [name for name in loaded if name in ("cronjobs", "protobuf")] == ["cronjobs", "protobuf"]
    assert not on_a_loop
