"""The operator of examples/operator written with other libraries, to be counted and tried beside it."""
