"""TLS settings of a client, made of what a configuration and its files say. OpenSSL is loaded by the first that needs
it: it takes 4 MB and a fifth of the time of an import, and who speaks plain HTTP has no use for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apimachinery.client.config import Config, ConfigError, Credential

if TYPE_CHECKING:
    import ssl


def make_tls(config: Config, credential: Credential) -> ssl.SSLContext:
    """The TLS settings of a configuration. Raises ``ConfigError`` for certificates that cannot be used."""
    import ssl

    from apimachinery.http.trust import trusting

    try:
        context = trusting(credential.authority)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"certificate-authority: not PEM certificates: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if config.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credential.certificate:
        import tempfile

        # The ssl module takes certificate chains from files only.
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(credential.certificate + b"\n" + credential.key)
            file.flush()
            try:
                context.load_cert_chain(file.name)
            except ssl.SSLError as error:
                raise ConfigError(f"client-certificate and client-key do not fit: {error}") from None
    return context
