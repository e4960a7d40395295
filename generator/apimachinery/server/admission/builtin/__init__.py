"""The admission plugins that are compiled into kube-apiserver, a file each."""
