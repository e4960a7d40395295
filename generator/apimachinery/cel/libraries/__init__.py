"""The function libraries, a file each, and their declarations; ``environment`` says which release has which."""
