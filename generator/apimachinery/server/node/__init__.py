"""A simulated node: pods run without running anything.

- ``shapes``     nodes as they register: labels, zones, taints, capacity
- ``heartbeats`` nodes that show that they live
- ``faults``     what is out of order: a node, a zone, an image
- ``scheduler``  the loop that binds pods (``apimachinery.scheduling`` decides)
- ``behaviour``  what tests and rules say: how long stages take, what fails, what logs and commands answer
- ``containers`` what the containers of a pod do in order, and the status of it; no I/O
- ``runs``       the command of a container as it runs, ``variables`` what it is told of other objects
- ``kubelet``    the loop that lets pods begin, run and end (``--controllers node``)
- ``commands``   what commands are given and what they did; ``shell`` answers them where a test does not
- ``channels``, ``spdy_channels``, ``port_forwards``   the protocols of exec, attach and port-forward
- ``streams``    log, exec, attach and port-forward as a kubelet answers them
"""
