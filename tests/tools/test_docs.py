"""``kubewright docs``: what the pages say, that text stays text, and the search in a real browser."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Api
from kubewright.tools.docs.markdown import code, plain, text
from kubewright.tools.docs.page import page, prose
from kubewright.tools.docs.reference import Row, reference
from kubewright.tools.docs.wording import fields_of
from kubewright.tools.inputs.sources import read_states
from tests.tools.command import kubewright

ROOT = Path(__file__).parents[2]
MESSAGING = ROOT / "specs" / "messaging" / "openapi.yaml"
BACKUP = ROOT / "specs" / "backup" / "crds"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
VOID = {"meta", "input", "br", "link", "img"}

HOSTILE = [
    "<script>document.title='taken'</script>",
    "</script><script>document.title='taken'</script>",
    "</style></title></section><h1>taken</h1>",
    "<img src=x onerror=\"document.title='taken'\">",
    '" onmouseover="document.title=\'taken\'" x="',
    "<!-- ",
    "{{ 7*7 }} {% raw %} ${7*7}",
    "javascript:document.title='taken'",
    "[click](javascript:alert(1)) ![x](http://e.example/x.png)",
    "# taken\n\n- taken\n\n1. taken\n\n    taken\n\n---\n\n| a |\n|---|\n",
    "```\ntaken\n```",
    "`unclosed \\` `<b>`",
    "https://e.example/\"onclick=taken <https://f.example/'>",
    "abc\u202efed\u2066x\x07",
    "&lt;b&gt; &#106;avascript:",
]


class Page(HTMLParser):
    """The elements of a page: each tag with its attributes, ids, and the text of each section."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def read(*states: str | Path) -> Api:
    diagnostics = Diagnostics()
    api = read_states([*map(str, states)], diagnostics)
    assert not diagnostics.has_errors, [*map(str, diagnostics)]
    return api


