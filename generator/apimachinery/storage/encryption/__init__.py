"""Encryption at rest, by kube-apiserver's EncryptionConfiguration."""
