"""``kubewright convert``: declared conversions of CRDs and packages, there and back, in the form they came in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apimachinery.wire import yaml as wire_yaml
from kubewright.tools.migrate.anchors import written_out
from kubewright.tools.migrate.steps import UnknownStepError, read_table
from tests.rules.test_conversion import kinds_of
from tests.tools.command import kubewright

SPECS = Path(__file__).parents[2] / "specs"
GROUP = "backup.kubewright.dev"
VERSIONS = [f"{GROUP}/{version}" for version in ("v1alpha1", "v1beta1", "v1")]
CRDS = ("--crds", SPECS / "backup/crds", "--rules", SPECS / "backup")

TEXT = """\
# every night
apiVersion: backup.kubewright.dev/v1beta1   # the middle one
kind: BackupSchedule
metadata: {name: nightly}
spec:
  cron: "0 3 * * *"   # at three
  timeZone: Europe/Berlin
  concurrencyPolicy: Allow
  backoffLimit: 3
  # what to copy
  target:
    namespaces: [a, b]   # both
  stores:
  - name: main   # the big one
    secretName: key
"""


def convert(text: str, target: str, *options: str | Path) -> str:
    code, out, err = kubewright("convert", "-f", "-", "--output-version", target, *options, stdin=text)
    assert code == 0, err
    return out


def test_a_custom_kind_by_its_rules_with_comments_and_order() -> None:
    new = convert(TEXT, f"{GROUP}/v1", *CRDS)
    assert (
        new
        == """\
# every night
apiVersion: backup.kubewright.dev/v1   # the middle one
kind: BackupSchedule
metadata: {name: nightly}
spec:
  # at three
  schedule:
    cron: 0 3 * * *
    timeZone: Europe/Berlin
  concurrencyPolicy: Allow
  backoffLimit: 3
  # what to copy
  target:
    namespaces: [a, b]   # both
  stores:
  - name: main   # the big one
    credentials:
      name: key
"""
    )
    assert kubewright("validate", "-", "--strict", "--crds", SPECS / "backup/crds", stdin=new)[:2] == (0, "")


def test_lists_documents_and_json_on_standard_input() -> None:
    item = yaml.safe_load(TEXT)
    both = json.dumps({"apiVersion": "v1", "kind": "List", "items": [item]}) + "\n---\n" + TEXT
    out = [*yaml.safe_load_all(convert(both, f"{GROUP}/v1", *CRDS))]
    assert [out[0]["items"][0]["apiVersion"], out[1]["apiVersion"]] == [f"{GROUP}/v1"] * 2
    assert convert(json.dumps(item), f"{GROUP}/v1", *CRDS).startswith("{")
    mixed = json.dumps({"kind": "List", "items": [item, {"apiVersion": "v1", "kind": "Pod"}]})
    code, out_text, err = kubewright(
        "convert", "-f", "-", "--output-version", f"{GROUP}/v1", *CRDS, stdin=mixed
    )
    assert (code, out_text) == (1, "")
    assert "items[1]: no conversion from v1 to backup.kubewright.dev/v1 for Pod" in err


def test_versions_of_one_shape_need_no_rules(tmp_path: Path) -> None:
    crd = (Path(__file__).parent / "validate_widget_crd.yaml").read_text()
    group = yaml.safe_load(crd)["spec"]["group"]
    document = yaml.safe_load(crd)
    first = document["spec"]["versions"][0]
    document["spec"]["versions"] = [
        {**first, "name": name, "storage": name == "v1"} for name in ("v1", "v1beta1")
    ]
    path = tmp_path / "crd.yaml"
    path.write_text(yaml.safe_dump(document))
    kind = document["spec"]["names"]["kind"]
    out = convert(f"apiVersion: {group}/v1beta1\nkind: {kind}\n", f"{group}/v1", "--crds", path)
    assert out == f"apiVersion: {group}/v1\nkind: {kind}\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--rules", SPECS / "backup"), "--rules speaks of --crds"),
        (("--crds", "nowhere.yaml"), "nowhere.yaml"),
        (("--crds", SPECS / "backup/crds", "--rules", "nowhere"), "nowhere"),
        (("--package", "no_such_package"), "is not importable\n  hint: put the folder that"),
    ],
)
def test_what_cannot_be_used_is_told(options: tuple[str, ...], said: str) -> None:
    code, out, err = kubewright("convert", "-f", "-", "--output-version", "v1", *options, stdin=TEXT)
    assert (code, out) == (2, "") and said in err and "Traceback" not in err


def test_a_fault_in_the_rules_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "conversions").mkdir()
    rules = tmp_path / "conversions/b.yaml"
    rules.write_text(
        f"kind: BackupSchedule\nhub: {GROUP}/v1\nspokes:\n  {GROUP}/v1beta1: [{{move: spec.cron}}]\n"
    )
    code, out, err = kubewright(
        "convert", "-f", "-", "--output-version", f"{GROUP}/v1", *CRDS[:2], "--rules", tmp_path, stdin=TEXT
    )
    assert (code, out) == (2, "") and f"{rules}:4:" in err


PACKAGES = sorted((SPECS.parent / "generated").glob("*/*/conversion.py"))


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_steps_read_as_data_do_what_the_module_does(path: Path) -> None:
    module = import_module(".".join(path.with_suffix("").parts[-3:]))
    table = read_table(path.read_bytes())
    assert [*table] == [*module.CONVERSIONS]
    for (kind, source, _), convert_it in table.items():
        obj = {"apiVersion": source, "kind": kind, "metadata": {"name": "a"}, "spec": {}}
        assert outcome(convert_it, obj) == outcome(module.CONVERSIONS[kind, source, _], obj)


def outcome(function: Callable[[Any], Any], obj: dict[str, Any]) -> Any:
    try:
        return function(obj)
    except Exception as fault:
        return repr(fault)


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "def f(obj):\n    new = begin(obj)\n    new['a'] = 1\n",
        "from apimachinery.conversion.versions import begin\ndef f(obj):\n    new = begin(obj, __import__('os'))\n",
        "CONVERSIONS: Table = {(1, 2, 3): [x for x in ()]}",
        "CONVERSIONS: Table = {(1, 2, 3): (lambda obj: obj)}",
    ],
)
def test_whatever_else_a_module_says_is_refused(line: str) -> None:
    with pytest.raises((UnknownStepError, ValueError)):
        read_table(line.encode())


def there_and_back(obj: dict[str, Any], way: tuple[str, ...], package: str) -> None:
    without_aliases = json.loads(json.dumps(obj))
    text = "# kept\n" + yaml.safe_dump(without_aliases, sort_keys=False)
    for version in (*way, obj["apiVersion"]):
        text = convert(text, version, "--package", package)
        assert text.startswith("# kept\n")
    assert yaml.safe_load(text) == obj


@settings(max_examples=25, deadline=None, suppress_health_check=[*HealthCheck])
@given(data=st.data(), way=st.permutations(VERSIONS))
def test_an_object_survives_any_way_through_its_versions(data: st.DataObject, way: list[str]) -> None:
    start, *rest = way
    there_and_back(data.draw(kinds_of("backup_api", start, "BackupSchedule")), tuple(rest), "backup_api")


@settings(max_examples=25, deadline=None, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_an_object_of_an_openapi_group_survives(data: st.DataObject) -> None:
    obj = data.draw(kinds_of("flags_api", "flags.kubewright.dev/v1beta1", "FeatureFlag"))
    there_and_back(obj, ("flags.kubewright.dev/v1",), "flags_api")


def test_comments_next_to_anchors_are_kept() -> None:
    text = TEXT.replace("target:", "<<: &more {suspend: true}   # for now\n  target:")
    code, out, err = kubewright("convert", "-f", "-", "--output-version", f"{GROUP}/v1", *CRDS, stdin=text)
    assert code == 0 and yaml.safe_load(out)["spec"]["suspend"] is True
    assert {"# every night", "# at three", "# what to copy", "# for now"} <= {
        *re.findall("# [a-z ]+[a-z]", out)
    }
    assert "note: its aliases are expanded" in err


ALIASED = """\
a: &x   # the a
  k: 1  # one
  l: [1, 2]
