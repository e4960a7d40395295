"""``kubewright validate`` on input that nobody meant well: an answer always, never a traceback, a hang or a line of
output that the input wrote itself."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from kubewright.diagnostics import Diagnostics
from kubewright.tools.outputs import reporting
from kubewright.tools.validate.check import CheckOptions, judge
from kubewright.tools.validate.inputs import split
from kubewright.tools.validate.kinds import Kinds
from tests.tools.command import kubewright

MAP: Final = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
JSON: Final = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":%s}}'
ALIASES: Final = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(9)
)
INPUTS: Final[dict[str, tuple[bytes, str, int, str]]] = {
    "byte-order mark": (b"\xef\xbb\xbf" + MAP, "yaml", 0, ""),
    "CRLF": (MAP.replace(b"\n", b"\r\n") + b"---\r\n" + MAP + b"data: {a: 1}\r\n", "yaml", 1, ":8:8: error V010"),
    "CR alone": (MAP.replace(b"\n", b"\r"), "yaml", 0, ""),
    "CR alone, a key twice": (MAP.replace(b"\n", b"\r") + b"kind: ConfigMap\r", "yaml", 0, "V012"),
    "tabs": (b"metadata:\n\tname: a\n", "yaml", 1, ":2:1: error K011: broken YAML"),
    "UTF-16": (MAP.decode().encode("utf-16"), "yaml", 1, "error K002: not UTF-8"),
    "Latin-1": (MAP + b'data: {a: "\xe9"}\n', "yaml", 1, ":4:12: error K002: not UTF-8"),
    "binary": (bytes(range(256)), "yaml", 1, "error K002"),
    "NUL": (MAP + b'data: {a: "\0"}\n', "yaml", 1, "error K011"),
    "deep flow": (b"[" * 100_000, "yaml", 1, "error K008: nested deeper"),
    "deep JSON": (b'{"a":' * 100_000, "json", 1, "error K008: nested deeper"),
    "deep block": (b"".join(b" " * i + b"a:\n" for i in range(1000)), "yaml", 1, "error K008"),
    "a bomb of aliases": (ALIASES, "yaml", 1, "error K009: the aliases of this document unfold into too much"),
    "an alias of itself": (b"a: &a\n  b: *a\n", "yaml", 1, "error K009: an alias stands inside its own anchor"),
    "a merge of a number": (MAP + b"data:\n  <<: 3\n", "yaml", 1, "error V001: yaml: map merge requires map"),
    "no object": (b"[1, 2]", "json", 1, ":1:1: error V001: an object is wanted"),
    "no finite key": (b"1e400: a\n.5: b\n", "yaml", 1, "error V001"),
    "a number of JSON without end": (JSON % (b"9" * 10_000), "json", 1, ":1:75: error K010: broken JSON: a number"),
    "a number of YAML without end": (MAP + b"data: {a: %s}\n" % (b"9" * 5_000), "yaml", 0, ""),
    "NaN": (JSON % b"NaN", "json", 1, ":1:75: error K010: broken JSON: NaN is no JSON value"),
    "half a surrogate pair": (JSON % b'"", "\\ud800": 1', "json", 1, "V010"),
    "JSON that turns into YAML": (b'{"a": 1}, {"b": 2}, "c": 3', "json", 1, "error"),
    "comments and markers alone": (b"# Source: a\n---\n# b\n---\n...\n---\n", "yaml", 2, ""),
    "Helm's comments between documents": (b"---\n# Source: a.yaml\n---\n# Source: b.yaml\n" + MAP, "yaml", 0, ""),
    "an end sign alone": (MAP + b"...\n---\n...\n", "yaml", 0, ""),
    "a template": (b"kind: {{ .Values.kind }}\n", "yaml", 1, "error K012"),
    "items that are none": (
        b"apiVersion: v1\nkind: List\nitems: [1, null, {}]\n", "yaml", 1, ":3:9: error V001: an object is wanted",
    ),
    "generateName": (
        b"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\nspec: {containers: [{name: a, image: b}]}\n",
        "yaml", 0, "",
    ),
    "a CRD of nothing": (
        b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"
        b"spec: {versions: [1, null, {schema: {openAPIV3Schema: [1]}}], names: 3}\n",
        "yaml", 1, ":4:19: error V010: CustomResourceDefinition a: spec.versions[0]: cannot unmarshal number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_hostile_input_is_answered(name: str, tmp_path: Path) -> None:
    content, suffix, code, said = INPUTS[name]
    path = tmp_path / f"input.{suffix}"
    path.write_bytes(content)
    found, out, err = kubewright("validate", path)
    assert found == code, out + err
    assert said in out
    assert bool(out) == bool(said)


def test_folders_with_loops_and_dangling_links_are_walked(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(MAP)
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "dangling.yaml").symlink_to("nowhere.yaml")
    (tmp_path / "folder.yaml").mkdir()
    code, _, err = kubewright("validate", tmp_path)
    assert (code, err) == (0, "1 object: no findings\n")


def test_a_large_file_is_refused_and_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubewright.tools.validate.inputs.MAX_BYTES", 100)
    (tmp_path / "a.yaml").write_bytes(MAP * 10)
    code, out, _ = kubewright("validate", tmp_path / "a.yaml")
    assert code == 2
    assert "a.yaml: error K006: the input has more than 100 bytes" in out


HOSTILE_KIND: Final = 'apiVersion: v1\nkind: "A\\n::error::injected\\e[2J%\\u2028,"\n'


def test_text_of_the_input_begins_no_line_and_steers_no_terminal() -> None:
    _, out, _ = kubewright("validate", "-", stdin=HOSTILE_KIND)
    assert out.startswith(
        "<stdin>:2:1: error V002: A\n  | ::error::injected\\x1b[2J%\\u2028,: kind: no schema for A\n  | ::error::"
    )


def test_annotations_escape_what_would_end_them(tmp_path: Path) -> None:
    path = tmp_path / "a,b:c %d\ne.yaml"
    path.write_text(HOSTILE_KIND)
    _, out, _ = kubewright("validate", path, "--format", "github")
    assert out.count("\n") == 1
    assert f"::error file={str(tmp_path).replace(':', '%3A')}/a%2Cb%3Ac %25d%0Ae.yaml,line=2,col=1" in out
    assert ": kind: no schema for A%0A::error::injected\\x1b[2J%25\\u2028, in v1%0A" in out


def test_places_in_sarif_are_references(tmp_path: Path) -> None:
    path = tmp_path / "a b%c\n.yaml"
    path.write_text(HOSTILE_KIND)
    run = json.loads(kubewright("validate", path, "--format", "sarif")[1])["runs"][0]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert place.endswith("/a%20b%25c%0A.yaml")
    assert run["columnKind"] == "unicodeCodePoints"
    used = {result["ruleId"] for result in run["results"]}
    assert used == {rule["id"] for rule in run["tool"]["driver"]["rules"]}


PIECES: Final = (
    b"---\n", b"...\n", b"&a ", b"*a", b"<<: ", b"\t", b"\r\n", b"\r", b"\xef\xbb\xbf", b"\x00", b"\xff", b"null",
    b"[]", b"{}", b"- ", b": ", b'"', b"'", b"|\n", b"!!binary ", b"!!int x", b"9" * 400, b"-1", b"1e400", b".inf",
    b"\\ud800", b"items: ", b"kind: List\n", b"%YAML 1.1\n",
    b"? ", b"~", b"{{ x }}", b"\xc2\x85", b"\xe2\x80\xa8", b"}", b",",
)  # fmt: skip
CASES: Final = 400


def test_damaged_manifests_are_judged_without_fail() -> None:
    chance = random.Random(20261122)
    seeds = [content for content, *_ in INPUTS.values() if len(content) < 3000]
    seeds.append((Path(__file__).parent / "validate_widget_crd.yaml").read_bytes())
    kinds = Kinds("1.37")
    kinds.load()
    for number in range(CASES):
        content = damage(chance.choice(seeds), chance)
        file = chance.choice(["a.yaml", "a.json"])
        diagnostics = Diagnostics()
        chunks = split(content, file, diagnostics)
        judged = [judge(chunk, kinds, CheckOptions(strict=bool(number % 2))) for chunk in chunks]
        findings = [*diagnostics, *(finding for each in judged for finding in each.findings)]
        assert all(0 <= f.location.line <= len(content) + 1 for f in findings), content
        shown = {name: form(findings, {}) for name, form in reporting.FORMATS.items()}
        assert len(json.loads(shown["json"])["findings"]) == len(findings)
        json.loads(shown["sarif"])
        ElementTree.fromstring(shown["junit"])
        assert shown["github"].count("\n") == len(findings), content
        heads = [line for line in shown["text"].split("\n") if line and not line.startswith("  ")]
        assert len(heads) == len(findings), content


def damage(content: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(content) + 1)
        match chance.randrange(4):
            case 0:
                content = content[:at] + chance.choice(PIECES) + content[at:]
            case 1:
                content = content[:at] + content[at + chance.randint(1, 20) :]
            case 2:
                content = content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
            case _:
                begin = chance.randrange(len(content) + 1)
                content = content[:at] + content[begin : begin + chance.randint(1, 80)] + content[at:]
    return content
