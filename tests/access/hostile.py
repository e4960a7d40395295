"""100,000 hostile credentials against a running server: none gets in, none makes a 500.

python -m tests.access.hostile [COUNT]
"""

from __future__ import annotations

import base64
import collections
import datetime
import http.client
import json
import random
import ssl
import sys
import tempfile
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apimachinery.server.access import certificates
from apimachinery.server.access.certificates import SigningAuthority, made_authority
from kubewright.testing import ApiServer

PATH = "/api/v1/namespaces/kube-system/secrets"


def part(value: Any) -> str:
    """A part of a token."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Forger:
    """Draws credentials that must not work, from one that does."""

    def __init__(self, token: str, seed: int) -> None:
        self.token = token
        self.random = random.Random(seed)
        self.head, self.body, self.signature = token.split(".")
        self.claims = jwt.decode(token, options={"verify_signature": False})
        self.own = ec.generate_private_key(ec.SECP256R1())
        self.rsa = rsa.generate_private_key(65537, 2048)

    def draw(self) -> tuple[str, list[tuple[str, str]]]:
        """The kind, and the headers."""
        kind = self.random.choice(
            ("flip", "cut", "none", "own", "rsa", "hs256", "audience", "expired", "early", "identity", "huge", "nested",
             "garbage", "types", "kid", "joined", "scheme", "smuggled", "header", "unicode")
        )  # fmt: skip
        made = getattr(self, f"_{kind}")()
        headers = made if isinstance(made, list) else [("Authorization", f"Bearer {made}")]
        return kind, headers

    def _signed(self, **claims: Any) -> str:
        return jwt.encode(
            {**self.claims, **claims}, self.own, "ES256", headers=jwt.get_unverified_header(self.token)
        )

    def _flip(self) -> str:
        place = self.random.randrange(len(self.token))
        other = self.random.choice("ABCabc019-_.")
        changed = self.token[:place] + other + self.token[place + 1 :]
        # The last character of a part has bits that decode to nothing: a change of them alone is no change.
        return changed if _decoded(changed) != _decoded(self.token) else self._cut()

    def _cut(self) -> str:
        return self.token[: self.random.randrange(1, len(self.token) - 4)]

    def _none(self) -> str:
        alg = self.random.choice(("none", "None", "NONE", "nOnE", ""))
        return f"{part({'alg': alg, 'typ': 'JWT'})}.{self.body}.{self.random.choice(('', self.signature))}"

    def _own(self) -> str:
        return self._signed()

    def _rsa(self) -> str:
        return jwt.encode(self.claims, self.rsa, self.random.choice(("RS256", "RS512", "PS256")))

    def _hs256(self) -> str:
        return jwt.encode(self.claims, self.random.choice((self.head * 2, "x" * 64)), "HS256")

    def _audience(self) -> str:
        return self._signed(aud=self.random.choice((["x"], "https://kubernetes.default.svc", [], "y")))

    def _expired(self) -> str:
        return self._signed(exp=self.random.choice((1, 0, -1, 1.5)))

    def _early(self) -> str:
        return self._signed(nbf=self.random.choice((1 << 40, 1 << 70)))

    def _identity(self) -> str:
        name = self.random.choice(("system:masters", "admin", "system:serviceaccount:kube-system:admin"))
        body = part({**self.claims, "sub": name, "kubernetes.io": {"namespace": "kube-system"}})
        return f"{self.head}.{body}.{self.signature}"

    def _huge(self) -> str:
        return f"{self.head}.{self.body}.{'A' * self.random.choice((9_000, 30_000))}"

    def _nested(self) -> str:
        depth = self.random.choice((500, 5_000))
        return f"{self.head}.{part(b'[' * depth)}.{self.signature}"

    def _garbage(self) -> str:
        return "".join(chr(self.random.randrange(33, 127)) for _ in range(self.random.randrange(1, 200)))

    def _types(self) -> str:
        odd: list[Any] = [None, [], {}, 7, True, "x", [[]], {"a": 1}, 1e308]
        key = self.random.choice(("exp", "nbf", "iat", "iss", "aud", "sub", "kubernetes.io", "jti"))
        value = self.random.choice(odd)
        if self.random.random() < 0.5:
            return self._signed_any({**self.claims, key: value})
        return f"{part(value)}.{part({**self.claims, key: value})}.{self.signature}"

    def _signed_any(self, claims: dict[str, Any]) -> str:
        head = {
            "alg": "ES256",
            "kid": self.random.choice((jwt.get_unverified_header(self.token)["kid"], "x", 7, None, [])),
        }
        return f"{part(head)}.{part(claims)}.{self.signature}"

    def _kid(self) -> str:
        kid = self.random.choice(("../../etc/passwd", "", "x" * 5000, None, 7, {"a": 1}))
        return f"{part({'alg': 'ES256', 'kid': kid, 'jku': 'https://evil', 'jwk': {}})}.{self.body}.{self.signature}"

    def _joined(self) -> list[tuple[str, str]]:
        return [("Authorization", "Bearer wrong"), ("Authorization", f"Bearer {self.token}")]

    def _scheme(self) -> list[tuple[str, str]]:
        scheme = self.random.choice(("Basic", "Digest", "Token", "Bearer\t", "Bearer  ", "bearer:"))
        return [("Authorization", f"{scheme} {self.token}")]

    def _smuggled(self) -> list[tuple[str, str]]:
        return [
            (self.random.choice(("X-Remote-User", "x-remote-user", "X_Remote_User")), "admin"),
            ("X-Remote-Group", "system:masters"),
            ("X-Forwarded-User", "admin"),
            ("X-Forwarded-Client-Cert", "Subject=CN=admin"),
        ]

    def _header(self) -> list[tuple[str, str]]:
        name = self.random.choice(
            ("Impersonate-User", "impersonate-user", "IMPERSONATE-GROUP", "Impersonate-Extra-a")
        )
        return [(name, self.random.choice(("admin", "system:masters", "system:admin", "")))]

    def _unicode(self) -> str:
        return f"{self.token}\u00e9"


def _decoded(token: str) -> list[bytes]:
    found = []
    for text in token.split("."):
        try:
            found.append(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except ValueError:
            found.append(text.encode())
    return found


def certificate(
    authority: SigningAuthority, *, days: int = 1, usage: Any = ExtendedKeyUsageOID.CLIENT_AUTH
) -> bytes:
    """A certificate of an administrator, with its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    names = [(NameOID.COMMON_NAME, "admin"), (NameOID.ORGANIZATION_NAME, "system:masters")]
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(*name) for name in names]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=9))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM) + private


