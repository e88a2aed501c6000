"""Engines: one folder each, behind the interface of interface.py; registry.py lists them by name."""
