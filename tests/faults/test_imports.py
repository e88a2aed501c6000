"""Imports interrupted by a signal, made in a subinterpreter, or repeated: the next import works."""

import sys

import pytest

from support.processes import run

# Forks a child for each of the moments of an import in which a handler shall raise, as the profiler of Python counts
# them, and prints how many moments there are. What is imported again must work.
SWEEP = """
import faulthandler, os, signal, sys, traceback
import numpy as np, scipy.sparse.linalg
from gpusplu_imports import begin, check


class Interrupt(BaseException):
    pass


def interrupt(*_):
    raise Interrupt


class Moments:
    def __init__(self, last):
        self.count, self.last, self.core = 0, last, []

    def __call__(self, frame, event, argument):
        self.count += 1
        if event.startswith("c_") and argument.__name__ == "exec_dynamic":
            self.core.append(self.count)
        # No handler of a signal runs between the body of a with statement and the end of the call of __exit__, which
        # frees a lock.
        leaves = event == "c_call" and argument.__name__ == "__exit__"
        if 0 < self.last <= self.count and not leaves:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGUSR1)


def child(last):
    faulthandler.dump_traceback_later(60, exit=True)
    signal.signal(signal.SIGUSR1, interrupt)
    moments = Moments(last)
    sys.setprofile(moments)
    try:
        begin()
    except Interrupt:
        pass
    except RuntimeError as error:  # Python 3.11 raises it in place of what __set_name__ raises
        if not isinstance(error.__cause__, Interrupt):
            raise
    sys.setprofile(None)
    check()
    return moments


def of_child(last):
    reading, writing = os.pipe()
    number = os.fork()
    if number == 0:
        status = 1
        try:
            moments = child(last)
            os.write(writing, repr((moments.count, moments.core)).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    told = os.read(reading, 1 << 16)
    os.close(reading)
    assert os.waitpid(number, 0)[1] == 0, last
    return eval(told)


count, core = of_child(-1)
near = {moment + k for moment in core for k in range(-1, 6)}
for moment in sorted(near | set(range(1, count, max(1, count // 10)))):
    of_child(moment)
print(count)
"""

SOLVE = """
def check():
    import gpusplu as gs
    from gpusplu import gallery
    A = gallery.poisson(4, 4)
    assert np.allclose(A @ gs.spsolve(A, np.ones(16)), 1)
    assert np.allclose(A @ gs.cholesky(A).solve(np.ones(16)), 1)
"""


def sweep(begin):
    """The sweep with functions `begin` and `check` in the place of the import of them."""
    return int(run(SWEEP.replace("from gpusplu_imports import begin, check\n", begin + SOLVE)))


def test_a_handler_that_raises_in_the_first_import():
    assert sweep("def begin(): import gpusplu\n") > 100


def test_a_handler_that_raises_in_what_is_imported_when_it_is_used():
    begin = """
import gpusplu as gs
from gpusplu import gallery
A = gallery.poisson(4, 4)
def begin():
    gs.spsolve(A, np.ones(16))
    gs.splu_batch(A, A.data[None]).solve(np.ones(16))
    gs.install()
    scipy.sparse.linalg.splu(A)
"""
    assert sweep(begin) > 100


def test_a_handler_that_raises_while_numpy_is_imported_by_us():
    """NumPy cannot be imported again when the first import of it was interrupted."""
    answer = run(
        """
        import os, signal, sys

        import gpusplu as gs


        class Interrupt(BaseException):
            pass


        def interrupt(*_):
            raise Interrupt


        def moments(frame, event, argument):
            if event == "call" and frame.f_code.co_filename.endswith(os.path.join("numpy", "lib", "__init__.py")):
                sys.setprofile(None)
                signal.raise_signal(signal.SIGUSR1)


        signal.signal(signal.SIGUSR1, interrupt)
        sys.setprofile(moments)
        try:
            gs.spsolve
        except Interrupt:
            print("interrupted")
        print(gs.spsolve(gs.gallery.poisson(4, 4), [1.0] * 16).shape)
        """
    )
    assert answer == "interrupted\n(16,)\n"


def test_a_handler_uses_what_the_import_that_it_interrupts_is_about():
    answer = run(
        """
        import signal, sys

        import numpy as np
        import gpusplu as gs

        A, told = gs.gallery.poisson(4, 4), []


        def handler(*_):
            told.append(gs.spsolve(A, np.ones(16)))


        def moments(frame, event, argument):
            if event == "call" and frame.f_code.co_filename.endswith("linalg.py"):
                sys.setprofile(None)
                signal.raise_signal(signal.SIGUSR1)


        signal.signal(signal.SIGUSR1, handler)
        sys.setprofile(moments)
        solve = gs.spsolve
        assert np.allclose(told, [solve(A, np.ones(16))])
        print(signal.getsignal(signal.SIGUSR1) is handler)
        signal.raise_signal(signal.SIGUSR1)
        print(len(told))
        """
    )
    assert answer.split() == ["True", "2"]


def test_another_import_gives_the_same_objects():
    run(
        """
        import sys

        import numpy as np
        import gpusplu as gs
        from gpusplu import _core

        A = gs.gallery.poisson(4, 4)
        lu = gs.splu(A)
        for name in [name for name in sys.modules if name.partition(".")[0] == "gpusplu"]:
            del sys.modules[name]
        import gpusplu

        assert gpusplu._core is not _core and gpusplu._core.Symbolic is _core.Symbolic
        assert gpusplu._core.__doc__ == _core.__doc__ and gpusplu._core.__spec__ is not _core.__spec__
        assert np.allclose(A @ gpusplu.splu(A).solve(np.ones(16)), 1)
        assert np.allclose(A @ lu.solve(np.ones(16)), 1)
        """
    )


MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"

IN_ANOTHER = """
import sys
sys.path[:] = {path!r}
for _ in range(2):
    try:
        import gpusplu
    except ImportError as error:
        print("subinterpreters" in str(error), flush=True)
"""

BOTH = """
import sys
import interpreters


def create():
    if sys.version_info >= (3, 13):
        return interpreters.create("isolated" if isolated else "legacy")
    return interpreters.create(isolated=isolated)


def solve():
    import numpy as np
    import gpusplu as gs
    A = gs.gallery.poisson(4, 4)
    assert np.allclose(A @ gs.splu(A, engine="cpu").solve(np.ones(16)), 1)


if first == "main":
    solve()
for _ in range(2):
    other = create()
    assert interpreters.run_string(other, source.format(path=sys.path)) is None
    solve()
    interpreters.destroy(other)
    solve()
"""


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("first", ["main", "another"])
def test_an_import_in_a_subinterpreter_fails_and_breaks_nothing(first, isolated):
    pytest.importorskip(MODULE)
    given = f"isolated, first, source = {isolated}, {first!r}, {IN_ANOTHER!r}"
    answer = run(given + BOTH.replace("import interpreters", f"import {MODULE} as interpreters"))
    assert answer.split() == ["True"] * 4