def by_certificate(server: ApiServer, pem: bytes, folder: Path) -> int:
    """The status that a certificate gets, 0 where the handshake fails."""
    path = folder / "client.pem"
    path.write_bytes(pem)
    context = ssl.create_default_context(cadata=server._authority.decode())
    context.load_cert_chain(path)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=30)
    try:
        connection.request("GET", PATH)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def main(count: int) -> int:
    """Runs; 1 where anything got in or made a 500."""
    statuses: collections.Counter[tuple[str, int]] = collections.Counter()
    true = made_authority()
    # The server for tests makes its authority itself: it gets this one, whose key is known here.
    certificates.made_authority = lambda name="": true
    with ApiServer(tls=True, controllers="none") as server, tempfile.TemporaryDirectory() as folder:
        base = "/api/v1/namespaces/kube-system/serviceaccounts"
        server.request("POST", base, {"metadata": {"name": "root"}})
        subject = {"kind": "ServiceAccount", "name": "root", "namespace": "kube-system"}
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        server.request(
            "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            {"metadata": {"name": "root"}, "roleRef": ref, "subjects": [subject]},
        )  # fmt: skip
        token = server.request("POST", f"{base}/root/token", {"spec": {}})["status"]["token"]
        forger = Forger(token, 1)
        connection = http.client.HTTPSConnection(
            "127.0.0.1", server.port, context=server._context, timeout=30
        )

        def ask(headers: list[tuple[str, str]]) -> int:
            connection.putrequest("GET", PATH)
            for name, value in headers:
                connection.putheader(name, value.encode("utf-8"))
            connection.endheaders()
            answer = connection.getresponse()
            answer.read()
            return answer.status

        assert ask([("Authorization", f"Bearer {token}")]) == 200, "the true token must work"
        for number in range(count):
            kind, headers = forger.draw()
            try:
                statuses[kind, ask(headers)] += 1
            except (http.client.HTTPException, OSError, ValueError):
                statuses[kind, 0] += 1
                connection.close()
            if number % 20_000 == 0:
                print(f"{number} tried", flush=True)
        other = made_authority()
        for kind, pem in (
            ("another authority", lambda: certificate(other)),
            (
                "another authority of the same name",
                lambda: certificate(made_authority("kubewright-client-ca")),
            ),
            ("expired", lambda: certificate(true, days=-1)),
            ("of a server", lambda: certificate(true, usage=ExtendedKeyUsageOID.SERVER_AUTH)),
        ):
            for _ in range(max(count // 1000, 1)):
                statuses[f"certificate: {kind}", by_certificate(server, pem(), Path(folder))] += 1
        assert by_certificate(server, certificate(true), Path(folder)) == 200, "a true one must work"
        assert ask([("Authorization", f"Bearer {token}")]) == 200
    bad = 0
    for (kind, status), times in sorted(statuses.items()):
        wrong = status == 200 or status >= 500
        bad += times * wrong
        print(f"{kind:40} {status or 'no answer':>9} {times:7}{'   WRONG' if wrong else ''}")
    print(f"{sum(statuses.values())} credentials, {bad} got in or made a 500")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
