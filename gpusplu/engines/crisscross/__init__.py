"""The crisscross engine: synchronization-free columns, and a dense trailing block."""
