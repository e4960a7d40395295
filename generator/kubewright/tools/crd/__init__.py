"""CustomResourceDefinitions out of any description.

``inlining`` puts what is referred to in the place of the reference, ``lowering`` says in a structural schema what the
description says otherwise, ``defaults`` takes out what a server would not take as a default, ``manifests`` writes the
resources around the schemas.
"""
