"""What generated defaults, validation and conversions stand on: small functions over plain JSON values.

``fields`` reaches into a value and never fails on one of another shape; ``predicates`` are the tests of
conditions; ``checks`` refuse bad values in kube-apiserver's words.
"""
