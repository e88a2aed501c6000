"""Tables of sflu_variants.py from its records, for docs/engines.md.

    python asv_bench/device/sflu_report.py [--into docs/engines.md] asv_bench/records/sflu/*.jsonl

Of several records of the same case and variant the last counts. With --into, what stands between the marks
``<!-- sflu: begin -->`` and ``<!-- sflu: end -->`` is replaced; else the text is printed.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from common import geomean
from pages import by_variant, deliver, markdown, origin, records_of

BEGIN, END = "<!-- sflu: begin -->", "<!-- sflu: end -->"
HEADERS = {
    "groups": "waiting",
    "levels": "by levels",
    "columns": "columns alone, waiting",
    "columns_levels": "columns alone, by levels",
    "warps": "a warp a column",
}


def compared(found, pairs):
    """A row a case: refactorization and solve of each of `pairs`, and the ratios; geometric means below."""
    header, rows, ratios = ["case"], [], []
    for left, right in pairs:
        header += [HEADERS[left], HEADERS[right], "ratio"]
    for case, variants in found.items():
        row, ratio = [case], []
        for pair in pairs:
            both = [variants.get(name) for name in pair]
            row += [f"{1e6 * r['refactor_s']:,.0f} + {1e6 * r['solve_s']:,.0f}" if r else "-" for r in both]
            of_phases = [both[1][phase] / both[0][phase] for phase in ("refactor_s", "solve_s")] if all(both) else []
            row.append(" + ".join(f"{value:.2f}" for value in of_phases) or "-")
            ratio.append(of_phases)
        rows.append(row)
        ratios.append(ratio)
    last = ["geometric mean"]
    for number in range(len(pairs)):
        of_cases = [ratio[number] for ratio in ratios if ratio[number]]
        last += ["", "", " + ".join(f"{geomean(phase):.2f}" for phase in zip(*of_cases, strict=True))]
    return markdown(header, [*rows, last])


def text(paths):
    """Both tables as Markdown."""
    records = records_of(paths)
    found = by_variant(records)
    variants = {name for case in found.values() for name in case}
    parts = [origin(records)]
    if "levels" in variants:
        parts.append(compared(found, [("groups", "levels"), ("columns", "columns_levels")]))
    split = {case: entries for case, entries in found.items() if not entries.get("warps", {"same": True})["same"]}
    if split:
        parts.append("A block for long columns against a warp; other cases have none:")
        parts.append(compared(split, [("groups", "warps")]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    deliver(text, BEGIN, END, __doc__.splitlines()[0])
