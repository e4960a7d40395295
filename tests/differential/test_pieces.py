"""The differential run judged without a server: what it draws, compares, reduces and writes."""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.differential import conversation as scenarios
from tests.differential import protobuf
from tests.differential.answers import Pairs, Placeholders, agreement, signature
from tests.differential.connection import Server
from tests.differential.conversation import Conversation, fill
from tests.differential.draw.areas import AREAS, conversations
from tests.differential.gather import gathered
from tests.differential.kubectl import Kubectl
from tests.differential.reduce import reduced, without_parts


def status(code: int, reason: str, message: str, **more: Any) -> dict[str, Any]:
    body = {"kind": "Status", "reason": reason, "message": message, **more}
    return {"status": code, "headers": {}, "body": body}


@pytest.mark.parametrize("area", sorted(AREAS))
def test_a_seed_draws_the_same_again(area: str) -> None:
    one, other = (list(itertools.islice(conversations("7", [area], []), 5)) for _ in range(2))
    assert [scenarios.write(each) for each in one] == [scenarios.write(each) for each in other]


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "conversion": {"strategy": "Webhook"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
PROJECT = [
    DEFINITION,
    {
        "apiVersion": "example.com/v1",
        "kind": "Foo",
        "metadata": {"name": "f", "namespace": "prod"},
        "spec": {"a": 1},
    },
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}},
    {"apiVersion": "nobody.example.com/v1", "kind": "Bar", "metadata": {"name": "b"}},
]


def test_manifests_of_projects_are_drawn_with_their_definitions(tmp_path: Path) -> None:
    (tmp_path / "project.json").write_text(json.dumps(PROJECT))
    drawn = [
        list(
            itertools.islice(
                conversations("3", ["manifests", "commands"], [], commands=True, manifests=tmp_path), 30
            )
        )
        for _ in range(2)
    ]
    assert [scenarios.write(each) for each in drawn[0]] == [scenarios.write(each) for each in drawn[1]]
    assert {each.area for each in drawn[0]} == {"manifests", "commands"}
    created = [each.steps[0]["body"] for each in drawn[0] if each.area == "manifests"]
    assert {each["kind"] for each in created} == {"Foo", "ConfigMap"}
    assert all("namespace" not in each["metadata"] for each in created)
    definitions = [each.crds for each in drawn[0] if each.crds]
    assert definitions and all("conversion" not in crd["spec"] for crds in definitions for crd in crds)


def test_a_folder_without_manifests_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no manifests"):
        next(conversations("1", [], [], manifests=tmp_path))


def test_manifests_are_gathered_of_clones(tmp_path: Path) -> None:
    clone = tmp_path / "clones" / "project"
    clone.mkdir(parents=True)
    (clone / "some.yaml").write_text("\n---\n".join(json.dumps(each) for each in [*PROJECT, PROJECT[2]]))
    (clone / "template.yaml").write_text("apiVersion: v1\nkind: {{ .Kind }}\nmetadata: {}\n")
    (clone / "values.yaml").write_text("a: [1\n")
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *arguments], check=True, timeout=60)
    assert gathered(clone) == PROJECT


def test_seeds_draw_different_conversations() -> None:
    one, other = (next(conversations(seed, ["rest"], [])) for seed in ("1", "2"))
    assert one.steps != other.steps


@pytest.mark.parametrize("area", sorted(AREAS))
def test_what_is_drawn_can_be_kept(area: str) -> None:
    for each in itertools.islice(conversations("8", [area], []), 10):
        assert yaml.safe_load(scenarios.write(each))["steps"] == json.loads(json.dumps(each.steps))


@pytest.mark.parametrize(
    ("other", "level"),
    [
        (status(404, "NotFound", "no a"), "text"),
        (status(404, "NotFound", "no b"), "body"),
        (status(404, "NotFound", "no a", status="Failure"), "code"),
        (status(404, "Gone", "no a"), None),
        (status(410, "NotFound", "no a"), None),
    ],
)
def test_levels(other: dict[str, Any], level: str | None) -> None:
    assert agreement(status(404, "NotFound", "no a"), other) == level


def test_the_order_of_causes_does_not_count() -> None:
    causes = [{"field": "a", "message": "x"}, {"field": "b", "message": "y"}]
    one = status(422, "Invalid", "[a: x, b: y]", details={"causes": causes})
    other = status(422, "Invalid", "[b: y, a: x]", details={"causes": causes[::-1]})
    assert agreement(one, other) == "text"
    causes.append(causes[0])
    assert agreement(one, other) == "code"


