"""What a schema means for an object: interface is the contract; custom and builtin compile it."""
