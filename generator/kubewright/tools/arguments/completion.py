"""The options of ``kubewright completion``."""

from __future__ import annotations

import argparse

EXAMPLES = r"""
kubewright completion bash > ~/.local/share/bash-completion/completions/kubewright
kubewright completion fish > ~/.config/fish/completions/kubewright.fish
"""


SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="shell to complete for")
