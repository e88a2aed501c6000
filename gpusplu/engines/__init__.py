"""Engines: orchestration, no arithmetic. The CPU engine is the core's own factor."""
