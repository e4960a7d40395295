"""CEL values and types in Python, the errors that evaluation raises, and the limits on ranges and recursion."""
