"""What breaks from outside: mutated pickles and mutated files. By hand: ``python -m tests.faults --minutes 60``."""
