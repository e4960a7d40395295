"""Which pods may be on which nodes, and where a new one goes. No I/O, no chance: the same objects give the same node.

Theory. A scheduler looks at the cluster as it is (``Board``: nodes, and the pods on each), takes the pod of the highest
priority, asks each filter whether a node can take it, and the scores which of those is best. What no node can take may
push out pods of lower priority. Every decision is put on the board, so that the next one sees it.

- ``board``        nodes and what is on them
- ``placing``      decides for one pod
- ``filters``      why a node cannot take a pod, in kube-scheduler's words
- ``terms``        affinity between pods, and how they spread
- ``scores``       which of several nodes is best
- ``preemption``   which pods give way
- ``tolerations``, ``node_terms``   taints; node selectors and node affinity
"""
