"""Tests that take away what a process relies on: threads, memory, the process itself."""
