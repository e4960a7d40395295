"""Manifests brought from one API version to another, in place.

Theory. What is gone when is a fact of the catalog (``lifecycle``); what an object becomes is a generated conversion
(``kubewright.tools.migrate.conversions``); both are known without a cluster. The new object is not written from
scratch: the text is edited where old and new differ (``rewrite``), so that comments, order and style of all else stay,
and the edited text is read again; where it does not give the new object, the document is rewritten and that is said.
An object is judged by its own ``apiVersion`` alone: what annotations or strings hold is data.
"""
