"""The CPU engine: column LU and fronts of the core."""
