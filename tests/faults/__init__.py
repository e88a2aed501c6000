"""What breaks from outside: processes, threads and memory taken away, mutated pickles and files.

By hand: ``python -m tests.faults --minutes 60``.
"""
