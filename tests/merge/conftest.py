"""Hypothesis profiles: ``HYPOTHESIS_PROFILE=thorough`` looks at many more examples."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW_MACHINES = [HealthCheck.too_slow]
settings.register_profile("usual", max_examples=80, deadline=None, suppress_health_check=_SLOW_MACHINES)
settings.register_profile("thorough", max_examples=2000, deadline=None, suppress_health_check=_SLOW_MACHINES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
