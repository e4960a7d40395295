"""The page in a browser without a screen: what is there is shown, what is applied appears, what is refused is said."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.testing import ApiServer

HERE = Path(__file__).parent
MODULES = Path(
    os.environ.get("KUBEWRIGHT_NODE_MODULES", HERE.parents[1] / "tests/compiler/languages/node/node_modules")
)
NODE, CHROMIUM = shutil.which("node"), shutil.which("chromium")
needs_browser = pytest.mark.skipif(
    NODE is None or CHROMIUM is None or not (MODULES / "typescript").is_dir(),
    reason="no node, no chromium, or no typescript: make node",
)
DRIVER = """<!doctype html><pre id="result">begun</pre><iframe id="page" src="index.html"></iframe>
<script type="module">
const frame = document.querySelector("#page");
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
async function until(what, test) {
  for (let i = 0; i < 200; i++) { if (test()) return; await pause(50); }
  throw new Error("never " + what);
}
const page = () => frame.contentDocument;
const rows = () => [...page().querySelectorAll("#rows tr")].map((row) => row.innerText.trim().split(/\\s+/).join(" "));
const has = (line) => () => rows().some((row) => row.startsWith(line));
function apply(name, replicas) {
  page().querySelector("[name=name]").value = name;
  page().querySelector("[name=replicas]").value = replicas;
  page().querySelector("form").requestSubmit();
}
try {
  await until("loaded", () => page()?.readyState === "complete" && page().querySelector("#rows"));
  await until("listed", has("blog 1"));
  apply("shop", 3);
  await until("created", has("shop 3"));
  apply("shop", 5);
  await until("edited", has("shop 5"));
  page().querySelector("[name=replicas]").removeAttribute("min");
  apply("shop", -1);
  await until("refused", () => page().querySelector("#said").innerText.startsWith("Invalid: "));
  const blog = [...page().querySelectorAll("#rows tr")].find((row) => row.innerText.startsWith("blog"));
  blog.querySelector("button").click();
  await until("deleted", () => !has("blog")());
  document.querySelector("#result").textContent = "done " + rows().join();
} catch (error) { document.querySelector("#result").textContent = String(error) + rows(); }
await fetch("/result", { method: "POST", body: document.querySelector("#result").textContent });
</script>"""


class Proxy(http.server.SimpleHTTPRequestHandler):
    """What ``kubectl proxy --www`` does: files of the page, and everything else of the API."""

    server: Any

    def send_head(self) -> Any:
        """What a GET is answered with: a file, unless it is of the API and answered already."""
        if not self.path.startswith(("/apis/", "/api/")):
            return super().send_head()
        self.forward()
        return None

    def do_POST(self) -> None:
        if self.path == "/result":
            self.server.result = self.rfile.read(int(self.headers["content-length"])).decode()
            self.server.told.set()
            self.send_response(204)
            self.end_headers()
        else:
            self.forward()

    def do_PATCH(self) -> None:
        self.forward()

    def do_DELETE(self) -> None:
        self.forward()

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)) or None
        headers = {"Authorization": f"Bearer {self.server.token}", "Accept": "application/json"}
        if body:
            headers["Content-Type"] = self.headers["content-type"]
        request = urllib.request.Request(self.server.address + self.path, body, headers, method=self.command)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as refusal:
            answer = refusal
        try:
            with answer:
                self.send_response(answer.status)
                self.send_header("content-type", "application/json")
                self.end_headers()
                while piece := answer.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
        except OSError:  # the browser is gone, or the watch ended
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Any]:
    assert NODE is not None
    folder = tmp_path / "web"
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("dist", "__pycache__"))
    tsc = MODULES / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        [NODE, tsc, "-p", "."], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    (folder / "driver.html").write_text(DRIVER)
    with ApiServer(crds=[HERE.parent / "operator" / "crds"]) as api:
        access = yaml.safe_load(Path(api.kubeconfig).read_text())
        handler = lambda *given: Proxy(*given, directory=str(folder))  # noqa: E731
        server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.token = access["users"][0]["user"]["token"]
        server.address = access["clusters"][0]["cluster"]["server"]
        server.result, server.told = "the browser said nothing", threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
        server.server_close()


def create(server: Any, website: bytes) -> None:
    path = "/apis/example.kubewright.dev/v1/namespaces/default/websites"
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/yaml"}
    urllib.request.urlopen(
        urllib.request.Request(server.address + path, website, headers), timeout=30
    ).close()


@needs_browser
def test_the_page_lists_watches_and_applies(site: Any, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    create(
        site,
        b"{apiVersion: example.kubewright.dev/v1, kind: Website, metadata: {name: blog}, spec: {image: x}}",
    )
    browser = subprocess.Popen(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--remote-debugging-port=0", f"http://127.0.0.1:{site.server_port}/driver.html"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        site.told.wait(120)
    finally:
        browser.terminate()
        try:
            browser.wait(60)
        except subprocess.TimeoutExpired:
            browser.kill()
    assert site.result == "done shop 5 – Delete"


def test_the_page_is_short() -> None:
    lines = [len((HERE / name).read_text().splitlines()) for name in ("index.html", "src/page.ts")]
    assert sum(lines) < 100
