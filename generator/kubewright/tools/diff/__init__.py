"""What changed between two states of an API, and whom it breaks.

``change`` is the data, ``resources`` and ``schemas`` compare, ``policy`` weighs by the deprecation policy.
"""
