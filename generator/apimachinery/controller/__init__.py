"""What controllers and operators are made of, for threads and for asyncio. Take names from where they are:

- ``operator``    ``Operator``: runs controllers with their informers, election, probes and a graceful stop
- ``controller``  ``Controller``, ``Watch``, ``Context``: reconcile functions typed by model
- ``requests``    ``Request``, ``Watch``, ``Refused``, ``LostLeadership``: the same for both
- ``caches``      ``SharedInformers``: one watch for each resource; ``lister`` ``Lister``
- ``objects``     create-or-update, conflict retry, finalizers, owners, wait-for
- ``conditions``  of a status: set, find
- ``election``    leader election on a Lease; ``recorder`` events, aggregated
- ``tracing``     spans of OpenTelemetry; ``probes`` HTTP
- ``kinds``       which resource a model class belongs to

Work queues, rate limiters, clocks and the hooks for metrics, traces and logs are in ``apimachinery.queue``.

Every module ``x`` that does I/O has a twin ``async_x``; the plain one is made of it by ``make golden``.
"""
