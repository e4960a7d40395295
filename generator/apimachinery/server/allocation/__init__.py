"""What services are given: addresses in the cluster and ports of nodes, none of them twice."""
