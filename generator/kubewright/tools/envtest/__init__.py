"""``kubewright envtest``: programs that envtest starts in place of kube-apiserver and etcd.

``assets`` writes them, ``kube_apiserver`` and ``etcd`` are what they run, ``flags`` reads kube-apiserver's options for
``serve``, ``warm`` keeps a process from which servers start in a fraction of the time.
"""
