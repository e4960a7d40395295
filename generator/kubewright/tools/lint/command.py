"""``kubewright lint``: API conventions and deprecation policy, on any spec.

Exit codes: 0 nothing at or above ``--fail-on`` (warning unless said otherwise), 1 findings, 2 unusable input or
settings. Settings are in ``[tool.kubewright.lint]`` of pyproject.toml or in a TOML file given by ``--config``;
the command line wins.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kubewright.config import KubernetesSource, Package, PathSource
from kubewright.diagnostics import Diagnostic, Diagnostics, NamedObject, Severity, printable
from kubewright.location import Location
from kubewright.source.text import read_bytes
from kubewright.tools.inputs.sources import DESCRIPTIONS, lacks_prose
from kubewright.tools.lint import baseline
from kubewright.tools.lint.rule import House
from kubewright.tools.lint.run import Finding, Settings, chosen, lint, load_rules, subject_of
from kubewright.tools.lint.suppress import suppress
from kubewright.tools.outputs import reporting

LONG: Final = 30
"""More findings than that are shown by rule."""
_HOUSE_KEYS: Final = {"names", "forbidden", "needed", "apart"}
_KEYS: Final = {"profile", "select", "ignore", "severity", "exclude", "baseline", "fail-on", *_HOUSE_KEYS}
_WEIGHT: Final = {Severity.NOTE: 0, Severity.WARNING: 1, Severity.ERROR: 2}


class SettingsError(Exception):
    """A setting cannot be used; the text names it."""


def run(options: argparse.Namespace) -> int:
    if options.explain:
        return _explain(options.explain)
    try:
        given = _settings_of(options)
        settings, fail_on, known = _resolve(options, given)
    except (SettingsError, baseline.BaselineError) as error:
        print(printable(f"kubewright lint: {error}"), file=sys.stderr)
        return 2
    if not options.paths and not options.kubernetes:
        print(
            "kubewright lint: nothing to lint: name files or folders, or --kubernetes RELEASE",
            file=sys.stderr,
        )
        return 2
    if options.kubernetes and lacks_prose([f"kubernetes:{options.kubernetes}"]):
        print(f"kubewright lint: {DESCRIPTIONS}; rules about them (L4) are passed over", file=sys.stderr)
        settings = replace(settings, ignore=(*settings.ignore, "L4"))
    try:
        findings, faults, subjects = (
            _fixed(options, settings, known) if options.fix else _lint(options, settings)
        )
    except baseline.BaselineError as error:
        print(printable(f"kubewright lint: {error}"), file=sys.stderr)
        return 2
    except OSError as error:
        print(printable(f"kubewright lint: cannot fix {error.filename}: {error.strerror}"), file=sys.stderr)
        return 2
    broken = [each for each in faults if each.severity is Severity.ERROR]
    if broken and not findings:
        sys.stdout.write(reporting.FORMATS[options.format]([*faults], {}))
        return 2
    if known is not None:
        try:
            findings, stale = _against(findings, known, update=options.update_baseline)
        except baseline.BaselineError as error:
            print(printable(f"kubewright lint: {error}"), file=sys.stderr)
            return 2
    else:
        stale = 0
    found = [f.diagnostic for f in findings]
    least = _least(options, fail_on)
    shown = [d for d in found if _WEIGHT[d.severity] >= _WEIGHT[least]]
    _show(found, shown, broken, subjects, options)
    if options.format == "text" and not options.quiet:
        _summarize(found, shown, options)
    if stale:
        print(
            f"kubewright lint: {known}: {stale} known finding{'s are' if stale > 1 else ' is'} gone: "
            "run with --update-baseline, so that what is fixed stays fixed",
            file=sys.stderr,
        )
    if broken:
        return 2
    return int(bool(stale) or any(_WEIGHT[d.severity] >= _WEIGHT[fail_on] for d in found))


def _show(
    found: list[Diagnostic],
    shown: list[Diagnostic],
    broken: list[Diagnostic],
    subjects: list[tuple[Location, NamedObject]],
    options: argparse.Namespace,
) -> None:
    """Prints findings; ``broken`` says what could not be read next to what was judged."""
    titles = {code: rule.name for code, rule in load_rules().items()}
    if broken and options.format == "text":
        sys.stdout.write(reporting.FORMATS["text"](broken, {}))
    if options.statistics:
        sys.stdout.write(statistics(found, options.format))
    elif _is_long(shown, options):
        sys.stdout.write(by_rule(shown))
    else:
        listed = shown if options.format == "text" else [*broken, *shown]
        sys.stdout.write(reporting.FORMATS[options.format](listed, titles, subjects))


def _least(options: argparse.Namespace, fail_on: Severity) -> Severity:
    """From where on findings are printed: what fails the run is never hidden."""
    if options.least:
        return Severity(options.least)
    if options.select:  # who names rules wants to hear of them
        return Severity.NOTE
    return min(Severity.WARNING, fail_on, key=_WEIGHT.__getitem__)


def _summarize(found: list[Diagnostic], shown: list[Diagnostic], options: argparse.Namespace) -> None:
    print(reporting.count(found), file=sys.stderr)
    if _is_long(shown, options):
        print(f"each with its place: --all, or --select {shown[0].code}", file=sys.stderr)
    elif shown and not options.statistics:
        counts = Counter(d.code for d in shown).most_common()
        if len(counts) < len(shown):
            rules = load_rules()
            by_rule = ", ".join(f"{code} {rules[code].name} {number}" for code, number in counts)
            print(f"by rule: {by_rule}", file=sys.stderr)
    if len(shown) < len(found) and not options.statistics:
        print(f"{len(found) - len(shown)} not shown; --least note shows all", file=sys.stderr)


def _is_long(shown: list[Diagnostic], options: argparse.Namespace) -> bool:
    """Whether findings are shown by rule: nobody reads hundreds of them, and who names rules wants to see each."""
    asked = options.all or options.select or options.statistics or options.update_baseline
    return options.format == "text" and len(shown) > LONG and not asked


def by_rule(shown: list[Diagnostic]) -> str:
    """A line for each rule that is broken, most often first, with its first place."""
    rules = load_rules()
    first: dict[str, Diagnostic] = {}
    for each in shown:
        first.setdefault(each.code, each)
    lines = ["FINDINGS  RULE  SEVERITY  NAME                    FIRST"]
    for code, number in Counter(each.code for each in shown).most_common():
        each = first[code]
        lines.append(
            f"{number:8}  {code}  {each.severity.value:8}  {rules[code].name:22}  {printable(str(each.location))}"
        )
    return "".join(f"{line}\n" for line in lines)


def statistics(found: list[Diagnostic], form: str) -> str:
    """How often each rule is broken, most often first: lines of number, code, severity and name, or JSON."""
    rules = load_rules()
    counts = sorted(
        Counter((d.code, d.severity) for d in found).items(), key=lambda each: (-each[1], each[0][0])
    )
    if form == "json":
        rows = [
            {"code": code, "name": rules[code].name, "severity": severity.value, "count": number}
            for (code, severity), number in counts
        ]
        return json.dumps(rows, indent=2) + "\n"
    return "".join(f"{n:6}  {code}  {severity.value:8}{rules[code].name}\n" for (code, severity), n in counts)


Linted = tuple[list[Finding], Diagnostics, list[tuple[Location, NamedObject]]]
"""Findings, what is wrong with the input, and the kinds that were looked at, each at its file."""


def _lint(options: argparse.Namespace, settings: Settings) -> Linted:
    from kubewright.ir.shapes import fold
    from kubewright.pipeline import read_api, read_known

    diagnostics = Diagnostics()
    sources: list[PathSource | KubernetesSource] = [PathSource(path) for path in options.paths]
    if options.kubernetes:
        sources.append(KubernetesSource(options.kubernetes))
    package = Package(name="linted", sources=tuple(sources))
    api = read_api(package, diagnostics)
    if diagnostics.has_errors and not (api.resources and all(path.is_dir() for path in options.paths)):
        return [], diagnostics, []
    # What is in many places of a file, or in many versions, is reported once; what its author did not write, not at
    # all. Files stay apart, so that a folder has the findings of its files.
    known = read_known(package, diagnostics)
    folded = fold(api, known.loosely() if known else None, by_file=True)
    places = [*(each.location for each in api.resources), *(each.value.location for each in api.definitions)]
    files = sorted({place.file for place in places})
    codes = {rule.code for rule in chosen(settings)}
    findings = suppress(lint(folded, settings), files, codes, lambda: lint(api, settings))
    return findings, diagnostics, [(Location(r.location.file), subject_of(r)) for r in api.resources]


def _fixed(options: argparse.Namespace, settings: Settings, known: Path | None) -> Linted:
    """What is left after fixing. Versions that are alike are reported once, so one fix may show the next."""
    from kubewright.tools.lint.fixing import apply

    count, files = 0, set[str]()
    while True:
        findings, faults, subjects = _lint(options, settings)
        if faults.has_errors:
            return findings, faults, []
        agreed = known is not None and known.exists()
        beyond = _against(findings, known, update=False)[0] if known is not None and agreed else findings
        fixed = apply(beyond)
        count, files = count + fixed.count, files | fixed.files
        if not fixed.files:
            break
    print(
        f"{count} finding{'s' * (count != 1)} fixed in {len(files)} file{'s' * (len(files) != 1)}",
        file=sys.stderr,
    )
    for file in sorted({each.diagnostic.location.file for each in fixed.left}):
        print(f"{printable(str(file))}: note: not fixed: its comments would be lost", file=sys.stderr)
    return findings, faults, subjects


def _against(findings: list[Finding], path: Path, *, update: bool) -> tuple[list[Finding], int]:
    """The findings beyond the baseline, and how many of its entries are stale."""
    if update and not path.exists():
        baseline.write(path, baseline.of(findings))
        return [], 0
    known = baseline.read(path)
    beyond, kept = baseline.compare(findings, known)
    stale = sum(len(places) for places in known.values()) - sum(len(places) for places in kept.values())
    if update:
        baseline.write(path, kept)
        stale = 0
    return beyond, stale


def _settings_of(options: argparse.Namespace) -> dict[str, Any]:
    path: Path = options.config or Path("pyproject.toml")
    if options.config is None and not path.is_file():
        return {}
    try:
        document = tomllib.loads(read_bytes(path).decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    section = document.get("tool", {}).get("kubewright", {}).get("lint", {})
    found = section if path.name == "pyproject.toml" else section or document
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: tool.kubewright.lint must be a table")
    for key in found:
        if key not in _KEYS:
            raise SettingsError(f"{path}: unknown setting {key!r}; there are: {', '.join(sorted(_KEYS))}")
    return found


def _resolve(options: argparse.Namespace, given: dict[str, Any]) -> tuple[Settings, Severity, Path | None]:
    codes = load_rules()

    def texts(key: str) -> tuple[str, ...]:
        value = given.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise SettingsError(f"{key}: must be a list of strings")
        return tuple(value)

    def known_codes(key: str, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if not any(code.startswith(value) for code in codes):
                raise SettingsError(f"{key}: there is no rule {value}; `--explain all` lists them")
        return values

    profile = options.profile or given.get("profile") or ("native" if options.kubernetes else "crd")
    if profile not in ("crd", "native"):
        raise SettingsError(f"profile: {profile!r} is neither crd nor native")
    severities = given.get("severity", {})
    if not isinstance(severities, dict):
        raise SettingsError("severity: must be a table of rule codes")
    off = tuple(code for code, level in severities.items() if level == "off")
    levels = {s.value: s for s in Severity}
    for code, level in severities.items():
        if level != "off" and level not in levels:
            raise SettingsError(f"severity.{code}: {level!r} is none of error, warning, note, off")
    known_codes("severity", tuple(severities))
    fail_on = options.fail_on or given.get("fail-on") or "warning"
    if fail_on not in levels:
        raise SettingsError(f"fail-on: {fail_on!r} is none of error, warning, note")
    ignore = _codes(options.ignore) + texts("ignore")
    settings = Settings(
        profile="native" if profile == "native" else "crd",
        select=known_codes("select", _codes(options.select) or texts("select")) or ("L",),
        ignore=known_codes("ignore", ignore) + off,
        severity={code: levels[level] for code, level in severities.items() if level != "off"},
        exclude=texts("exclude"),
        house=_house(given),
    )
    path = options.baseline or (Path(given["baseline"]) if isinstance(given.get("baseline"), str) else None)
    if path is not None and not options.update_baseline and not path.exists():
        raise SettingsError(f"{path}: no such baseline; --update-baseline writes the first one")
    return settings, levels[fail_on], path


def _codes(given: list[str] | None) -> tuple[str, ...]:
    """The codes of an option that may be repeated, each time with several."""
    return tuple(code.strip() for each in given or () for code in each.split(",") if code.strip())


def _house(given: dict[str, Any]) -> House:
    """What the project forbids next to the conventions."""

    def table(key: str) -> dict[str, Any]:
        value = given.get(key, {})
        if not isinstance(value, dict):
            raise SettingsError(f"{key}: must be a table")
        return value

    def words(key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise SettingsError(f"{key}: must be a list of strings")
        return tuple(value)

    names = {}
    for pattern, said in table("names").items():
        try:
            names[re.compile(pattern)] = str(said)
        except re.error as error:
            raise SettingsError(f"names: {pattern!r} is no regular expression: {error}") from None
    groups = given.get("apart", [])
    if not isinstance(groups, list):
        raise SettingsError("apart: must be a list of lists of strings")
    return House(
        names=names,
        forbidden=words("forbidden", given.get("forbidden", [])),
        needed={keyword: words(f"needed.{keyword}", value) for keyword, value in table("needed").items()},
        apart=tuple(words("apart", group) for group in groups),
    )


def _explain(code: str) -> int:
    from kubewright.tools.lint.fixing import FIXES

    rules = load_rules()
    if code == "all":
        for rule in rules.values():
            check = rule.of_place or rule.of_kind or rule.of_api
            print(f"{rule.code}  {rule.severity.value:8s} {rule.name:22s} {(check.__doc__ or '').strip()}")
        return 0
    if code not in rules:
        print(f"kubewright lint: there is no rule {code}; `--explain all` lists them", file=sys.stderr)
        return 2
    rule = rules[code]
    check = rule.of_place or rule.of_kind or rule.of_api
    waits = "; only where it is named" if rule.opt_in else ""
    profiles = ", ".join(sorted(rule.profiles))
    print(f"{rule.code} {rule.name} ({rule.severity.value}; profiles: {profiles}{waits})")
    for title, said in (
        ("Rule", (check.__doc__ or "").strip()),
        ("Why", rule.rationale),
        ("Source", rule.source),
        ("Do", rule.hint),
        *([("Fix", f"--fix {FIXES[code].__doc__}")] if code in FIXES else []),
    ):
        print(textwrap.fill(f"{title}: {said}", 100, initial_indent="  ", subsequent_indent="    "))
    return 0
