"""Addresses that nobody may reach a service at."""

from __future__ import annotations

import pytest

from apimachinery.kinds.core.services import endpoint_address

MULTICAST = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("224.0.0.251", [MULTICAST]),
        ("224.0.1.1", []),
        ("ff02::1", [MULTICAST]),
        ("ff12::1", [MULTICAST]),
        ("ff05::1", []),
        ("ff15::1", []),
    ],
)
def test_multicast_on_a_link_is_told_by_its_scope_whatever_its_flags(text: str, details: list[str]) -> None:
    assert [fault.detail for fault in endpoint_address(text, "spec.externalIPs[0]")] == details
