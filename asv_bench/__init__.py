"""Measurements of gpusplu: suites make records, peers are other solvers, reports make pages from records.

python -m asv_bench list
python -m asv_bench run SUITE --out records.jsonl
python -m asv_bench report [SUITE ...]
"""