b: *x   # the b
c:
  <<: *x  # merged
  k: 3
d:
- *x
- <<: [*x, {y: 1}]
  n: &n [9]   # nine
- {<<: *x, q: 1, z: *n}
e:
  <<: {}
  f: &s text
g: *s
"""


def test_aliases_are_written_out_where_they_are() -> None:
    value = wire_yaml.decode(ALIASED.encode())
    new = written_out(ALIASED, value)
    assert new is not None and wire_yaml.decode(new.encode()) == value
    assert not {"&", "*", "<"} & set(new)
    assert re.findall("#.*", new) == ["# the a", "# one", "# the b", "# merged", "# nine"]
    assert written_out("a: 1\n", {"a": 1}) is None


@pytest.mark.parametrize("command", ["convert", "serve", "migrate"])
def test_a_fault_in_hooks_is_their_authors(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / f"broken_{command}"
    (package / "g_v1").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "registry.py").write_text(
        "from apimachinery.meta.resources import Group\nGROUPS = (Group(name='g.example.com', versions=('v1',)),)\n"
        "GROUP_VERSIONS = {'g.example.com/v1': 'g_v1'}\n"
    )
    (package / "definitions.json").write_text("{}")
    (package / "g_v1/__init__.py").write_text("")
    (package / "g_v1/resources.py").write_text(
        "from apimachinery.meta.resources import Resource\nRESOURCES = (Resource(group='g.example.com', version='v1',"
        " kind='A', plural='as', singular='a', namespaced=True, verbs=('get',), definition='A'),)\n"
    )
    (package / "g_v1/hooks.py").write_text("HOOKS = {}\n\ndef broken(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    arguments: dict[str, list[str]] = {
        "convert": ["-f", "-", "--output-version", "v1", "--package", package.name],
        "migrate": ["-", "--package", package.name],
        "serve": ["--storage", "memory://", "--port", "0", "--packages", package.name],
    }
    code, _, err = kubewright(command, *arguments[command], stdin="apiVersion: v1\nkind: Pod\n")
    assert (code, "Traceback" in err, "bug of kubewright" in err) == (2, False, False), err
    assert f"{package}/g_v1/hooks.py:3: SyntaxError" in err
