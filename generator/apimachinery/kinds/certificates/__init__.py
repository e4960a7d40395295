"""CertificateSigningRequests and trust bundles: checks, and what each signer signs."""
