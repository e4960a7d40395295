"""API Priority and Fairness (KEP-1040): who may be served how much at a time, by FlowSchemas and priority levels.

Theory. Each request is of a *flow*: the FlowSchema that matches it first, and within that who sends it (by user or by
namespace). A FlowSchema names a *priority level*. Levels share the server's *seats*, the requests that may be under way
at once, by their shares. A level whose seats are taken lets its flows wait in queues: each flow is dealt a small *hand*
of the level's queues and takes the shortest (shuffle sharding), so that a flow that floods its queues leaves others
some that it has not. From the queues requests are dispatched as if each queue were served at the same rate: next is the
one that has had the least work (fair queueing by virtual time).

One process. kube-apiserver works on many requests at once; here one thread works on one at a time, and most requests
never wait for anything. So seats alone would never be taken, and who sends most would be served most. Therefore each
turn of the event loop starts no more than a few requests (``TURN``); what came besides waits in the queues, and the
next turn, which has looked at the sockets again, dispatches the fairest few of all. A server that is not loaded never
gets so far: its requests start at once.

Exempt levels are not held up by anything; those of ``system:masters`` are never even looked at twice.
"""
