"""Tables of circuits: targets and what was reached, steps of all engines, engines side by side, phases of some engines.

Figures of others are milliseconds on one H200 with 16 cores of a Xeon, published engines in double precision with their
own orderings: GLU 3.0 and SFLU refactorizations, CKTSO's refactorization and solve with 16 threads.
"""

from .tables import geomean, markdown, seconds, time, us

SOLVERS = ("auto", "supernodal", "glu", "sflu", "crisscross", "cpu_device", "cpu", "auto_host", "cudss", "klu")


def results(records):
    """Seconds by case, solver and phase."""
    found = {}
    for record in records:
        phase, case = record["phase"], found.setdefault(record["case"], {})
        error = "sequence_error" if phase == "sequence" else "backward_error"
        for solver, side, wrong in (
            (record["engine"], "ours", record["backward_error"]),
            (record["peer"], "peer", record["peer_backward_error"]),
        ):
            entry = case.setdefault(solver, {})
            values = {phase: record[f"{side}_s"], f"{phase}_wall": record[f"{side}_wall_s"], error: wrong}
            entry.update({name: value for name, value in values.items() if value is not None})
        case[record["engine"]].update(engine=record["runs"], flops=record["flops"])
    for solvers in found.values():
        solvers.pop("none", None)
    return found


def steps(found, phase):
    """A row a case: refactor and solve by each solver."""
    solvers = [solver for solver in SOLVERS if any(solver in entries for entries in found.values())]
    rows = []
    for case, entries in found.items():
        picked = entries.get("auto", entries.get("auto_host", {})).get("engine", "-")
        rows.append([case, picked, *[time(entries.get(solver, {}).get(phase)) for solver in solvers]])
    return markdown(["case", "auto runs", *solvers], rows)


def phases(found, solver):
    """A row a case: the phases of one solver and its backward error."""
    names = ("analyze", "factor", "refactor", "solve", "step", "step_wall", "sequence")
    rows = []
    for case, entries in found.items():
        if solver in entries:
            errors = [entries[solver].get(name) for name in ("backward_error", "sequence_error")]
            cells = [time(entries[solver].get(name)) for name in names]
            rows.append([case, *cells, *["-" if error is None else f"{error:.0e}" for error in errors]])
    return markdown(["case", *names, "error", "worst of sequence"], rows)


def tables(records):
    """All of them, as Markdown."""
    found = results(records)
    parts = ["## Against the targets", "\n".join(f"- {line}" for line in summary(found))]
    parts += ["## Refactor and solve on the device, host for cpu, auto_host and klu", steps(found, "step")]
    parts += ["## The same from Python, waited for", steps(found, "step_wall")]
    if any(complete(entries) for entries in found.values()):
        parts += ["## The engines side by side", side_by_side(found)]
    for solver in [name for name in ("auto", "glu", "sflu", "crisscross") if any(name in e for e in found.values())]:
        parts += [f"## Phases of {solver}", phases(found, solver)]
    return "\n\n".join(parts)


# The engines side by side, refactorization + solve, with the published codes

HEADERS = ["case", "GLU 3.0", "glu", "SFLU", "sflu", "crisscross", "blocked / unblocked", "supernodal"]
DEVICE_ENGINES = ("glu", "sflu", "crisscross", "supernodal")


def complete(entries):
    """Whether every engine was measured on a case."""
    return all("solve" in entries.get(name, {}) for name in DEVICE_ENGINES)


def published(engine, case):
    milliseconds = PUBLISHED[engine].get(case)
    return "-" if milliseconds is None else us(1e-3 * milliseconds)


