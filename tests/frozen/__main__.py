"""``python -m tests.frozen --check | --write [PART ...]``; the package's docstring says what the parts are."""

import argparse
import os
import sys
import tempfile

PARTS = ("bits", "device", "errors", "calls", "signatures")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.frozen")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="print what differs; 1 if anything does")
    what.add_argument("--write", action="store_true", help="replace the records")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    chosen = parser.parse_args()
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GPUSPLU_CACHE_DIR"] = folder  # constants fitted to this machine would change choices
        from . import records

        results = [records.run(part, chosen.write) for part in chosen.parts or PARTS]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
