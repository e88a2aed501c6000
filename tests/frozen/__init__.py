"""Records of behaviour that a change of structure must not change.

``python -m tests.frozen --check`` runs the recorded cases, compares the results with the files in `records`, and prints
the differences. ``python -m tests.frozen --write`` replaces the files; review their diff. Both take names of parts:

bits
    Hashes of solutions, factors, permutations and determinants of the CPU engine, with 1 and with 2 threads. One file
    per instruction set. For another one than the best of this machine, build with ``GPUSPLU_LEVELS=v3``, for example,
    and write again.
device
    The same for the GPU engines whose bits repeat, in the emulator.
errors
    What wrong and unusual calls raise, warn and return.
calls
    How many Python functions of gpusplu a call runs at most. Fewer are not a difference.
signatures
    Parameters of every public name.

Bits depend on the compiler, and texts on the versions of Python, NumPy and SciPy. Each file names the ones that it was
made with; with others, `--check` compares nothing and says so.
"""