def made(*arguments: str | Path) -> str:
    code, out, err = kubewright("docs", *arguments)
    assert code == 0, err
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CRD whose every text is an attack."""
    fields: dict[str, Any] = {
        f"f{number}": {"type": "string", "description": attack, "default": attack, "enum": [attack, "b"]}
        for number, attack in enumerate(HOSTILE)
    }
    fields |= {attack: {"type": "string", "pattern": re.escape(attack)} for attack in HOSTILE}
    rules = [{"rule": f"self.f0 != {json.dumps(attack)}", "message": attack} for attack in HOSTILE]
    schema = {
        "type": "object",
        "description": "\n\n".join(HOSTILE),
        "properties": {"spec": {"type": "object", "properties": fields, "x-kubernetes-validations": rules}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version |= {"deprecated": True, "deprecationWarning": HOSTILE[0]}
    names = {"kind": "Thing", "plural": "things", "shortNames": [HOSTILE[4]], "categories": [HOSTILE[2]]}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    path = tmp_path_factory.mktemp("hostile") / "crd.json"
    path.write_text(json.dumps(crd))
    return path


def test_text_of_a_description_stays_text_in_html(hostile: Path) -> None:
    found = Page(made(hostile, "--title", HOSTILE[1]))
    assert found.open == []
    assert [len(found.all(tag)) for tag in ("script", "style", "title", "h1", "main")] == [1, 1, 1, 1, 1]
    assert found.all("img") == found.all("link") == found.all("iframe") == []
    for _, attributes in found.tags:
        assert not any(name.startswith("on") or name in ("src", "style", "srcdoc") for name in attributes)
        assert re.match(r"#|https?://", attributes.get("href") or "#")
    shown = "".join(found.text)
    for attack in HOSTILE[:7]:
        assert attack in shown
    assert "abc\\u202efed\\u2066x\\u0007" in shown
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08]", shown)


def test_text_of_a_description_stays_text_in_markdown(hostile: Path) -> None:
    lines = made(hostile, "--format", "markdown", "--title", HOSTILE[9]).splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert [line.lstrip("# ") for line in headings][1:] == [
        "example.com/v1",
        "meta.k8s.io/v1",
        "example.com/v1",
        "Thing",
        "Fields",
        "ThingList",
        "Fields",
        *[line.lstrip("# ") for line in headings][8:],
    ]
    assert headings[0] == "# \\# taken - taken 1. taken taken --- \\| a \\| \\|---\\|"
    outside = [re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line) for line in lines]
    for line in outside:
        line = re.sub(r"<https?://[^<>\s]*>", "", line)
        assert re.sub(r'^<a id="[\w.-]+"></a>$', "", line).count("<") == 0
        assert re.fullmatch(r" *|#+ .*|<a id.*|( *)(- .*|[^\s#>+|~=-].*)", line), line
        assert not re.search(r"\]\((?!#|[\w.-]+\.md#)", line.replace("\\]", "").replace("\\(", ""))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("Plain words, a list-map (of ports): 1.5 of it.", "Plain words, a list-map (of ports): 1.5 of it."),
        (
            "*a* _b_ [c](d) <e> &amp; f|g ~h~ $i$ !",
            "\\*a\\* \\_b\\_ \\[c\\](d) &lt;e&gt; &amp;amp; f\\|g \\~h\\~ \\$i\\$ \\!",
        ),
        ("1. one\n\n- two", "1\\. one - two"),
        ("12) x", "12\\) x"),
        ("- x", "\\- x"),
        ("    code", "code"),
        ("see `a*b` and https://x.example/y.", "see `a*b` and <https://x.example/y>."),
        ("www.x.example a@b.example javascript:x", "www\\.x.example a\\@b.example javascript\\:x"),
        ("\u202eabc", "\\\\u202eabc"),
    ],
)
def test_markdown_text(given: str, wanted: str) -> None:
    assert text(given) == wanted


def test_markdown_names() -> None:
    assert code("a`b``c") == "```a`b``c```"
    assert code("`a") == "`` `a ``"
    assert plain("https://x `y`") == "https\\://x \\`y\\`"


def test_descriptions_in_html() -> None:
    assert prose("use `a<b` at https://x.example/?a=b&c. <b>") == (
        'use <code>a&lt;b</code> at <a href="https://x.example/?a=b&amp;c" rel="noopener noreferrer">'
        "https://x.example/?a=b&amp;c</a>. &lt;b&gt;"
    )
    assert "href" not in prose("javascript://x.example data:text/html,x ftp://x.example")


def rows_of(rows: tuple[Row, ...]) -> Iterator[Row]:
    for row in rows:
        yield row
        yield from rows_of(row.children)


@pytest.mark.parametrize("state", ["kubernetes:1.37", MESSAGING, BACKUP], ids=["1.37", "openapi", "crds"])
def test_every_type_and_field_is_there_and_every_link_leads_somewhere(state: str | Path) -> None:
    api = read(state)
    content = reference(api, "all")
    entries = [entry for group in content.group_versions for entry in group.kinds + group.parts]
    assert len(entries) == len(api.definitions)
    assert sum(len(e.rows) for e in entries) == sum(len(fields_of(d.value, {})) for d in api.definitions)
    written = page(content)
    found = Page(written)
    assert found.open == []
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes in found.all("a"):
        link = attributes["href"] or ""
        assert link.startswith(("http://", "https://")) or link[1:] in ids
    folds = [attributes["data-r"] for attributes in found.all("details") if "data-r" in attributes]
    assert set(folds) <= set(ids)
    sections = [attributes for attributes in found.all("section") if "data-g" in attributes]
    assert len(sections) == len(entries)
    assert sum("data-k" in attributes for attributes in sections) == len(
        {r.definition for r in api.resources}
    )
    assert len(found.all("b")) == sum(1 for entry in entries for _ in rows_of(entry.rows))
    assert len(written) < 3_000_000


def test_the_page_needs_nothing_else_and_lets_nothing_else_run() -> None:
    written = made(MESSAGING)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', written)
    assert policy.startswith("default-src 'none';")
    for tag in ("script", "style"):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", written, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
        assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttp|innerHTML|eval\(", body)


def test_what_a_page_says_of_a_field() -> None:
    whole = made(MESSAGING, "--format", "markdown")
    assert (
        "- `ports` \\[\\][QueuePort](#messaging.kubewright.dev.v1.QueuePort)\n"
        "\n"
        "  Where the queue is reached.\n"
        "\n"
        '  - default `[{"port": 5672}]`\n'
        "  - list keyed by `port` `protocol`\n"
        "  - patch merges `by port`\n"
    ) in whole
    assert (
        "- `queueName` string, **required**\n\n  Another queue of the namespace.\n\n  - characters `1…253`\n"
        in whole
    )
    assert "  - rule `self.replicas >= oldSelf.replicas - 1`: brokers leave one at a time\n" in whole
    assert "  - one of `AMQP` `MQTT` `STOMP`\n" in whole
    backup = made(BACKUP, "--format", "markdown")
    assert "**Deprecated.** backup.kubewright.dev/v1alpha1 BackupSchedule goes with release 2.0" in backup


def test_markdown_pages_and_their_index(tmp_path: Path) -> None:
    out = tmp_path / "reference"
    command = ("docs", "--kubernetes", "1.37", "--format", "markdown", "--output", out)
    assert kubewright(*command)[0] == 0
    index = (out / "README.md").read_text()
    links = re.findall(r"\]\(([\w.-]+\.md)#([\w.-]+)\)", index)
    assert len(links) == len(set(links)) == 862
    for file in {file for file, _ in links}:
        body = (out / file).read_text()
        assert {anchor for name, anchor in links if name == file} == set(
            re.findall(r'<a id="([^"]+)">', body)
        )
        for name, anchor in re.findall(r"\]\(([\w.-]*)#([\w.-]+)\)", body):
            assert (name or file, anchor) in links

    out = tmp_path / "messaging"
    again = ("docs", MESSAGING, "--format", "markdown", "--output", out)
    assert kubewright(*again)[0] == 0
    assert kubewright(*again, "--check")[0] == 0
    (out / "README.md").write_text("changed")
    assert kubewright(*again, "--check")[0] == 1
    assert kubewright(*again)[0] == 0

    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("mine")
    code, _, err = kubewright("docs", MESSAGING, "--output", mine)
    assert code == 1
    assert "index.html is in the way" in err
    assert (mine / "index.html").read_text() == "mine"


def test_one_group_with_what_it_uses() -> None:
    found = Page(made("kubernetes:1.37", "--group", "policy"))
    groups = {attributes["data-g"] for attributes in found.all("section") if "data-g" in attributes}
    assert groups == {"policy/v1", "meta.k8s.io/v1"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to describe"),
        (["nowhere"], "nowhere: error K001: cannot read: no such file or folder"),
        (["--kubernetes", "1.2"], "error K005: no definitions of Kubernetes 1.2"),
        (
            [MESSAGING, "--group", "x"],
            "there is no group 'x'; there are: autoscaling, messaging.kubewright.dev",
        ),
        ([MESSAGING, "--check"], "--check compares with the folder of --output"),
    ],
)
def test_misuse(arguments: list[str | Path], message: str) -> None:
    code, out, err = kubewright("docs", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.fixture(scope="module")
def open_page() -> Iterator[Any]:
    """Opens a page in chromium at an address within it; gives the document as it stands then."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium here")
    driver = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with driver.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-quic"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=120_000)

        def open_at(path: Path, place: str) -> str:
            page = browser.new_page()
            page.goto(f"{path.as_uri()}{place}", timeout=120_000)
            document = page.content()
            page.close()
            return str(document)

        yield open_at
        browser.close()


