"""What the circuit engines should reach, and a summary of measurements against it.

Figures of others are milliseconds on one H200 with 16 cores of a Xeon, published engines in double precision with their
own orderings: GLU 3.0 and SFLU refactorizations, CKTSO's refactorization and solve with 16 threads.
"""

from .tables import geomean, seconds

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
