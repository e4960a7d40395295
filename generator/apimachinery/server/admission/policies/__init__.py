"""Validating and mutating admission policies: matching, CEL values, evaluation, patches."""
