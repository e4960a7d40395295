"""APIServices (apiregistration.k8s.io): the group-versions that this server serves itself, and those of other servers
that it stands in front of.

Contract. Every group-version has an APIService ``VERSION.GROUP``. One without ``spec.service`` is local: ``local``
makes them and keeps them right. One with it is remote: whatever is asked below ``/apis/GROUP/VERSION`` goes to that
Service as it came (``proxy``), in the name of the user whom this server has authenticated (``identity``), while
``availability`` finds that it answers; else the answer is 503. ``documents`` keeps what remote servers say of
themselves (discovery, OpenAPI), which is merged into what this server says.

Theory. The stored APIServices are the only state. ``registry`` follows them in the watch cache, so that a request costs
one look into a table, which is empty where nothing is aggregated. Every loop here may be stopped and begun again.
"""
