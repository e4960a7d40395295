"""One headless chromium for all tests of the page. They skip where there is no page, no browser or no driver."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from apimachinery.client.config import Config
from kubewright.testing.thread import ServerThread
from kubewright.tools.explore import page as built
from kubewright.tools.explore.command import ExplorerServer
from kubewright.tools.explore.upstream import Upstream

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MILLISECONDS = 90_000
"""How long any one step may take; none waits for a time to pass."""
AXE = Path(__file__).parents[2] / "explorer/node_modules/axe-core/axe.min.js"


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser."""
    if not built.is_built():
        pytest.skip(built.HOW)
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium: on Debian, apt-get install chromium")
    driver = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"], timeout=60_000
        )
        yield browser
        browser.close()


class Explorer:
    """The explorer of a cluster, and pages of it."""

    def __init__(self, browser: Browser, config: Config, *, login: bool = False) -> None:
        self._browser = browser
        self._thread = ServerThread(ExplorerServer(Upstream(config, login=login)))
        self.faults: list[str] = []

    def open(self, place: str = "/") -> Page:
        """A page in a window of its own. What it logs as an error is kept in ``faults``."""
        page = self._browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(MILLISECONDS)
        page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on("console", self._note)
        page.goto(self._thread.server.address + place)
        return page

    def show(self, page: Page, place: str) -> None:
        """Another place of an open page."""
        page.goto(self._thread.server.address + place)

    def _note(self, message: Any) -> None:
        # A refusal of the cluster is logged by the browser, and is what some tests ask for.
        if message.type == "error" and "the server responded with a status of" not in message.text:
            self.faults.append(message.text)

    def close(self) -> None:
        """Ends the explorer; its pages are closed with the browser."""
        self._thread.stop()


def serious_findings(page: Page) -> list[str]:
    """What axe says against a page, from serious on."""
    if not AXE.is_file():
        pytest.skip("no axe-core: run `make explorer`")
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