def side_by_side(found):
    """Of seconds by case, solver and phase, as `circuits.results` has them; and the mean of its ratios."""
    rows, ratios = [], []
    for case, entries in found.items():
        if not complete(entries):
            continue
        cells = {name: f"{us(entries[name]['refactor'])} + {us(entries[name]['solve'])}" for name in DEVICE_ENGINES}
        ratios.append(entries["sflu"]["refactor"] / entries["crisscross"]["refactor"])
        columns = [published("glu", case), cells["glu"], published("sflu", case), cells["sflu"], cells["crisscross"]]
        rows.append([case, *columns, f"{ratios[-1]:.2f}", cells["supernodal"]])
    text = "Refactorization + solve in us, published codes: refactorization. Blocked is crisscross, unblocked sflu."
    means = f"Blocked / unblocked: {geomean(ratios):.2f} in geometric mean of {len(ratios)} cases."
    return "\n\n".join([text, markdown(HEADERS, rows), means])


# Targets of the circuit engines

CUDSS_RATIO = 4.0  # refactor and solve of auto, geometric mean
SLOWER = 1.10  # than the better of cuDSS and our CPU engine, at most
NEAR_BEST, NEAR_SHARE = 1.15, 0.9  # of the best engine of ours, on this share of the cases
CKTSO_FLOPS, CKTSO_SHARE = 1e6, 0.8  # of the cases with more flops
NEWTON_CASE, NEWTON_SECONDS = "memplus", 0.17e-3
SEQUENCE_ERROR = 1e-12
PUBLISHED_RATIO = 5.0

CKTSO_16 = {
    "add20": (0.089, 0.020),
    "memplus": (0.33, 0.10),
    "case_ACTIVSg10k_nrjac": (0.53, 0.29),
    "bayer10": (1.3, 0.37),
    "faer_matrix_n19168": (1.6, 0.67),
    "ibmpg1t_mna_tran": (2.5, 0.94),
    "ibmpg2t_mna_tran": (15.4, 3.1),
    "voter_seq": (0.25, 0.10),
    "smult20_seq": (0.93, 0.37),
    "rlc:300x300": (116, 14),
}
PUBLISHED = {
    "glu": {"add20": 1.69, "memplus": 3.7, "case_ACTIVSg10k_nrjac": 8.4, "bayer10": 30}
    | {"ibmpg1t_mna_tran": 50, "ibmpg2t_mna_tran": 93},
    "sflu": {"add20": 0.49, "memplus": 2.8, "case_ACTIVSg10k_nrjac": 3.9, "bayer10": 7.1}
    | {"ibmpg1t_mna_tran": 10.7, "ibmpg2t_mna_tran": 54},
}
ON_DEVICE = ("cpu_device", "supernodal", "glu", "sflu", "crisscross")


def summary(results):
    """A line a target, and what falls short of it.

    Parameters
    ----------
    results : dict
        By case, then by solver: seconds of phases, as `phases` measures them.
    """
    parts = (beside_cudss, never_slower, near_the_best, beside_cktso, beside_published, newton_step, sequence_errors)
    return [line for part in parts for line in part(results)]


def pairs(results, phase, left, right):
    """(case, seconds of left, of right) where both were measured."""
    for case, found in results.items():
        here, there = found.get(left, {}).get(phase), found.get(right, {}).get(phase)
        if here and there:
            yield case, here, there


def verdict(reached):
    return "reached" if reached else "MISSED"


def listed(shares):
    return ", ".join(f"{case} {share:.2f}" for case, share in shares.items())


def beside_cudss(results):
    for phase, clock in (("step", "on the device"), ("step_wall", "from Python")):
        ratios = {case: there / here for case, here, there in pairs(results, phase, "auto", "cudss")}
        if ratios:
            mean = geomean(list(ratios.values()))
            yield (
                f"auto beside cuDSS, refactor + solve {clock}: {mean:.2f}x (target {CUDSS_RATIO}): "
                f"{verdict(mean >= CUDSS_RATIO)}; {listed(ratios)}"
            )
    ratios = [there / here for _, here, there in pairs(results, "analyze", "auto", "cudss")]
    if ratios:
        yield f"auto beside cuDSS, analysis: {geomean(ratios):.2f}x"


