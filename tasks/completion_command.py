"""Print a script that completes commands and options in your shell.

examples:
  palimpsest completion bash > ~/.local/share/bash-completion/completions/palimpsest
  palimpsest completion zsh > ~/.zfunc/_palimpsest
"""

import argparse
from importlib import import_module
from typing import Annotated, Literal

from tasks.options import Argument, Command, Options

SUMMARY = "print a script that completes commands and options in your shell"


class CompletionOptions(Options):
    """Options of the command."""

    shell: Annotated[Literal["bash", "zsh", "tcsh"], Argument(positional=True)]
    """shell that reads the script"""


def run(options: CompletionOptions) -> None:
    """Print the script."""
    import shtab

    from tasks.cli import command_parser, grouped_commands

    parser = argparse.ArgumentParser("palimpsest")
    commands = parser.add_subparsers()
    for modules in grouped_commands().values():
        for name, place in modules.items():
            module = import_module(place)
            commands.add_parser(name, parents=[command_parser(name, module)], add_help=False, help=module.SUMMARY)
    # Bash completes the names of files where the script has nothing.
    print(shtab.complete(parser, options.shell).replace("complete -o bashdefault", "complete -o default"))


COMMAND = Command(CompletionOptions, run)
