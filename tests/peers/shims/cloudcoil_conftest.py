"""Fixtures of cloudcoil's tests that make a k3d cluster: a server of ours is there already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from cloudcoil.client import Config


@pytest.fixture
def test_cluster() -> str:
    return os.environ["KUBECONFIG"]


@pytest.fixture
def test_config() -> Iterator[Any]:
    yield Config(kubeconfig=os.environ["KUBECONFIG"])
