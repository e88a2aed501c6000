"""The glu engine: column-based right-looking LU, level by level."""
