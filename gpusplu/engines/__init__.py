"""Engines: a folder each, behind the interface of interface.py; registry.py knows their names."""
