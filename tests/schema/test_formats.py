"""Formats of strings, as kube-apiserver 1.36 judged them: values that it took, and ones it refused."""

from __future__ import annotations

import pytest

from apimachinery.schema.formats import string_format_check

JUDGED = {
    "uri": (
        "* /a%20b /é //host/x mailto:a@b http: http:a http:/a http:? a:%zz data:,x HTTP:x fe80::1%eth0 "
        "http://a:65536 http://a: http://user:p%20w@host/p?%zz http://[::1%25eth0]:80 http://%e9 http://%25 http://a<b "
        "http://a/#b http:///x",
        "? #a a :a +a:b a_b:c ** 1http://a /%zz http://%41 http://%zz http://a^b http://a{b http://a#b http://a:8a "
        "http://::1] http://[::1]80 http://a[::1] http://[a] http://[1.2.3.4] http://[::1%25] http://a%zz@c http://a/%zz",
    ),
    "hostname": (
        "a 1 a-b a-bc 1-1 é a.bc a.éé €.aa a--b.bb 1.bb",
        "a-b-c ab-c a.b 1.5 a.b1 a.1b a.bc1 a.bc-d 1.2.3.256 a.€€ a-.bb -a.bb a. a..b localhost.",
    ),
    "ipv4": ("1.2.3.4 01.2.3.4 0.0.0.0000 00000001.2.3.4 ::ffff:01.2.3.4", "1.2.3 1.2.3.256 256.1.1.1 1.2.3.4.5 ::1"),
    "ipv6": ("::1 ::ffff:1.2.3.4 1:2:3:4:5:6:7:8", "::01.2.3.4 12345:: 1::2::3 fe80::1%eth0 ::00001 1.2.3.4"),
    "cidr": ("1.2.3.4/8 01.2.3.4/8 1.2.3.4/032 ::1/0128", "1.2.3.4/33 1.2.3.4/-1 1.2.3.4/+8 1.2.3.4/ 1.2.3.4 ::1/129"),
    "mac": ("01:23:45:67:89:ab 0123.4567.89ab abcdefabcdef 1111111111111111",
        "01:23-45:67:89:ab 11111111111 zz1111111111"),
    "ssn": ("111-11-1111", "111111111 11-111-1111"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "good", "bad"), [(name, *pair) for name, pair in JUDGED.items()])
def test_formats_are_judged_as_kube_apiserver_judges_them(name: str, good: str, bad: str) -> None:
    check = string_format_check(name)
    assert check is not None
    assert [each for each in good.split() if not check(each)] == []
    assert [each for each in bad.split() if check(each)] == []
    assert not check("")


def test_spaces_are_taken_in_paths_and_refused_in_hosts() -> None:
    check = string_format_check("uri")
    assert check is not None
    assert all(map(check, ("/a b", "a:b c", "http://a/ b", "http://a?b c")))
    assert not any(map(check, ("http://a b", "/a\tb")))
