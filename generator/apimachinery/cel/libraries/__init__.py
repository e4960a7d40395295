"""The function libraries, a file each, and their declarations (overloads by name); ``environment`` says which release has which."""
