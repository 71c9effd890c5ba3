"""Compare mamba-ssm's kernels with plain PyTorch, and refuse to go on where they differ. Cost: a minute."""

import json

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import kernel_check
    from stateatlas.loop import use_device

    use_device(run.device, run.cfg["threads"])
    rows = list(kernel_check.differences(run.device))
    run.output.report.write_text(json.dumps(rows, indent=1) + "\n")
    kernel_check.check(rows)
