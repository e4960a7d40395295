"""Admission policies and webhook configurations: checks and table cells."""
