"""``python -m gpusplu``, and the command ``gpusplu``."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; Ctrl-C while it is imported, which takes half a second, ends it as quietly as later."""
    try:
        from .cli import main as run

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
