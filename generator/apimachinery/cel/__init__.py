"""The CEL language with Kubernetes' types, functions and costs. ``environment`` is the way in; a folder a stage."""
