"""The commands of `regard`; each one short, and torch imported only by those that need it."""

from typing import Annotated

import typer

from regard import __version__

commands = typer.Typer(
    name="regard",
    help="Every attention mechanism in one call: fast, open to look into, and put to the test.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a plain traceback is what a bug report needs
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    commands()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@commands.callback()
def _regard(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The options that stand before a command."""


@commands.command()
def demo(seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0) -> None:
    """A layer learns where to look, in seconds, and shows it."""
    import torch

    from regard.demo import run

    torch.set_num_threads(1)  # its tensors are tiny: threads would wait for each other, and change the last digits
    run(seed)


@commands.command()
def env(json: Annotated[bool, typer.Option("--json", help="For machines.")] = False) -> None:
    """Print what a bug report needs: versions, devices, threads."""
    from regard.environment import as_json, as_text, describe

    facts = describe()
    typer.echo(as_json(facts) if json else as_text(facts))
