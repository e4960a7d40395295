"""Addresses and node ports of services: conversations, races, full ranges, two families, and what a crash left."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.server.stories import stories
from tests.server.test_admission_plugins import told
from tests.server.test_api import SERVICES, ask, run

from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.controllers.first_objects import publish
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.allocation_ranges import (
    Ports,
    Unavailable,
    parse_networks,
    parse_ports,
    pick,
)

STORIES = stories("service_addresses.yaml")
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"


def options(**changed: str) -> ApiOptions:
    return ApiOptions(controllers=frozenset(), **changed)  # type: ignore[arg-type]


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


@pytest.mark.parametrize("about", STORIES)
def test_service(about: str) -> None:
    run(lambda api: told(api, STORIES[about]))


async def names(api: AssembledApi) -> dict[str, str]:
    _, found, _ = await ask(api, "GET", ADDRESSES)
    return {each["metadata"]["name"]: each["spec"]["parentRef"]["name"] for each in found["items"]}


def test_of_many_who_want_one_address_one_gets_it() -> None:
    async def story(api: AssembledApi) -> None:
        wanted = {"clusterIP": "10.0.0.20", "type": "NodePort", "ports": [{"port": 80, "nodePort": 30020}]}
        answers = await asyncio.gather(
            *(ask(api, "POST", SERVICES, service(f"s{i}", **wanted)) for i in range(20))
        )
        assert sorted(answer[0] for answer in answers) == [201] + [422] * 19
        winner = next(answer[1]["metadata"]["name"] for answer in answers if answer[0] == 201)
        assert (await names(api))["10.0.0.20"] == winner

    run(story)


def test_a_range_is_given_away_to_the_last_address_and_port() -> None:
    async def story(api: AssembledApi) -> None:
        made = await asyncio.gather(
            *(ask(api, "POST", SERVICES, service(f"s{i}", type="NodePort")) for i in range(14))
        )
        good = [answer[1] for answer in made if answer[0] == 201]
        assert len(good) == 13  # of 14 addresses the server has one
        assert len({each["spec"]["clusterIP"] for each in good}) == 13
        assert len({each["spec"]["ports"][0]["nodePort"] for each in good}) == 13
        refused = next(answer[1] for answer in made if answer[0] != 201)
        assert refused["code"] == 500 and refused["message"].endswith(
            "failed to allocate a serviceIP: range is full"
        )
        await ask(api, "DELETE", f"{SERVICES}/{good[0]['metadata']['name']}")
        code, again, _ = await ask(api, "POST", SERVICES, service("last"))
        assert code == 201 and again["spec"]["clusterIP"] == good[0]["spec"]["clusterIP"]

    run(story, options(service_networks="10.2.0.0/28", node_ports="30000+20"))


def test_a_cluster_of_two_families() -> None:
    async def story(api: AssembledApi) -> None:
        _, one, _ = await ask(api, "POST", SERVICES, service("one"))
        assert one["spec"]["ipFamilies"] == ["IPv6"] and one["spec"]["clusterIP"].startswith("fd00:10::")
        _, two, _ = await ask(api, "POST", SERVICES, service("two", ipFamilyPolicy="PreferDualStack"))
        assert two["spec"]["ipFamilies"] == ["IPv6", "IPv4"] and len(two["spec"]["clusterIPs"]) == 2
        assert two["spec"]["clusterIP"] == two["spec"]["clusterIPs"][0]
        four = two["spec"]["clusterIPs"][1]
        assert (await names(api))[four] == "two"
        two["spec"]["ipFamilyPolicy"] = "SingleStack"
        code, single, _ = await ask(api, "PUT", f"{SERVICES}/two", two)
        assert code == 200 and single["spec"]["clusterIPs"] == two["spec"]["clusterIPs"][:1]
        assert four not in await names(api)
        single["spec"] |= {"ipFamilyPolicy": "RequireDualStack"}
        code, both, _ = await ask(api, "PUT", f"{SERVICES}/two", single)
        assert code == 200 and len(both["spec"]["clusterIPs"]) == 2, both

    run(story, options(service_networks="fd00:10::/112,10.3.0.0/24"))


def test_what_a_crash_left_is_made_good() -> None:
    async def story(api: AssembledApi) -> None:
        _, made, _ = await ask(api, "POST", SERVICES, service("a"))
        address = made["spec"]["clusterIP"]
        await ask(api, "DELETE", f"{ADDRESSES}/{address}")
        served = api.catalog.find("networking.k8s.io", "v1", "ipaddresses")
        assert served is not None and api.parts.allocator is not None
        await api.parts.allocator.store("10.0.0.99", "default", "gone")
        assert api.writer.current(WriteTarget(served, "", "10.0.0.99", WriteOptions())) is not None
        await api.parts.allocator.repair()
        found = await names(api)
        assert found[address] == "a" and "10.0.0.99" not in found

    run(story)


def test_the_server_has_a_service_and_its_range_is_an_object() -> None:
    async def story(api: AssembledApi) -> None:
        _, own, _ = await ask(api, "GET", f"{SERVICES}/kubernetes")
        assert own["spec"]["clusterIP"] == "10.4.0.1"
        assert (await names(api))["10.4.0.1"] == "kubernetes"
        _, found, _ = await ask(api, "GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes")
        assert found["spec"] == {"cidrs": ["10.4.0.0/16"]}
        assert found["status"]["conditions"][0]["status"] == "True"
        body = {"metadata": {"name": "more"}, "spec": {"cidrs": ["10.9.0.0/24"]}}
        assert (await ask(api, "POST", "/apis/networking.k8s.io/v1/servicecidrs", body))[0] == 201
        code, made, _ = await ask(api, "POST", SERVICES, service("n", clusterIP="10.9.0.5"))
        assert code == 201, made

    run(story, options(service_networks="10.4.0.0/16"))


def test_the_network_is_told_where_the_server_is() -> None:
    ends = "/api/v1/namespaces/default/endpoints/kubernetes"
    part = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"

    async def story(api: AssembledApi) -> None:
        _, found, _ = await ask(api, "GET", ends)
        port = {"name": "https", "port": 6443, "protocol": "TCP"}
        assert found["subsets"] == [{"addresses": [{"ip": "192.0.2.7"}], "ports": [port]}]
        for address, family in (("192.0.2.8", "IPv4"), ("2001:db8::1", "IPv6")):
            await publish(api.catalog, api.writer, [address], 6443)
            _, found, _ = await ask(api, "GET", part)
            assert (found["addressType"], found["endpoints"][0]["addresses"]) == (family, [address])
            _, found, _ = await ask(api, "GET", ends)
            assert found["subsets"][0]["addresses"] == [{"ip": address}]

    async def alone(api: AssembledApi) -> None:
        assert (await ask(api, "GET", ends))[0] == (await ask(api, "GET", part))[0] == 404

    run(story, options(advertised="192.0.2.7"))
    run(alone, options())


def test_numbers_come_from_the_upper_part_first() -> None:
    taken: set[int] = set()
    for _ in range(90):
        number = pick(1, 100, 10, taken.__contains__)
        assert 11 <= number <= 100
        taken.add(number)
    assert pick(1, 100, 10, taken.__contains__) == 1
    with pytest.raises(Unavailable, match="range is full"):
        pick(1, 1, 0, {1}.__contains__)


@pytest.mark.parametrize(
    ("text", "ports"), [("30000-32767", Ports()), ("80", Ports(80, 80)), ("30000+10", Ports(30000, 30010))]
)
def test_ranges_of_ports(text: str, ports: Ports) -> None:
    assert parse_ports(text) == ports


@pytest.mark.parametrize("text", ["", "a-b", "0-10", "5-3", "1-70000"])
def test_texts_that_are_no_range_of_ports(text: str) -> None:
    with pytest.raises(ValueError, match="use FIRST-LAST"):
        parse_ports(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.0.0.0/33", "10.0.0.0/33"),
        ("10.0.0.0/24,10.1.0.0/24", "one of IPv4 and one of IPv6"),
        ("10.0.0.0/30", "fewer than 8"),
        ("10.0.0.0/8", "too large"),
        ("fd00::/48", "too large"),
    ],
)
def test_texts_that_are_no_networks(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_networks(text)
