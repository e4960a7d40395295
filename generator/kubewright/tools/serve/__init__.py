"""``kubewright serve``: ``command`` starts and ends the server, ``access`` reads who may do what."""
