"""API rules over the IR: conventions and deprecation policy, one function a rule.

``rule`` is the contract; ``names``, ``types``, ``shape``, ``docs`` and ``versions`` hold the rules; ``places`` walks
an API; ``run`` applies a profile; ``baseline`` keeps what a project has agreed to fix later.
"""
