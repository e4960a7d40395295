"""Who did what, and how it ended: audit events (audit.k8s.io/v1), written to a log or sent to a webhook.

Theory. A *policy* says of each request how much is kept of it (its level) and at which stages an event is made. A
request's *trail* collects what becomes known on its way; at each stage it makes one event, encoded once, and hands the
bytes to every *backend*. Events of one request come in the order of its stages, those of different requests in the
order in which they happened: one thread makes them all, and a backend writes them as they come.

What is promised. In the mode ``blocking`` an event has been handed to the operating system before the request goes on,
so it survives the end of this process, however it ends. In the mode ``batch`` events wait in memory: no more than the
buffer holds; past that, and when a webhook cannot be reached, events are lost, and counted in
``apiserver_audit_error_total``. With ``blocking-strict`` a request whose first event cannot be written is refused.

Secrets. Nothing is hidden by itself: as with kube-apiserver the policy decides. But a policy file that would keep the
content of Secrets, ConfigMaps or tokens at the level Request or above is said at the start, and headers are never kept.
"""
