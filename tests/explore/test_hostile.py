"""An object that somebody made to hurt: it runs nothing, and the page goes on."""

from __future__ import annotations

from tests.explore.browser import Explorer
from tests.explore.scripted import ScriptedCluster

MOST_ELEMENTS = 3_000
SHOWN = {
    "Edit": "section.edit",
    "Form": "form.form",
    "Time": "section.time",
    "Versions": "article p.doc",
    "CEL": "section.cel",
}
NOTE_WHAT_IS_WRITTEN = """() => {
    window.longestBody = window.longestWritten = 0;
    const [fetched, stringify] = [window.fetch, JSON.stringify];
    window.fetch = (address, options) => {
        if (typeof options?.body === "string") window.longestBody = Math.max(window.longestBody, options.body.length);
        return fetched(address, options);
    };
    JSON.stringify = (...given) => {
        const text = stringify(...given);
        window.longestWritten = Math.max(window.longestWritten, text?.length ?? 0);
        return text;
    };
}"""
MARKUP = '"><img src=x onerror="window.ran=1"><script>window.ran=1</script>\x1b[31m\u202e'


def test_a_hostile_object(scripted: tuple[ScriptedCluster, Explorer]) -> None:
    cluster, explorer = scripted
    entry = {
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
    }
    many = [
        {**entry, "manager": f"{MARKUP}{number}", "fieldsV1": {"f:data": {f"f:k{number}": {}}}}
        for number in range(10_000)
    ]
    metadata = {
        "name": "evil",
        "namespace": "default",
        "uid": "u",
        "labels": {MARKUP: MARKUP},
        "resourceVersion": "1",
    }
    data = {f"k{number}": MARKUP for number in range(10_000)} | {"large": "x" * (3 << 19), MARKUP: MARKUP}
    cluster.objects["evil"] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "managedFields": many},
        "data": data,
    }
    row = cluster.row(MARKUP, MARKUP)
    cluster.rows = [row]
    page = explorer.open("/kind/core/configmaps")
    page.evaluate(NOTE_WHAT_IS_WRITTEN)
    page.get_by_role("link", name="<script>").wait_for()
    explorer.show(page, "/object/core/configmaps/default/evil")
    page.locator(".manager", has_text="<script>").first.wait_for()
    page.locator(".line", has_text="labels:").click()
    page.locator(".chosen").wait_for()
    page.locator(".code").evaluate("each => { each.scrollTop = each.scrollHeight; }")
    page.locator(".line", has_text="characters)").first.wait_for()
    for tab in ("Edit", "Form", "Time", "Versions", "CEL"):
        page.get_by_role("link", name=tab, exact=True).click()
        page.locator(SHOWN[tab]).first.wait_for()
        assert page.locator("main *").count() < MOST_ELEMENTS, tab
    # To write its six megabytes at once, or to hand them to fetch as a text, takes the page tenths of a second.
    longest, written = page.evaluate("[window.longestBody, window.longestWritten]")
    assert longest < 100_000
    assert written < 2 * len(data["large"])
    assert page.evaluate("window.ran") is None
    assert explorer.faults == []
