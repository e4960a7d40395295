"""The words of string fields come from the declared checks and published facts; each is at a field that exists."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from kubernetes_api.enums import ENUMS

KNOWN = [
    ("io.k8s.api.core.v1.Container", "imagePullPolicy", ("Always", "IfNotPresent", "Never")),
    ("io.k8s.api.apps.v1.DeploymentStrategy", "type", ("Recreate", "RollingUpdate")),
    (
        "io.k8s.api.policy.v1.PodDisruptionBudgetSpec",
        "unhealthyPodEvictionPolicy",
        ("AlwaysAllow", "IfHealthyBudget"),
    ),
]


@pytest.mark.parametrize(("definition", "field", "words"), KNOWN)
def test_words_are_those_of_the_check_in_order(definition: str, field: str, words: tuple[str, ...]) -> None:
    assert ENUMS[definition][field] == words


def test_every_field_with_words_is_a_text_or_holds_texts() -> None:
    definitions = json.loads(resources.files("kubernetes_api").joinpath("definitions.json").read_bytes())
    for name, fields in ENUMS.items():
        for field, words in fields.items():
            schema = definitions[name]["properties"][field]
            inner = schema.get("items") or schema.get("additionalProperties") or schema
            assert inner["type"] == "string", (name, field)
            assert list(words) == sorted(set(words))
