"""Which pods may be on which nodes, and where a new one goes. No I/O, no chance: the same objects give the same node.

- ``tolerations``  taints of nodes, and who tolerates them
- ``node_terms``   node selectors and node affinity
"""
