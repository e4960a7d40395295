"""Writes: create, update, patch, apply and delete, each ending in one compare-and-swap in storage."""
