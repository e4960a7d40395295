"""The workload controllers: what kube-controller-manager makes of Deployments, Jobs and their like.

Theory. A controller looks at one object and at everything that belongs to it, decides what is missing or too much, and
writes that; it remembers nothing between two looks. So it is a function of the cluster as it is now, called again
after each change of what it follows, and is done when a look writes nothing. It reads through ``ClusterView``, which
shows every write that was answered: there is no cache that lags behind, so nothing has to be expected (client-go's
expectations), and a Deployment rolls out in as many looks as it has steps.

- ``interface``    the contract: ``ClusterView`` (what a controller sees and may do), ``Workload`` (a controller)
- ``table``        the controllers by the names of ``--controllers``
- ``owners``       who owns what: claiming, adopting, letting go
- ``pods``         what pods are, pods of a template, which go first
- ``conditions``, ``moments``, ``revisions``   parts that several share
- a file or two for each kind: ``replicasets``, ``deployments``, ``statefulsets``, ``daemonsets``, ``jobs``, …

Rules are those of Kubernetes 1.36. docs/workloads.md lists what is left out.
"""
