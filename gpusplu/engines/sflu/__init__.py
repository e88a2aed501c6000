"""The sflu engine: synchronization-free left-looking LU."""
