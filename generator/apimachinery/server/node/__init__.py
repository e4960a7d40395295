"""A simulated node: pods run without running anything.

- ``behaviour``  what tests and rules say: how long stages take, what fails, what logs and commands answer
- ``stages``     a pod's status at a stage; no I/O
- ``kubelet``    the loop that binds pods and moves them through their stages (``--controllers node``)
- ``streams``    log, exec, attach and port-forward as a kubelet answers them
"""
