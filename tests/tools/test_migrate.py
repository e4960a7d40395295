"""``kubewright migrate`` and ``kubewright convert``: what they find, what they write, and what they leave alone."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from apimachinery.wire import yaml as wire_yaml
from kubewright.tools.migrating.lifecycle import read_lifecycles, release_of
from kubewright.tools.migrating.rewrite import rewrite
from tests.tools.command import kubewright

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "migrate_cases.yaml").read_text())
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_manifest_before_and_after(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(case["before"])
    code, out, err = kubewright("migrate", path, "--to", case.get("to", "1.37"), "--format", "json")
    said = [f"{f['line']} {f['severity']} {f['code']} {f['message']}" for f in json.loads(out)["findings"]]
    assert said == case["findings"], err
    assert code == (1 if any(" note " not in line for line in said) else 0)
    assert path.read_text() == case["before"], "only --write writes"
    kubewright("migrate", path, "--to", case.get("to", "1.37"), "--write")
    assert path.read_text() == case.get("after", case["before"])
    again = kubewright("migrate", path, "--to", case.get("to", "1.37"), "--write", "--format", "json")[1]
    assert not {"M001", "M002"} & {f["code"] for f in json.loads(again)["findings"]}, (
        "written twice, changed once"
    )


@pytest.mark.parametrize(
    "case", [c for c in CASES if "after" in c], ids=[c["name"] for c in CASES if "after" in c]
)
def test_what_is_written_is_valid_in_the_newest_release(case: dict[str, Any]) -> None:
    code, out, _ = kubewright("validate", "-", "--strict", stdin=case["after"])
    assert (code, out) == (0, "")


NO_MANIFEST = {
    "Scale",
    "DeploymentRollback",
    "Eviction",
    "AdmissionReview",
    "APIGroupDiscovery",
    "ConversionReview",
}


def gone_by_the_newest() -> list[tuple[str, str]]:
    """Every kind that a manifest may hold and that 1.37 does not have any more."""
    return sorted(
        (api_version, kind)
        for (api_version, kind), life in read_lifecycles().items()
        if life.removed and release_of(life.removed) <= (1, 37) and kind not in NO_MANIFEST
    )


@pytest.mark.parametrize(("api_version", "kind"), gone_by_the_newest(), ids=lambda text: text)
def test_every_kind_that_is_gone_is_found_and_what_has_a_successor_is_rewritten(
    api_version: str, kind: str
) -> None:
    manifest = f"# kept\napiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: a # kept too\n"
    out, err = kubewright("migrate", "-", "--write", stdin=manifest)[1:]
    life = read_lifecycles()[api_version, kind]
    assert f"{kind} of {api_version} is gone since {life.removed}" in err
    if "M001" in err:
        assert "# kept\n" in out
        assert f"apiVersion: {api_version}\n" not in out
        assert "M001" not in kubewright("migrate", "-", stdin=out)[1]
    else:
        assert "M003" in err
        assert out == manifest


def test_a_release_that_is_none_is_refused() -> None:
    code, _, err = kubewright("migrate", "-", "--to", "newest", stdin="a: 1")
    assert code == 2
    assert "is no release" in err


def test_convert_keeps_comments_converts_lists_and_tells_what_it_cannot(tmp_path: Path) -> None:
    text = "# c\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler # k\nmetadata: {name: h}\n"
    text += "spec: {maxReplicas: 2}\n"
    code, out, err = kubewright("convert", "-f", "-", "--output-version", "autoscaling/v1", stdin=text)
    assert (code, out) == (0, text.replace("autoscaling/v2", "autoscaling/v1")), err
    code, out, err = kubewright(
        "convert", "-f", "-", "--output-version", "apps/v1", stdin=f"{text}---\n{text}"
    )
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        f"<stdin>:{line}: error: no conversion from autoscaling/v2 to apps/v1 for HorizontalPodAutoscaler"
        for line in (1, 7)
    ]
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(text)]})
    out = kubewright("convert", "-f", "-", "--output-version", "autoscaling/v1", stdin=items)[1]
    assert json.loads(out)["items"][0]["apiVersion"] == "autoscaling/v1"
    assert kubewright("convert", "-f", tmp_path, "--output-version", "v1")[0] == 2


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab:#-{ '\"\n", max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda v: (
        st.lists(v, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=2), v, max_size=4)
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    old=st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=1), data=st.data(), seed=st.integers(0, 99)
)
def test_an_edited_text_says_the_new_value(old: dict[str, Any], data: st.DataObject, seed: int) -> None:
    new = {**old, **data.draw(st.dictionaries(st.sampled_from("abcdef"), VALUES))}
    for name in random.Random(seed).sample(sorted(new), k=len(new) // 3):
        del new[name]
    done = rewrite(wire_yaml.encode(old).decode(), old, new)
    assert wire_yaml.decode(done.text.encode()) == new
