"""Which commands are there, and how does each end? The typer application, its errors and its exit codes.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. An error that can be expected is told in a sentence.
"""

import os
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from client.cli import (
    catalogue,
    checkpoint,
    compare,
    data,
    demo,
    difference,
    doctor,
    equivalence,
    listing,
    showing,
    stack,
    steering,
    submit,
    tidying,
)
from client.cli.asking import Address
from client.cli.ending import FAILED, WRONG_USAGE
from client.cli.output import complain
from client.errors import RotBenchError


class Commands(TyperGroup):
    """A group that tells expected errors in a sentence; the commands raise them as they come."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and turn what went wrong into words and an exit code."""
        try:
            return super().invoke(ctx)
        except RotBenchError as error:
            complain(error.detail, error.remedy)
            raise typer.Exit(WRONG_USAGE if error.status == 422 else FAILED) from error
        except BrokenPipeError:
            _leave_pipe()
        except OSError as error:
            complain(f"{error.filename or 'a file'}: {error.strerror or error}")
            raise typer.Exit(FAILED) from error

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order in which people meet them."""
        return list(self.commands)


app = typer.Typer(
    cls=Commands,
    name="rotbench",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


@app.callback()
def options(
    context: typer.Context,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="The API; else ROTBENCH_URL.")] = None,
    token: Annotated[
        str | None, typer.Option("--token", metavar="TEXT", help="Its token; else ROTBENCH_TOKEN.")
    ] = None,
) -> None:
    """Compare linear recurrent networks: submit trainings, watch them, read what they measured."""
    context.obj = Address(url, token)


for module in (
    *(stack, demo, submit, listing, showing, steering, compare, difference),
    *(equivalence, checkpoint, catalogue, data, tidying, doctor),
):
    module.register(app)


def main() -> NoReturn:
    """Run the command line and exit."""
    app(prog_name="rotbench")
    sys.exit(0)


def _leave_pipe() -> NoReturn:
    """The reader went away, as `head` does: nothing to say, and nothing more to write."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(FAILED)
