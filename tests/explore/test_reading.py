"""Whether everybody can read the page: in either scheme, at 200 %, by keyboard alone, or hearing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.explore.browser import Explorer, serious_findings
from tests.explore.scripted import ScriptedCluster

if TYPE_CHECKING:
    from playwright.sync_api import Page

PLACES = [
    "/",
    "/kind/apps/deployments",
    "/kind/apps/deployments?tab=schema",
    "/kind/autoscaling/horizontalpodautoscalers?tab=versions",
    "/object/apps/deployments/default/web",
    "/object/apps/deployments/default/web?tab=edit",
    "/object/apps/deployments/default/web?tab=form",
    "/object/apps/deployments/default/web?tab=time",
    "/object/apps/deployments/default/web?tab=cel",
    "/time?ns=default",
    "/play/access?question=who-can&verb=get&resource=pods",
    "/play/policy",
]
CONTENT = "main .row, main .line, main table, main .fields, main .groups, main .cm-line, main .inputs, main .time .head"
AT_200 = {"width": 640, "height": 400}
"""What a window of 1280 by 800 has left at 200 %."""

OVERLAPS = """() => {
    const apart = ".virtual, .cm-editor, .skip, .heard, .kinds";
    const shown = [...document.querySelectorAll("h1, h2, h3, button, input, select, label, a, summary, p")]
        .filter(each => each.checkVisibility({checkVisibilityCSS: true}) && !each.closest(apart));
    const found = [];
    for (let i = 0; i < shown.length; i++) for (let j = i + 1; j < shown.length; j++) {
        const [a, b] = [shown[i], shown[j]];
        if (a.contains(b) || b.contains(a)) continue;
        for (const x of a.getClientRects()) for (const y of b.getClientRects()) {
            const width = Math.min(x.right, y.right) - Math.max(x.left, y.left);
            const height = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
            if (width > 3 && height > 3) found.push(`${a.outerHTML.slice(0, 80)} and ${b.outerHTML.slice(0, 80)}`);
        }
    }
    return found;
}"""


@pytest.mark.parametrize("place", PLACES)
def test_everybody_reads_it(page: Page, explorer: Explorer, place: str) -> None:
    explorer.show(page, place)
    page.locator("h1").wait_for()
    page.locator(CONTENT).first.wait_for()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert serious_findings(page) == [], scheme
    wide = page.viewport_size
    assert wide is not None
    try:
        page.set_viewport_size(AT_200)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
        assert page.evaluate(OVERLAPS) == []
    finally:
        page.set_viewport_size(wide)
        page.emulate_media(color_scheme="light")


MOST_BYTES = 300 * 1024
WEIGHT = """() => performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource"))
    .filter(each => !new URL(each.name).pathname.match(/^.(cluster|explorer)\\//))
    .map(each => [new URL(each.name).pathname, each.encodedBodySize])"""


def test_all_of_the_page_is_small(explorer: Explorer) -> None:
    page = explorer.open("/kind/apps/deployments")
    page.get_by_test_id("health").get_by_text("live").wait_for()
    loaded = dict(page.evaluate(WEIGHT))
    assert set(loaded) == {"/", "/page/main.js", "/page/style.css"}, (
        "nothing comes from elsewhere, nothing later"
    )
    assert all(loaded.values()) and sum(loaded.values()) < MOST_BYTES
    assert page.evaluate("performance.getEntriesByName('first-contentful-paint').length") == 1
    page.close()


def test_by_keyboard_alone(page: Page, explorer: Explorer) -> None:
    explorer.show(page, "/")
    page.get_by_role("heading", name="kinds").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("deployments")
    page.keyboard.press("Enter")
    page.get_by_role("row", name="web").wait_for()
    _tab_to(page, "document.activeElement.matches('[role=grid]')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    active = page.get_by_role("grid").get_attribute("aria-activedescendant")
    assert "web" in page.locator(f"#{active}").inner_text(), "what is chosen is what is heard"
    page.keyboard.press("Enter")
    page.locator(".line", has_text="replicas:").first.wait_for()
    _tab_to(page, "document.activeElement.textContent === 'Edit'")
    page.keyboard.press("Enter")
    page.locator(".cm-line", has_text="kind: Deployment").wait_for()
    _tab_to(page, "document.activeElement.matches('.cm-content')")
    page.keyboard.press("Control+End")
    page.keyboard.type("spec:\nminReadySeconds: 7")
    page.keyboard.press("Home")
    page.keyboard.type("  ")
    page.keyboard.press("Control+Enter")
    page.locator(".line.added", has_text="minReadySeconds: 7").wait_for()
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.matches('.cm-content')"), "Tab leaves the editor"


def _tab_to(page: Page, condition: str) -> None:
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no way to {condition}")


def test_changes_are_heard_in_sentences(scripted: tuple[ScriptedCluster, Explorer]) -> None:
    cluster, explorer = scripted
    cluster.rows = [cluster.row("a")]
    page = explorer.open()
    page.clock.install()
    explorer.show(page, "/kind/core/configmaps")
    page.get_by_test_id("health").get_by_text("live").wait_for()
    for number in range(30):
        cluster.send("MODIFIED", cluster.row("a", str(number)))
    cluster.send("ADDED", cluster.row("b"))
    page.get_by_role("link", name="b", exact=True).wait_for()
    assert page.get_by_test_id("said").inner_text() == ""
    page.clock.fast_forward(6_000)
    page.get_by_test_id("said").get_by_text("30 modified, 1 added").wait_for()
    page.close()


def test_an_empty_list_says_so(scripted: tuple[ScriptedCluster, Explorer]) -> None:
    cluster, explorer = scripted
    page = explorer.open("/kind/core/configmaps?ns=shop&labels=a%3Db")
    page.get_by_test_id("none").get_by_text("No object is selected in shop").wait_for()
    cluster.send("ADDED", cluster.row("b"))
    page.get_by_test_id("none").wait_for(state="detached")
    page.close()
