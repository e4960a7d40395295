"""Conversion webhooks: every way to read and write, and every way to answer wrongly; texts are kube-apiserver's."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer
from tests.webhooks.hooks import Hooks, Raw, whole
from tests.webhooks.record import UID

Json = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Converter:
    """Between v1, which has ``host``, and v2, which has ``hostPort``; ``spoil`` changes its answers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []
        self.spoil: Any = lambda answer, objects, review: answer

    def __call__(self, review: Json) -> Any:
        request = review["request"]
        wanted = request["desiredAPIVersion"]
        self.calls.append((wanted, [obj["metadata"].get("name", "") for obj in request["objects"]]))
        objects = []
        for obj in json.loads(json.dumps(request["objects"])):
            spec = obj.setdefault("spec", {})
            if wanted.endswith("v2") and "host" in spec:
                spec["hostPort"] = spec.pop("host") + ":80"
            elif wanted.endswith("v1") and "hostPort" in spec:
                spec["host"] = spec.pop("hostPort").split(":")[0]
            objects.append({**obj, "apiVersion": wanted})
        response = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
        answer = {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}
        return self.spoil(answer, objects, review)


def _crd(hooks: Hooks, versions: list[str]) -> Json:
    def version(name: str, field: str) -> Json:
        fields = {field: {"type": "string"}, "n": {"type": "integer", "default": 4}}
        spec = {"type": "object", "properties": fields}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": name == "v1", "schema": schema}

    names = {"plural": "convs", "singular": "conv", "kind": "Conv", "listKind": "ConvList"}
    client = {"url": hooks.url("c"), "caBundle": hooks.ca}
    conversion = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": versions, "clientConfig": client},
    }
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": names,
        "versions": [version("v1", "host"), version("v2", "hostPort")],
        "conversion": conversion,
    }
    return {"metadata": {"name": "convs.example.com"}, "spec": spec}


def path(version: str, name: str = "") -> str:
    return f"/apis/example.com/{version}/namespaces/default/convs" + (f"/{name}" if name else "")


def conv(version: str, name: str, **spec: str) -> Json:
    return {"apiVersion": f"example.com/{version}", "kind": "Conv", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[ApiServer, Hooks]]:
    with ApiServer() as server, Hooks({}) as hooks:
        hooks.answers["c"] = Converter()
        server.request("POST", CRDS, _crd(hooks, ["v1"]))
        server._wait_until_served({"metadata": {"name": "convs.example.com"}})
        yield server, hooks


@pytest.fixture
def server(served: tuple[ApiServer, Hooks]) -> Iterator[ApiServer]:
    server, hooks = served
    hooks.answers["c"] = Converter()
    yield server
    hooks.answers["c"] = Converter()
    server.request("DELETE", path("v1"))


@pytest.fixture
def converter(server: ApiServer, served: tuple[ApiServer, Hooks]) -> Converter:
    found = served[1].answers["c"]
    assert isinstance(found, Converter)
    return found


def test_what_is_written_at_one_version_is_read_at_the_other(server: ApiServer, converter: Converter) -> None:
    made = server.request("POST", path("v2"), conv("v2", "a", hostPort="h:80"))
    assert made["spec"] == {"hostPort": "h:80", "n": 4}
    assert server.request("GET", path("v1", "a"))["spec"] == {"host": "h", "n": 4}
    patched = server.request("PATCH", path("v2", "a"), {"spec": {"hostPort": "i:80"}}, MERGE)
    assert (patched["apiVersion"], patched["spec"]["hostPort"]) == ("example.com/v2", "i:80")
    put = server.request("PUT", path("v2", "a"), {**patched, "spec": {"hostPort": "j:80", "n": 5}})
    assert put["spec"] == {"hostPort": "j:80", "n": 5}
    assert server.request("GET", path("v1", "a"))["spec"] == {"host": "j", "n": 5}
    dry = server.request("PATCH", path("v2", "a") + "?dryRun=All", {"spec": {"hostPort": "k:80"}}, MERGE)
    assert dry["spec"]["hostPort"] == "k:80"
    server.request("DELETE", path("v2", "a"))
    with pytest.raises(ApiError, match="not found"):
        server.request("GET", path("v1", "a"))


