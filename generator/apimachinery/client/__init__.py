"""The client SDK's runtime. Importing this package costs nothing; import names from their own modules:

- ``config``      ``Config`` (kubeconfig, exec plugins, in-cluster), ``Impersonation``
- ``connection``  ``Client``; ``async_connection`` ``AsyncClient``; generated packages derive from both
- ``resource``    the verbs as mixins, ``Pages``, ``Watch``, ``DynamicResource``; ``async_resource`` the same, awaited
- ``calls``       ``PatchType``, ``Page``, ``Event``; every call as data
- ``errors``      what calls raise, by reason: ``NotFound``, ``Conflict``, ``ApplyConflict``, ``Invalid``, …
- ``retry``       ``RetryPolicy``, ``NO_RETRIES``
- ``reflector``   ``Change``, ``ReflectorOptions``; ``informer`` ``Informer``, ``Store``; both have ``async_`` twins
- ``local``       ``LocalApply``: apply, difference and extraction without a server
- ``discovery``   resources known only at run time
- ``lossless``    how nothing is lost that a model does not know
- ``transport``   bytes over HTTP: the one file that knows an HTTP library
"""
