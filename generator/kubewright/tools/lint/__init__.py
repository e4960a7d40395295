"""API rules over the IR: conventions and deprecation policy, one function a rule.

``rule`` is the contract; the modules that ``run.load_rules`` imports hold the rules; ``places`` walks an API; ``run``
applies a profile; ``baseline`` keeps what a project has agreed to fix later.
"""