def test_who_owns_a_field_at_one_version_owns_it_at_the_other(
    server: ApiServer, converter: Converter
) -> None:
    server.request("PATCH", path("v2", "a") + "?fieldManager=m", conv("v2", "a", hostPort="h:80"), APPLY)
    with pytest.raises(ApiError, match=r'conflict with "m": \.spec\.hostPort'):
        server.request("PATCH", path("v1", "a") + "?fieldManager=n", conv("v1", "a", host="i"), APPLY)
    forced = path("v1", "a") + "?fieldManager=n&force=true"
    taken = server.request("PATCH", forced, conv("v1", "a", host="i"), APPLY)
    assert [entry["manager"] for entry in taken["metadata"]["managedFields"]] == ["n"]


def test_a_list_is_one_call_and_what_was_converted_is_kept(server: ApiServer, converter: Converter) -> None:
    for name in "abc":
        server.request("POST", path("v1"), conv("v1", name, host=name))
    assert not converter.calls
    for _ in range(2):
        items = server.request("GET", path("v2"))["items"]
        assert [item["spec"]["hostPort"] for item in items] == ["a:80", "b:80", "c:80"]
    assert converter.calls == [("example.com/v2", ["a", "b", "c"])]


def test_a_watch_shows_each_event_at_its_version_in_order(server: ApiServer, converter: Converter) -> None:
    server.request("POST", path("v1"), conv("v1", "a", host="a"))
    seen: list[tuple[str, str, str]] = []
    started = threading.Event()

    def watch() -> None:
        with urllib.request.urlopen(
            f"{server.url}{path('v2')}?watch=true&timeoutSeconds=90", timeout=90
        ) as answer:
            for line in answer:
                event = json.loads(line)
                obj = event["object"]
                seen.append((event["type"], obj["apiVersion"], obj["spec"]["hostPort"]))
                started.set()
                if event["type"] == "DELETED":
                    return

    thread = threading.Thread(target=watch)
    thread.start()
    assert started.wait(60)
    for number in range(5):
        server.request("PATCH", path("v1", "a"), {"spec": {"host": str(number)}}, MERGE)
    server.request("DELETE", path("v1", "a"))
    thread.join(60)
    v2 = "example.com/v2"
    assert seen == [
        ("ADDED", v2, "a:80"),
        *(("MODIFIED", v2, f"{number}:80") for number in range(5)),
        ("DELETED", v2, "4:80"),
    ]


def test_metadata_is_restored_but_for_labels_and_annotations(server: ApiServer, converter: Converter) -> None:
    def spoil(answer: Json, objects: list[Json], review: Json) -> Json:
        metadata = {"finalizers": ["a.b/c"], "generation": 77, "labels": {"new": "l"}}
        for obj in objects:
            obj["metadata"] |= metadata
            obj["spec"] = {"unknown": 1}
        return answer

    server.request("POST", path("v1"), conv("v1", "a", host="a"))
    converter.spoil = spoil
    shown = server.request("GET", path("v2", "a"))
    assert shown["metadata"]["generation"] == 1 and "finalizers" not in shown["metadata"]
    # Nothing is defaulted after a conversion, and what the schema does not know goes.
    assert (shown["metadata"]["labels"], shown["spec"]) == ({"new": "l"}, {})


NAME = "conversion webhook for example.com/v1, Kind=Conv"
KIND = "Kind=ConversionReview"
GROUP = "apiextensions.k8s.io/v1"


def response(**changes: Any) -> Any:
    return lambda answer, objects, review: {**answer, "response": answer["response"] | changes}


def each(**changes: Any) -> Any:
    def spoil(answer: Json, objects: list[Json], review: Json) -> Json:
        for obj in objects:
            obj |= changes
        return answer

    return spoil


def metadata(**changes: Any) -> Any:
    def spoil(answer: Json, objects: list[Json], review: Json) -> Json:
        for obj in objects:
            obj["metadata"] |= changes
        return answer

    return spoil


def without(*names: str) -> Any:
    return lambda answer, objects, review: {key: value for key, value in answer.items() if key not in names}


