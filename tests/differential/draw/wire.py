"""Bodies and answers in YAML, CBOR and protobuf, whole and damaged: duplicates, cut ends, wrong types, odd envelopes."""

from __future__ import annotations

import json
from typing import Any

from tests.differential import protobuf
from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import BUILTIN, COMMON, CUSTOM, Kind
from tests.differential.draw.words import Dice, damaged

_PROTOBUF, _CBOR, _YAML = "application/vnd.kubernetes.protobuf", "application/cbor", "application/yaml"


def draw(dice: Dice, name: str) -> Conversation:
    """Writes in every form, read back in every form."""
    kind = dice.one([*COMMON, *COMMON, *CUSTOM, *BUILTIN])
    steps: list[Step] = []
    for _ in range(dice.randint(8, 14)):
        step = dice.choices(
            [_plain, _damaged, _duplicates, _envelope, _read, _patch], [22, 14, 18, 16, 22, 8]
        )[0](dice, kind)
        if step["method"] != "GET" and dice.chance(0.4):
            step.setdefault("query", {})["fieldValidation"] = dice.one(words.FIELD_VALIDATION)
        if step["method"] != "GET" and dice.chance(0.35):
            step.setdefault("headers", {})["Accept"] = dice.one([_PROTOBUF, _CBOR, _YAML, "application/json"])
        if step["method"] in ("POST", "PUT") and kind.cluster:
            step.setdefault("query", {})["dryRun"] = "All"
        steps.append(step)
    return Conversation("wire", name, steps, [kind.crd] if kind.crd else [])


def _write(dice: Dice, kind: Kind, **sent: Any) -> Step:
    put = dice.chance(0.25)
    return {"method": "PUT" if put else "POST", "path": kind.item("a") if put else kind.collection(), **sent}


def _plain(dice: Dice, kind: Kind) -> Step:
    body = kind.make(dice, dice.one(["a", "b"]), 0.05)
    if dice.chance(0.2):
        body = damaged(dice, body)
    forms = ["yaml", "cbor", "protobuf", "protobuf"] if kind.crd is None else ["yaml", "cbor"]
    return _write(dice, kind, body=body, encoding=dice.one(forms))


def _bytes(dice: Dice, kind: Kind) -> tuple[bytes, str]:
    import cbor2

    body = {**kind.make(dice, "a"), "metadata": {"name": "a"}}
    if dice.chance(0.5) and kind.crd is None:
        return protobuf.encode(body), _PROTOBUF
    return dice.one([b"\xd9\xd9\xf7", b""]) + cbor2.dumps(body), _CBOR


def _damaged(dice: Dice, kind: Kind) -> Step:
    data, media_type = _bytes(dice, kind)
    place = dice.randrange(len(data))
    how = dice.randrange(5)
    if how == 0:
        data = data[:place]
    elif how == 1:
        data = data[:place] + bytes([dice.randrange(256)]) + data[place + 1 :]
    elif how == 2:
        data = data[:place] + bytes([dice.randrange(256)]) + data[place:]
    elif how == 3:
        data += dice.one([b"\x00", b"\xf6", b"x", data])
    else:
        data = dice.one(
            [
                b"",
                b"k8s",
                b"k8s\x00",
                b"\xa0",
                b"\xf6",
                b"\xd9\xd9\xf7",
                b"\x80",
                b"\xd9\xd9\xf7\xa0",
                b"k8s\x00\x0a\x00",
                b"\xff",
            ]
        )
    return _write(
        dice,
        kind,
        hex=data.hex(),
        headers={"Content-Type": media_type if dice.chance(0.9) else dice.one([_CBOR, "application/json"])},
    )


def _duplicates(dice: Dice, kind: Kind) -> Step:
    """Keys that are there twice, and ones that nobody knows, in one of the text forms or in CBOR."""
    body = kind.make(dice, "a")
    body["metadata"] = {"name": kind.named("a"), "labels": {"a": "1"}}
    extra = dice.one(
        [
            ("kind", kind.kind),
            ("metadata", {"name": kind.named("a")}),
            ("unknown", 1),
            ("spec", {}),
            ("data", {"z": "1"}),
            ("apiVersion", kind.api_version),
            ("Kind", kind.kind),
            ("Metadata", {}),
            ("status", {}),
        ]
    )
    text = json.dumps(body)
    inner = dice.one(['"name": "a"', '"labels": {}', '"Labels": {"b": "c"}', '"unknown": 2', '"name": 3'])
    if dice.chance(0.5):
        text = text.replace('"metadata": {', f'"metadata": {{{inner}, ', 1)
    if dice.chance(0.6):
        text = text[:-1] + f', "{extra[0]}": {json.dumps(extra[1])}' + "}"
    if dice.chance(0.2):
        text = text.replace('"labels": {"a": "1"}', '"labels": {"a": "1", "a": "2", "a": "2"}', 1)
    how = dice.randrange(4)
    if how == 0 and not kind.cluster:
        return _write(dice, kind, hex=_cbor_of(text).hex(), headers={"Content-Type": _CBOR})
    return _write(
        dice,
        kind,
        text=text,
        headers={"Content-Type": dice.one(["application/json", "application/json", _YAML])},
    )


