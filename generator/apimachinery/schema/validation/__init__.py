"""Validation of values against schemas.

``check``     the fast pass: is the value valid, yes or no
``explain``   the slow pass: every fault, in kube-apiserver's order and words
``faults``    one fault as the explaining pass holds it, and its translation to a field error
``numbers`` ``formats``  the rules of single values
``lists``     sets and keyed lists
``embedded``  embedded resources: their apiVersion, kind and metadata
``ratcheting``  which old value belongs to which new one
"""
