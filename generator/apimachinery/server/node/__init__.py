"""A simulated node: pods run without running anything.

- ``shapes``     nodes as they register: labels, zones, taints, capacity
- ``heartbeats`` nodes that show that they live
- ``faults``     what is out of order: a node, a zone, an image
- ``scheduler``  the loop that binds pods (``apimachinery.scheduling`` decides)
- ``behaviour``  what tests and rules say: how long stages take, what fails, what logs and commands answer
- ``stages``     a pod's status at a stage; no I/O
- ``kubelet``    the loop that moves pods through their stages (``--controllers node``)
- ``commands``   what commands are given and what they did; ``shell`` answers them where a test does not
- ``channels``, ``spdy_channels``, ``port_forwards``   the protocols of exec, attach and port-forward
- ``streams``    log, exec, attach and port-forward as a kubelet answers them
"""