BAD: dict[str, tuple[Any, str]] = {
    "another uid": (response(uid="x"), f'{NAME} failed: expected response.uid="UID", got "x"'),
    "no response": (without("response"), f"{NAME} failed: no response provided"),
    "no kind": (
        without("kind"),
        f"{NAME} failed: expected webhook response of {GROUP}, {KIND}, got {GROUP}, Kind=",
    ),
    "no type": (
        without("kind", "apiVersion"),
        f"{NAME} failed: expected webhook response of {GROUP}, {KIND}, got /, Kind=",
    ),
    "failed": (
        response(result={"status": "Failure", "message": "cannot do it"}),
        f"{NAME} failed: cannot do it",
    ),
    "failed without a message": (
        response(result={"status": "Failure", "reason": "Odd"}),
        f"{NAME} failed: response.result.status was 'Failure', not 'Success'",
    ),
    "no result": (response(result=None), f"{NAME} failed: response.result.status was '', not 'Success'"),
    "too few": (response(convertedObjects=[]), f"{NAME} returned 0 objects, expected 1"),
    "too many": (
        lambda answer, objects, review: response(convertedObjects=objects * 2)(answer, objects, review),
        f"{NAME} returned 2 objects, expected 1",
    ),
    "another version": (
        each(apiVersion="other.example.com/v9"),
        f"{NAME} returned invalid object at index 0: invalid groupVersion "
        "(expected example.com/v2, received other.example.com/v9)",
    ),
    "another kind": (
        each(kind="Thing"),
        f"{NAME} returned invalid object at index 0: invalid kind (expected Conv, received Thing)",
    ),
    "another name": (
        metadata(name="other"),
        f"{NAME} returned invalid object: must have the same name: a != other",
    ),
    "another namespace": (
        metadata(namespace="other"),
        f"{NAME} returned invalid object: must have the same namespace: default != other",
    ),
    "another uid of the object": (
        metadata(uid="other"),
        f"{NAME} returned invalid object: must have the same UID: UID != other",
    ),
    "no metadata": (
        each(metadata="x"),
        f"{NAME} returned invalid object: must have the same name: a != ",
    ),
    "labels that are no text": (
        metadata(labels={"new": 5}),
        f"{NAME} returned invalid metadata: metadata.labels[new] must be a string, but is int64 in converted object",
    ),
    "null": (response(convertedObjects=[None]), "unexpected end of JSON input"),
    "text": (
        response(convertedObjects=["x"]),
        "json: cannot unmarshal string into Go value of type map[string]interface {}",
    ),
    "dies": (
        lambda answer, objects, review: Raw(b""),
        f'{NAME} failed: Post "https://127.0.0.1:PORT/c?timeout=30s": EOF',
    ),
    "fails": (
        lambda answer, objects, review: Raw(whole(500, b"oh")),
        f'{NAME} failed: an error on the server ("unknown") has prevented the request from succeeding',
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_answer_is_refused(
    served: tuple[ApiServer, Hooks], server: ApiServer, converter: Converter, name: str
) -> None:
    spoil, text = BAD[name]
    server.request("POST", path("v1"), conv("v1", "a", host="a"))
    converter.spoil = spoil
    for where in (path("v2", "a"), path("v2")):
        with pytest.raises(ApiError) as refused:
            server.request("GET", where)
        said = UID.sub("UID", str(refused.value)).replace(str(served[1].port), "PORT")
        assert (refused.value.code, refused.value.reason, said) == (500, "", text)
    assert server.request("GET", path("v1", "a"))["spec"]["host"] == "a"
    with pytest.raises(ApiError) as refused:
        server.request("POST", path("v2"), conv("v2", "b", hostPort="b:80"))
    assert refused.value.code == 500
    assert len(server.request("GET", path("v1"))["items"]) == 1


def test_v1beta1_asks_for_less(
    served: tuple[ApiServer, Hooks], server: ApiServer, converter: Converter
) -> None:
    server.request("POST", path("v1"), conv("v1", "a", host="a"))
    webhook = {"conversionReviewVersions": ["v1beta1"]}
    server.request(
        "PATCH", f"{CRDS}/convs.example.com", {"spec": {"conversion": {"webhook": webhook}}}, MERGE
    )
    try:
        converter.spoil = lambda answer, objects, review: {"response": answer["response"] | {"uid": "x"}}
        assert server.request("GET", path("v2", "a"))["spec"]["hostPort"] == "a:80"
    finally:
        webhook = {"conversionReviewVersions": ["v1"]}
        server.request(
            "PATCH", f"{CRDS}/convs.example.com", {"spec": {"conversion": {"webhook": webhook}}}, MERGE
        )
