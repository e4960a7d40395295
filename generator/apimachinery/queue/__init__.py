"""Work queues: what the server's controllers and those of operators have in common. It knows neither objects nor HTTP.

- ``backlog``     keys in line, under way and delayed; rate limiters
- ``work_queue``  ``WorkQueue``: the same for workers that wait
- ``clock``       time as queues and elections see it; ``FakeClock`` for tests
- ``observing``   hooks for metrics, traces and logs; ``prometheus`` implements them on ``apimachinery.metrics``
- ``running``     what concurrency is made of: bells, flags, groups

Every module ``x`` that waits has a twin ``async_x``; the plain one is made of it by ``build/plain.py``.
"""
