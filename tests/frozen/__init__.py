"""Records of what a change of structure must not change: bits of results, errors and warnings, calls, signatures.

``python -m tests.frozen --check`` compares what this checkout does with the files in records, and prints what differs.
``python -m tests.frozen --write`` replaces the files. Names of parts limit both: bits, device, errors, calls, signatures.

bits
    Hashes of solutions, factors, permutations and determinants of the CPU engine, with 1 and with 2 threads. A file per
    instruction set: of the one that `gpusplu doctor` names. For another one build with ``GPUSPLU_LEVELS=v3`` and write
    again.
device
    The same of the GPU engines whose bits repeat, in the emulator.
errors
    What wrong and unusual calls raise, warn and return.
calls
    The most Python functions of gpusplu that a call may run. Fewer are no difference.
signatures
    Parameters of every public name.

Bits depend on the compiler, and texts on the versions of Python, NumPy and SciPy: a file says which they were, and with
others `--check` reports that it compared nothing.
"""
