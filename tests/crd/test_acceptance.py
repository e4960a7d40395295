"""Names of CRDs of one group: who gets them, who waits, and the conditions that say so."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from apimachinery.crd import HeldNames, accept_names, decide_names, default_crd
from tests.crd.recorded import CRDS, SCENARIOS, SUFFIX

Json = dict[str, Any]


def crd(plural: str, kind: str, **names: Any) -> Json:
    made: Json = {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [{"name": "v1", "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }
    default_crd(made)
    return made


def settle(made: Json, others: list[Json]) -> Json:
    outcome = accept_names(made, others)
    made["status"] = {"acceptedNames": outcome.names, "conditions": list(outcome.conditions)}
    return made


def reasons(made: Json) -> list[tuple[str, str, str]]:
    return [(each["type"], each["status"], each["reason"]) for each in made["status"]["conditions"]]


def test_first_come_first_served_and_all_or_nothing_for_establishing() -> None:
    apples = settle(crd("apples", "Apple", shortNames=["ap"]), [])
    pears = settle(crd("pears", "Pear", shortNames=["pe", "ap"]), [apples])
    assert reasons(apples) == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert reasons(pears) == [
        ("NamesAccepted", "False", "ShortNamesConflict"),
        ("Established", "False", "NotAccepted"),
    ]
    assert pears["status"]["conditions"][0]["message"] == '"ap" is already in use'
    assert "shortNames" not in pears["status"]["acceptedNames"]
    assert pears["status"]["acceptedNames"]["singular"] == "pear"


def test_established_stays_when_a_name_is_lost() -> None:
    apples = settle(crd("apples", "Apple", shortNames=["ap"]), [])
    pears = settle(crd("pears", "Pear", shortNames=["pe"]), [apples])
    apples["spec"]["names"]["shortNames"] = ["pe"]
    settle(apples, [pears])
    assert reasons(apples)[1] == ("Established", "True", "InitialNamesAccepted")
    assert apples["status"]["acceptedNames"]["shortNames"] == ["ap"]


def test_protected_groups_tell_their_approval() -> None:
    made = crd("boxes", "Box")
    made["spec"]["group"] = "x.k8s.io"
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, trial"}
    outcome = accept_names(made, [])
    assert outcome.conditions[0] == {
        "type": "KubernetesAPIApprovalPolicyConformant",
        "status": "False",
        "reason": "UnapprovedAnnotation",
        "message": 'not approved: "unapproved, trial"',
    }


@pytest.mark.shared
@pytest.mark.skipif(not SCENARIOS.exists(), reason="needs the ../shared folder of recordings")
def test_recorded_conflicts() -> None:
    """Plays crd-names-conflict: all CRDs settle after each write, in turns, as their controllers do."""
    scenario = yaml.load((SCENARIOS / "crd/crd-names-conflict.yaml").read_text(), Loader=yaml.CSafeLoader)
    world: dict[str, Json] = {}
    compared = 0
    for raw in scenario["steps"]:
        step = json.loads(json.dumps(raw, default=str).replace("{run}", SUFFIX).replace("RUN", SUFFIX))
        path, name = step.get("path", ""), step.get("path", "").rpartition("/")[2]
        if step.get("method") == "POST" and path == CRDS:
            made = step["body"]
            default_crd(made)
            world[made["metadata"]["name"]] = made
        elif step.get("method") == "PATCH" and name in world:
            world[name]["spec"]["names"].update(step["body"]["spec"]["names"])
        elif step.get("method") == "DELETE":
            world.pop(name, None)
        for _ in range(2):
            for each in world.values():
                settle(each, list(world.values()))
        expect = step.get("expect")
        if step.get("method") == "GET" and name in world and expect and expect["body"].get("status"):
            wanted = expect["body"]["status"]
            for condition in wanted["conditions"]:
                condition.pop("lastTransitionTime")
            assert world[name]["status"]["conditions"] == wanted["conditions"], step["id"]
            assert world[name]["status"]["acceptedNames"] == wanted["acceptedNames"], step["id"]
            compared += 1
    assert compared >= 13


def test_names_kept_up_to_date_say_what_a_walk_over_all_definitions_says() -> None:
    """``HeldNames`` is what ``accept_names`` would gather, after any order of changes."""
    import random

    chance = random.Random(7)
    held = HeldNames()
    present: dict[str, dict[str, Any]] = {}
    names = [f"n{number}" for number in range(6)]
    for _ in range(300):
        owner, group = f"o{chance.randrange(8)}", f"g{chance.randrange(2)}"
        if chance.random() < 0.3:
            held.drop(owner)
            present.pop(owner, None)
        else:
            accepted = {
                "plural": chance.choice(names),
                "kind": chance.choice(names),
                "shortNames": [chance.choice(names)],
            }
            held.set(owner, group, accepted)
            present[owner] = {
                "metadata": {"name": owner},
                "spec": {"group": group},
                "status": {"acceptedNames": accepted},
            }
        asker = {
            "metadata": {"name": "o0"},
            "spec": {"group": group, "names": {"plural": "n0", "kind": "n1", "shortNames": ["n2", "n3"]}},
        }
        others = list(present.values())
        expected = accept_names(asker, others)
        assert expected == decide_names(
            asker, held.resources_of_others("o0", group), held.kinds_of_others("o0", group), None
        )
