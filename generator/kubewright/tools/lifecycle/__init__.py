"""Release plans: when each API version comes, is deprecated and goes, held against the deprecation policy.

``releases`` counts releases, ``plan`` reads plans, ``policy`` checks them, ``timeline`` shows one release a line.
The policy: https://kubernetes.io/docs/reference/using-api/deprecation-policy/
"""