def never_slower(results):
    for auto, cpu, phase in (("auto", "cpu_device", "step_wall"), ("auto_host", "cpu", "step_wall")):
        over = {}
        for case, found in results.items():
            here = found.get(auto, {}).get(phase)
            others = [found[peer][phase] for peer in (cpu, "cudss") if found.get(peer, {}).get(phase)]
            if here and others:
                over[case] = here / min(others)
        worse = {case: share for case, share in over.items() if share > SLOWER}
        if over:
            yield (
                f"{auto} over the better of cuDSS and {cpu}, from Python: at most {max(over.values()):.2f} "
                f"(target {SLOWER}): {verdict(not worse)}" + (f"; {listed(worse)}" if worse else "")
            )


def near_the_best(results):
    for auto, names, phase in (
        ("auto", ON_DEVICE, "step_wall"),
        ("auto_host", ("cpu", *[f"{name}_host" for name in ON_DEVICE]), "step_wall"),
    ):
        over = {}
        for case, found in results.items():
            here = found.get(auto, {}).get(phase)
            ours = [found[name][phase] for name in names if found.get(name, {}).get(phase)]
            if here and len(ours) > 1:
                over[case] = here / min(ours)
        far = {case: share for case, share in over.items() if share > NEAR_BEST}
        if over:
            share = 1 - len(far) / len(over)
            yield (
                f"{auto} within {NEAR_BEST - 1:.0%} of the best of ours: {share:.0%} of {len(over)} cases "
                f"(target {NEAR_SHARE:.0%}): {verdict(share >= NEAR_SHARE)}" + (f"; {listed(far)}" if far else "")
            )


def beside_cktso(results):
    for phase in ("step", "step_wall"):
        ratios = {}
        for case, figures in CKTSO_16.items():
            found = results.get(case, {}).get("auto", {})
            if found.get(phase) and found.get("flops", 0) > CKTSO_FLOPS:
                ratios[case] = 1e-3 * sum(figures) / found[phase]
        if ratios:
            share = sum(ratio > 1 for ratio in ratios.values()) / len(ratios)
            yield (
                f"auto beside CKTSO with 16 threads ({phase}, above {CKTSO_FLOPS:g} flop): faster on {share:.0%} "
                f"(target {CKTSO_SHARE:.0%}): {verdict(share >= CKTSO_SHARE)}; {listed(ratios)}"
            )


def beside_published(results):
    for engine, figures in PUBLISHED.items():
        ratios = {}
        for case, figure in figures.items():
            here = results.get(case, {}).get(engine, {}).get("refactor")
            if here:
                ratios[case] = 1e-3 * figure / here
        if ratios:
            least = min(ratios.values())
            yield (
                f"{engine} beside its published form, refactor: at least {least:.2f}x (target {PUBLISHED_RATIO}): "
                f"{verdict(least >= PUBLISHED_RATIO)}; {listed(ratios)}"
            )


def newton_step(results):
    here = results.get(NEWTON_CASE, {}).get("auto", {}).get("step_wall")
    if here:
        yield (
            f"a Newton step of {NEWTON_CASE} from Python: {seconds(here)} (target {seconds(NEWTON_SECONDS)}): "
            f"{verdict(here <= NEWTON_SECONDS)}"
        )


def sequence_errors(results):
    worst = {
        f"{case} {solver}": found["sequence_error"]
        for case, solvers in results.items()
        for solver, found in solvers.items()
        if "sequence_error" in found
    }
    ours = {name: error for name, error in worst.items() if not name.endswith("cudss")}
    if ours:
        largest = max(ours, key=ours.get)
        yield (
            f"sequences, worst backward error of a step: {ours[largest]:.1e} of {largest} (target {SEQUENCE_ERROR}): "
            f"{verdict(ours[largest] <= SEQUENCE_ERROR)}"
        )
