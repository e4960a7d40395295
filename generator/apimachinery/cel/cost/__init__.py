"""Costs by Kubernetes' rules: what a call costs at run time, and the worst case estimated from types and bounds."""
