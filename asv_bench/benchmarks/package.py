"""What every program that uses the package pays, and the generators of the gallery."""

import subprocess
import sys

from gpusplu import gallery


class Import:
    """A fresh interpreter; subtract the time with SciPy alone."""

    params = ("import gpusplu", "import scipy.sparse.linalg")
    param_names = ("statement",)
    timeout = 30

    def time_import(self, statement):
        subprocess.run([sys.executable, "-c", statement], check=True)


class Gallery:
    params = ("circuit:100x100", "convdiff:30", "elast:16x16x16", "poisson:40x40x40", "power:150x150", "rlc:150x150")
    param_names = ("name",)

    def time_named(self, name):
        gallery.named(name)
