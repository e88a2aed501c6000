"""CUDA kernels and what compiles, caches and launches them; nothing here is imported before a GPU engine is used."""
