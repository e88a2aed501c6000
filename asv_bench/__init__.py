"""Measurements of gpusplu: suites that make records, peers to measure beside, reports that make pages of records.

python -m asv_bench list
python -m asv_bench run SUITE --out records.jsonl
python -m asv_bench report [SUITE ...]
"""