def results(document: str) -> list[tuple[str, str]]:
    """The results of a search: address and text, without markup."""
    (listed,) = re.findall(r'<ol id="results"[^>]*>(.*?)</ol>', document, re.DOTALL)
    links = re.findall(r'<a href="([^"]*)">(.*?)</a>', listed, re.DOTALL)
    return [(address, re.sub(r"<[^>]*>", "", words)) for address, words in links]


def test_search_and_fields_in_a_browser(open_page: Any, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(made(MESSAGING))
    api = "messaging.kubewright.dev.v1"
    found = results(open_page(path, "#?q=queue"))
    assert found[0] == (f"#{api}.Queue", "Queuekind · messaging.kubewright.dev/v1")
    assert (f"#{api}.DeadLetter/queueName", "queueNameDeadLetter · messaging.kubewright.dev/v1") in found
    found = results(open_page(path, "#?q=queues.spec.deadletter.after"))
    assert found[0] == (
        f"#{api}.Queue/spec/deadLetter/afterAttempts",
        "afterAttemptsQueue.spec.deadLetter · messaging.kubewright.dev/v1",
    )
    assert results(open_page(path, "#?q=nothing-is-called-so")) == []
    document = open_page(path, found[0][0])
    assert "<title>Queue.spec.deadLetter.afterAttempts</title>" in document
    assert re.search(r'<li class="hit"><div class="h"><b>afterAttempts</b>', document)
    assert re.findall(r'<section id="([^"]*)"[^>]* class="on"', document) == [f"{api}.Queue"]


def test_nothing_of_a_description_runs_in_a_browser(open_page: Any, hostile: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(made(hostile))
    for place in ("#example.com.v1.Thing/spec", "#?q=taken", "#?q=%3Cscript%3E", "#%E0%A4%A", "#?q=%E0%A4%A"):
        document = open_page(path, place)
        (title,) = re.findall("<title>(.*?)</title>", document)
        assert title in ("Thing.spec", "example.com")
        assert document.count("<script") == 1
    assert '<li class="hit"><div class="h"><b>spec</b>' in open_page(path, "#example.com.v1.Thing/spec")


BACKUP = Path(__file__).parents[2] / "specs/backup/crds"


def test_a_kind_has_yaml_to_begin_with_and_breadcrumbs() -> None:
    """The skeleton holds what is required, is YAML, and is escaped like every other text."""
    page = kubewright("docs", BACKUP)[1]
    section = page[page.index('id="backup.kubewright.dev.v1.BackupSchedule"') :]
    text = section[section.index("<pre>") + 5 : section.index("</pre>")]
    manifest = yaml.safe_load(html.unescape(text))
    assert (manifest["kind"], manifest["apiVersion"]) == ("BackupSchedule", "backup.kubewright.dev/v1")
    assert {"schedule", "target", "stores"} <= {*manifest["spec"]}
    assert "› backup.kubewright.dev/v1 ›" in section


def test_the_front_page_describes_kinds_and_suggests_a_search_that_finds() -> None:
    page = kubewright("docs", BACKUP)[1]
    front = page[page.index('id="overview"') : page.index('id="backup.kubewright.dev.v1.BackupSchedule"')]
    assert "Brings a copy back." in front and "pod.spec" not in front
    assert "<code>backupschedule.spec.schedule</code>" in front
