"""``python reader.py SOURCE TARGET``: a Matrix Market file as arrays in an .npz file, in a separate process.

SciPy's reader can crash on a damaged file; here that ends nothing else. Run as a script and without gpusplu, to start
quickly. What is wrong with the file is the last line of standard error.
"""

import gzip
import sys
import warnings
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp


def read(source: str) -> Any:
    """The matrix, sparse or dense; by an open file, because the reader's own opening takes names in UTF-8 only."""
    with open(source, "rb") as raw, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # of the class that mmread returns, SciPy 1.18
        return scipy.io.mmread(gzip.GzipFile(fileobj=raw) if source.lower().endswith(".gz") else raw)


def main(source: str, target: str) -> int:
    """Read one file and write the other."""
    try:
        A = read(source)
        arrays = dict(zip(("data", "row", "col"), (A.data, *A.coords), strict=True)) if sp.issparse(A) else {"data": A}
        np.savez(target, shape=np.array(A.shape, np.int64), **arrays)
    except Exception as error:  # readers raise whatever their parsing of a damaged file runs into
        print(" ".join(str(error).split()) or type(error).__name__, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