def test_placeholders_tell_the_same_from_the_different() -> None:
    def answer(*versions: str) -> Any:
        return Placeholders("r1").clean([{"name": "n-r1", "resourceVersion": v} for v in versions])

    assert answer("5", "7") == answer("15", "20")
    assert answer("5", "5") != answer("15", "20")
    assert answer("5")[0]["name"] == "n-RUN"


def test_one_answer_too_many_does_not_shift_the_others() -> None:
    pairs = Pairs()
    pairs.meet(["<uid:1>"], ["<uid:2>"])
    assert pairs.rename({"a": "<uid:2>", "b": "<uid:1>"}) == {"a": "<uid:1>", "b": "<uid:1?>"}


def test_reducing_keeps_what_is_needed() -> None:
    assert without_parts(list(range(20)), lambda rest: {3, 17} <= set(rest)) == [3, 17]


def test_reducing_reaches_into_bodies() -> None:
    steps: list[dict[str, Any]] = [
        {"method": "GET", "path": "/x"},
        {
            "method": "POST",
            "path": "/y",
            "body": {"a": {"b": 1, "c": [1, 2]}, "d": 2},
            "query": {"q": "1"},
            "headers": {"H": "h"},
        },
    ]

    def shows(conversation: Conversation) -> bool:
        return any(2 in (step.get("body") or {}).get("a", {}).get("c", []) for step in conversation.steps)

    smallest = reduced(Conversation("rest", "n", steps), shows)
    assert smallest.steps == [{"method": "POST", "path": "/y", "body": {"a": {"c": [2]}}}]


def test_variables_in_keys_and_values() -> None:
    assert fill({"{a}": ["{a}-{b}", 1]}, {"a": "x"}) == {"x": ["x-{b}", 1]}


def test_signatures_leave_names_and_numbers_out() -> None:
    one = signature("body", status(422, "Invalid", 'a "b" 3'), status(422, "Invalid", 'z "b" 3'))
    other = signature("body", status(422, "Invalid", 'a "c" 4'), status(422, "Invalid", 'z "c" 4'))
    assert one == other


def test_protobuf_is_read_by_its_wire_form() -> None:
    made = protobuf.encode(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    )
    found = protobuf.decode(made)["protobuf"]
    assert found["1"][0] == {"1": ["v1"], "2": ["ConfigMap"]}
    assert found["2"][0]["2"] == [{"1": ["k"], "2": ["v"]}]


def printed(text: str) -> str:
    with Kubectl([], Server("https://127.0.0.1:7443", {"admin": "t"}), "ns") as kubectl:
        return kubectl._plain(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("web   1/1   3s\n", "web 1/1 12s\n"),
        ("a  ClusterIP  10.0.0.7  80:30123/TCP  1s", "a ClusterIP 10.0.0.9 80:31999/TCP 0s"),
        ('  resourceVersion: "17"', '  resourceVersion: "2"'),
        ("E1122 10:00:00.123456   77 memcache.go:265] no", "E1122 11:00:09.000001    8 memcache.go:265] no"),
        ("Creation: Sun, 22 Nov 2026 15:00:00 +0000", "Creation: Mon, 23 Nov 2026 16:00:01 +0000"),
    ],
)
def test_what_differs_from_run_to_run_is_printed_alike(one: str, other: str) -> None:
    assert printed(one) == printed(other)


@pytest.mark.parametrize(
    ("one", "other"), [("web 1/1 3s", "web 0/1 3s"), ("cpu: 100m", "cpu: 200m"), ("port: 80", "port: 81")]
)
def test_what_differs_otherwise_is_not(one: str, other: str) -> None:
    assert printed(one) != printed(other)


def test_a_command_is_answered_like_a_request(tmp_path: Path) -> None:
    fake = tmp_path / "kubectl-9.9"
    fake.write_text('#!/bin/sh\necho "$@"; cat; echo no >&2; exit 3\n')
    fake.chmod(0o755)
    with Kubectl([str(fake)], Server("https://127.0.0.1:7443", {"admin": "t"}), "ns") as kubectl:
        answer = kubectl.run({"kubectl": "get 'a b'", "stdin": "in", "version": 5})
    body = {"stdout": ["get a b", "in"], "message": "no\n"}
    assert answer == {"status": 3, "headers": {}, "body": body}
    other = {"status": 3, "headers": {}, "body": {**body, "message": "nothing"}}
    assert (agreement(answer, other), agreement(answer, {**answer, "status": 1})) == ("body", None)


def test_command_lines_can_be_kept() -> None:
    drawn = conversations("8", ["kubectl"], [], commands=True)
    for each in itertools.islice(drawn, 20):
        assert all(shlex.split(step["kubectl"]) for step in each.steps)
        assert yaml.safe_load(scenarios.write(each))["steps"] == json.loads(json.dumps(each.steps))
