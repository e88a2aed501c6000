"""Tables of the variants of sflu, microseconds of refactorization + solve."""

from .tables import by_variant, geomean, markdown, us

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
            row += [f"{us(r['refactor_s'])} + {us(r['solve_s'])}" if r else "-" for r in both]
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


def tables(records):
    """Waiting against levels, and a block for long columns against a warp."""
    found = by_variant(records)
    variants = {name for case in found.values() for name in case}
    parts = ["Refactorization + solve in us, replays of the graphs."]
    if "levels" in variants:
        parts.append(compared(found, [("groups", "levels"), ("columns", "columns_levels")]))
    split = {case: entries for case, entries in found.items() if not entries.get("warps", {"same": True})["same"]}
    if split:
        parts += ["## A block for long columns against a warp", "Other cases have none."]
        parts.append(compared(split, [("groups", "warps")]))
    return "\n\n".join(parts)
