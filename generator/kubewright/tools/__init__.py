"""The sub-commands, as `kubewright --help` lists them: small ones a file, large ones a folder with command.py."""