def _cbor_of(text: str) -> bytes:
    """CBOR of JSON text with its repeated keys kept."""
    import cbor2

    def head(major: int, count: int) -> bytes:
        return (
            cbor2.dumps(count)[:1].replace(
                cbor2.dumps(count)[:1], bytes([major << 5 | cbor2.dumps(count)[0]])
            )
            + cbor2.dumps(count)[1:]
        )

    def encode(value: Any) -> bytes:
        if isinstance(value, _Pairs):
            return head(5, len(value.pairs)) + b"".join(cbor2.dumps(k) + encode(v) for k, v in value.pairs)
        if isinstance(value, list):
            return head(4, len(value)) + b"".join(map(encode, value))
        return cbor2.dumps(value)

    return b"\xd9\xd9\xf7" + encode(json.loads(text, object_pairs_hook=_Pairs))


class _Pairs:
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _envelope(dice: Dice, kind: Kind) -> Step:
    """Protobuf whose envelope or fields are not what they should be."""
    if kind.crd is not None:
        # kube-apiserver drops the connection of whoever sends protobuf for a custom resource.
        return _damaged(dice, kind)
    field, varint = protobuf.field, protobuf.varint
    name = field(1, field(1, b"a"))
    body = dice.one(
        [name, name + field(99, b"x"), varint(1 << 3) + varint(5), name + varint(15 << 3 | 5) + b"\x01\x02\x03\x04", name + name, name + field(2, b"\xff\xff"), b"", field(1, field(1, b"\xff\xfe")), name + varint(2 << 3 | 3), name[:-1],
         name + varint(2 << 3) + varint(1), name + varint(2 << 3 | 1) + b"12345678", field(1, field(1, b"a") + field(11, field(1, b"k") + field(2, b"v") + field(2, b"w"))), field(1, field(1, b"a") + field(11, field(1, b"k"))), field(1, field(1, b"a") + field(11, b""))]
    )  # fmt: skip
    api_version, named = kind.api_version.encode(), kind.kind.encode()
    meta = dice.one(
        [field(1, api_version) + field(2, named)] * 4
        + [
            b"",
            field(1, api_version),
            field(2, named),
            field(1, b"v9") + field(2, named),
            field(1, api_version) + field(2, b"Other"),
            field(1, b"a/b/c") + field(2, named),
            field(2, b"Status") + field(1, b"v1"),
            field(1, b"\xff") + field(2, named),
        ]
    )
    envelope = (
        dice.one([protobuf.MAGIC] * 6 + [b"", b"k8s\x01", b"K8s\x00"]) + field(1, meta) + field(2, body)
    )
    if dice.chance(0.25):
        envelope += dice.one(
            [
                field(3, b"gzip"),
                field(4, b"application/json"),
                field(4, b""),
                field(9, b"x"),
                b"\x0a",
                field(3, b""),
            ]
        )
    step = _write(dice, kind, hex=envelope.hex(), headers={"Content-Type": _PROTOBUF})
    if dice.chance(0.1):
        step["headers"]["Content-Type"] = dice.one(
            [
                _PROTOBUF + ";type=x",
                _PROTOBUF + ";stream=watch",
                "application/json",
                _PROTOBUF + "; charset=utf-8",
            ]
        )
    return step


def _read(dice: Dice, kind: Kind) -> Step:
    path = dice.one(
        [
            kind.item("a"),
            kind.collection(),
            kind.collection(),
            kind.path,
            kind.item("a") + "/status",
            kind.item("none"),
        ]
    )
    step: Step = {"method": "GET", "path": path, "headers": {"Accept": dice.one(words.ACCEPTS[:22])}}
    if path == kind.collection():
        query: dict[str, Any] = {"fieldSelector": f"metadata.name={kind.named('a')}"} if kind.cluster else {}
        if dice.chance(0.4):
            query |= {"watch": "true", "timeoutSeconds": "1", "resourceVersion": "0"}
        step["query"] = query
    return step


def _patch(dice: Dice, kind: Kind) -> Step:
    import cbor2

    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "a", "labels": {"p": "1"}},
    }
    kind_of = dice.one(
        [
            "application/apply-patch+cbor",
            "application/apply-patch+yaml",
            "application/merge-patch+json",
            "application/merge-patch+cbor",
            "application/strategic-merge-patch+json",
            _CBOR,
            _PROTOBUF,
        ]
    )
    data = cbor2.dumps(body) if "cbor" in kind_of else json.dumps(body).encode()
    if dice.chance(0.4):
        data = dice.one(
            [
                b"",
                b"{",
                b"null",
                b"\xf6",
                data + data,
                b"[]",
                b"\x80",
                b"---\n---\n",
                b"a: b: c",
                b"\xff",
                data.replace(b'"p": "1"', b'"p": "1", "p": "2"'),
                data.replace(b'"labels"', b'"unknown"'),
            ]
        )
    step: Step = {
        "method": "PATCH",
        "path": kind.item("a"),
        "hex": data.hex(),
        "headers": {"Content-Type": kind_of},
    }
    if "apply" in kind_of:
        step["query"] = {"fieldManager": "m1"}
    return step
