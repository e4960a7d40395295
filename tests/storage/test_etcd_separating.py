"""Custom objects that older versions wrote among built-in ones move when an etcd is opened, in one start or several."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.storage.test_encryption import configuration, key

from apimachinery.storage.etcd import messages, separating
from apimachinery.storage.etcd.driver import EtcdStorage
from apimachinery.storage.interface import StorageError
from apimachinery.storage.url import StorageOptions, open_storage

DEFINITION = "/apiextensions.k8s.io/customresourcedefinitions/clusterroles.rbac.authorization.k8s.io"
BUILT_IN, CUSTOM = (
    f"/{group}/clusterroles/" for group in ("rbac.authorization.k8s.io", "custom:rbac.authorization.k8s.io")
)
Run = Callable[[Awaitable[None]], None]


@pytest.fixture
def run() -> Run:
    return lambda story: asyncio.run(asyncio.wait_for(story, 60))


def named(name: str) -> bytes:
    return b'{"name":"%b"}' % name.encode()


def custom(name: str) -> bytes:
    return (
        b'{"apiVersion":"rbac.authorization.k8s.io/v9","kind":"ClusterRole","metadata":{"name":"%b"}}'
        % name.encode()
    )


def built_in(name: str) -> bytes:
    return (
        b'{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"%b"}}'
        % name.encode()
    )


async def fill(url: str, options: StorageOptions) -> None:
    """An etcd as an older version left it: both sorts in one place."""
    storage = await open_storage(url, options)
    assert isinstance(storage, EtcdStorage)
    for name, data in (
        (
            DEFINITION,
            b'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{}}',
        ),
        *((f"{BUILT_IN}own-{n}", built_in(f"own-{n}")) for n in range(3)),
        *((f"{BUILT_IN}v9-{n}", custom(f"v9-{n}")) for n in range(3)),
    ):
        place = storage._keys.to_etcd(name)
        put = messages.PutRequest(key=place, value=storage._values.sealed(name, place, data))
        await storage._connection.write(messages.TxnRequest(success=[messages.RequestOp(request_put=put)]))
    await storage.close()


async def names(url: str, options: StorageOptions, prefix: str) -> list[str]:
    storage = await open_storage(url, options)
    try:
        return [record.key.removeprefix(prefix) for record in (await storage.list(prefix)).records]
    finally:
        await storage.close()


@pytest.mark.parametrize("encrypted", [False, True])
def test_custom_objects_leave_the_place_of_built_in_ones(etcd_url: str, run: Run, encrypted: bool) -> None:
    sealed = configuration(
        {"aescbc": {"keys": [key(1)]}}, resources=("clusterroles.rbac.authorization.k8s.io",)
    )
    options = StorageOptions(sealing=sealed) if encrypted else StorageOptions()

    async def story() -> None:
        await fill(etcd_url, options)
        assert await names(etcd_url, options, BUILT_IN) == ["own-0", "own-1", "own-2"]
        assert await names(etcd_url, options, CUSTOM) == ["v9-0", "v9-1", "v9-2"]

    run(story())


def test_who_is_ended_in_the_middle_goes_on_the_next_time(
    etcd_url: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = StorageOptions()
    move = separating._Moving._move_one
    left = [4]

    async def ended(self: Any, *args: Any) -> bool:
        left[0] -= 1
        if not left[0]:
            raise StorageError("ended")
        return await move(self, *args)

    async def story() -> None:
        await fill(etcd_url, options)
        monkeypatch.setattr(separating._Moving, "_move_one", ended)
        with pytest.raises(StorageError, match="ended"):
            await open_storage(etcd_url, options)
        monkeypatch.undo()
        assert await names(etcd_url, options, BUILT_IN) == ["own-0", "own-1", "own-2"]
        assert await names(etcd_url, options, CUSTOM) == ["v9-0", "v9-1", "v9-2"]

    run(story())


def test_what_somebody_has_written_meanwhile_is_not_written_over(
    etcd_url: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers that start at the same time: each object moves once."""
    options = StorageOptions()

    async def story() -> None:
        await fill(etcd_url, options)
        both = await asyncio.gather(*(names(etcd_url, options, CUSTOM) for _ in range(2)))
        assert both == [["v9-0", "v9-1", "v9-2"]] * 2
        assert await names(etcd_url, options, BUILT_IN) == ["own-0", "own-1", "own-2"]

    run(story())
