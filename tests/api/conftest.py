"""What tests of what users hold share."""

from support import asv_bench_package  # noqa: F401 (before tests import asv_bench)
