"""What a decision costs with few and many bindings; asserts nothing. Run with PYTHONPATH=generator."""

from __future__ import annotations

import statistics
import time

from apimachinery.access.attributes import attributes_of
from apimachinery.access.authorization import Attributes
from apimachinery.access.bootstrap import wanted_objects
from apimachinery.access.rbac import Rbac
from apimachinery.http.messages import Request, User

ROUNDS, CALLS = 7, 20_000


def filled(count: int) -> Rbac:
    """The bootstrap roles and ``count`` role bindings more: ten namespaces a user, every tenth of a shared group."""
    rbac = Rbac()
    for wanted in wanted_objects():
        rbac.put(wanted.kind, wanted.obj)
    for number in range(count):
        namespace, name = f"ns{number % max(count // 10, 1)}", f"b{number}"
        subject = {"kind": "User", "name": f"u{number % max(count // 10, 1)}"}
        if number % 10 == 0:
            subject = {"kind": "Group", "name": "devs"}
        ref = {"kind": "ClusterRole", "name": "system:aggregate-to-edit"}
        rbac.put(
            "RoleBinding",
            {"metadata": {"name": name, "namespace": namespace}, "roleRef": ref, "subjects": [subject]},
        )
    return rbac


def microseconds(call, *arguments) -> float:
    """The median over rounds of one call."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(CALLS):
            call(*arguments)
        found.append((time.perf_counter() - began) / CALLS * 1e6)
    return statistics.median(found)


def main() -> None:
    """Measures."""
    user = User("u1", groups=("devs", "system:authenticated"))
    request = Request("GET", "/api/v1/namespaces/ns1/configmaps/x")
    print(f"reading a request's attributes: {microseconds(attributes_of, request, user):.2f} µs")
    for count in (10, 1_000, 10_000):
        began = time.perf_counter()
        rbac = filled(count)
        loaded = time.perf_counter() - began
        allowed = Attributes(user, "create", "ns1", "", "v1", "configmaps")
        refused = Attributes(user, "create", "ns1", "", "v1", "nodes")
        assert rbac.decide(allowed).allowed or count == 10
        assert not rbac.decide(refused).allowed
        began = time.perf_counter()
        rbac.put("ClusterRole", {"metadata": {"name": "other"}, "rules": []})
        rbac.decide(allowed)
        again = (time.perf_counter() - began) * 1e6
        print(
            f"{count:6} bindings: allowed {microseconds(rbac.decide, allowed):.2f} µs, "
            f"refused {microseconds(rbac.decide, refused):.2f} µs, first after a changed role {again:.0f} µs, "
            f"indexing all {loaded * 1000:.0f} ms"
        )


if __name__ == "__main__":
    main()
