"""Manifests judged offline, as a kube-apiserver of a chosen release would judge them.

Theory. A file is cut into documents (``inputs``), cheaply and without positions; a document is decoded, its kind
looked up (``kinds``), and judged in the order of a create: decode, unknown fields, defaults, metadata, the kind's
own rules or the CRD's (``check``). Unlike a server nothing stops at the first fault: values of a wrong type are
all told (``typed``), then taken out, so that the rules can speak of the rest; what they say of the places taken
out, or of what those are in, is dropped, for it may be their consequence. Only a document with faults is read
again for its lines (``places``). Documents are judged in several processes where there are many (``run``).
"""
