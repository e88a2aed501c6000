"""The command line, run in this process."""

from gpusplu.cli import main


def failure(capsys, *arguments):
    """Run a command that must fail, and return its one-line message."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err
