"""Made-up rows of the tables on erasing and patching, for one trained model."""

import numpy as np


def erasures(run, who):
    """Rows (table, values) of `erasures` and `inlp` at the training length of the made-up `run`."""
    task, architecture, _, seed = who
    length, d = run.lengths[0], run.width
    base, clean = run.base(task, length), run.accuracy(task, architecture, seed, length)
    depth = run.shape(task, architecture, seed)
    ranks = run.states(task) - 1
    steps = [k for k in range(0, d // 2 + 1, ranks) if k <= 6 * ranks]
    for site, r in enumerate(depth):
        top = base + (1 - base) * r
        for eraser, k, draw, probe, task_accuracy in [
            *(("inlp", k, 0, _fall(top, base, k / ranks), _fall(clean, base, (k / ranks - 1) * r)) for k in steps),
            *(("random", k, j, top - 0.002 * k, clean - 0.004 * k * (1 + j)) for k in steps[1:] for j in range(3)),
            ("leace", ranks, 0, base, _fall(clean, base, 2 * r)),
        ]:
            for half in ("both", "measurement", "selection"):
                row = (*who, length, site, eraser, k, draw, half)
                yield "erasures", (*row, "accuracy", task_accuracy, 2000, task_accuracy - 0.01, task_accuracy + 0.01)
                if eraser != "random" or draw == 0:
                    yield "erasures", (*row, "probe_accuracy", probe, 2000, probe - 0.01, probe + 0.01)
    excess = {site: (clean - base) * min(1, 0.3 * site) * (0.9 - 0.2 * seed) * r**0.3 for site, r in enumerate(depth)}
    excess[2] = 0.8 * (clean - base)
    for site in range(1, len(depth)):
        yield "inlp", _inlp(who, length, site, "excess_damage", excess[site])
    yield "inlp", _inlp(who, length, -1, "final_excess_damage", excess[max(excess)])
    yield "inlp", _inlp(who, length, -1, "largest_minus_best_probe", max(excess.values()) - excess[max(excess)])


def _inlp(who, length, site, metric, value):
    return (*who, who[1], length, site, metric, value, 2000, value - 0.03, value + 0.03)


def _fall(start, end, steps):
    return end + (start - end) * float(np.exp(-max(steps, 0) / 1.5))


def patches(run, who):
    """Rows of `patches`: recovery by site, direction and read-out, and the best earlier site."""
    task, architecture, _, seed = who
    length, last = run.lengths[0], len(run.shape(task, architecture, seed)) - 1
    for direction, less in (("denoise", 0.0), ("noise", 0.08)):
        for site in range(last + 1):
            patched = site / last
            later = 0.0 if site in (0, last) else max(0, 1 - 0.3 * (site - 1) - 0.05 * seed - less)
            status = "by construction" if site in (0, last) else "evidence"
            for read, value in (("patched", patched), ("later", later)):
                for half in ("both", "measurement", "selection"):
                    row = (*who, architecture, length, site, direction, read, half, status, "recovery")
                    yield "patches", (*row, value, 256, value - 0.02, value + 0.02)
        row = (*who, architecture, length, -1, direction, "later", "measurement", "evidence")
        yield "patches", (*row, "best_earlier_recovery", 1 - less, 128, 0.9 - less, 1.0)
        yield "patches", (*row, "best_earlier_site", 1.0, 128, np.nan, np.nan)
