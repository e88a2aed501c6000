"""Engines: orchestration, no arithmetic."""
