"""The runtime that generated code, the server and the client stand on: a folder for each subject."""
