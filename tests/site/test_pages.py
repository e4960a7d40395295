"""The check of the site finds what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site.pages import CHROMIUM, problems_of

SOUND = """<!doctype html><html><head><title>a</title></head><body style="color: #000; background: #fff">
<article><h1 id="top">A</h1><p>Words.</p><a href="#top">up</a> <a href="wrong.html#here">other</a></article>
</body></html>"""
WRONG = """<!doctype html><html><head><title>b</title></head><body style="color: #000; background: #fff"><article>
<h1 id="here">B</h1><h1>C</h1><p>flowchart LR a --> b</p><table><tr><td>a\\|b</td></tr></table>
<p style="color: #bbb">faint</p>
<div class="language-console"><pre><code><span class="gp">$ </span>ls\n<span class="go">a</span></code></pre></div>
<p style="width: 6em">one <code>--dry-run</code></p><div style="width: 3000px">wide</div><img src="x.png">
<a href="none.html">dead</a> <a href="sound.html#none">no anchor</a></article></body></html>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
def test_each_kind_of_problem_is_found(tmp_path: Path) -> None:
    (tmp_path / "sound.html").write_text(SOUND)
    (tmp_path / "wrong.html").write_text(WRONG)
    found = problems_of(tmp_path)
    assert found["pages"] == 2
    said = [line.partition(": ")[2] for line in found["problems"]]
    assert {line.partition(": ")[0] for line in found["problems"]} == {"/wrong.html"}, found["problems"]
    for wanted in (
        "raw Mermaid", "an escaped bar in a table", "not one title", "a picture without words", "contrast 1.9",
        "an option in parts at 390: --dry-run", "wider than 1280: 30", "copied with more than what is typed",
        "wider than 390: 30", "a dead link: none.html", "no anchor: sound.html#none",
    ):  # fmt: skip
        assert any(line.startswith(wanted) for line in said), (wanted, said)
