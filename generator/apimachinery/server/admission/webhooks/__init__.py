"""Admission webhooks: configurations, reviews, reinvocation."""
