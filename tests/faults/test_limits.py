"""A limit on the address space (RLIMIT_AS), as containers set one: a MemoryError or the right answer."""

from support.processes import run

SWEEP = """
import os, resource
import numpy as np
from faults.forking import solves
from gpusplu import cholesky, gallery, splu

A = gallery.named({name!r})
b = np.ones(A.shape[0])
def size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
def work():
    lu = splu(A)
    lu.refactor(2 * A.data)
    x, y = lu.solve(b), cholesky(A).solve(b)
    assert abs(A @ y - b).max() < 1e-8 * abs(A).max() * abs(y).max()
    assert abs(2 * x - y).max() < 1e-8 * abs(y).max()
def child(room):
    resource.setrlimit(resource.RLIMIT_AS, (size() + room, resource.RLIM_INFINITY))
    try:
        work()
        return 0
    except MemoryError:
        return 1
counts = [0, 0]
for room in range(0, {most} << 20, {most} << 16):
    pid = os.fork()
    if pid == 0:
        try:
            answer = child(room)
        except BaseException as error:
            os.write(2, repr(error).encode())
            answer = 2
        os._exit(answer)
    _, status = os.waitpid(pid, 0)
    assert os.WIFEXITED(status), (room, status)
    counts[os.WEXITSTATUS(status)] += 1
print(*counts)
"""


def test_rooms_of_all_sizes():
    """Threads of the child are its first, and their stacks count too: where they find no room the work goes on."""
    for name, most in (("elast:8x8x8", 80), ("poisson:90x90", 40)):
        counts = run(SWEEP.format(name=name, most=most), timeout=300, GPUSPLU_NUM_THREADS="4")
        done, refused = map(int, counts.split())
        assert done and refused, (done, refused)
