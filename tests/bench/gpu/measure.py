# SPDX-License-Identifier: Apache-2.0
"""Steps, batches and an all-reduce on one GPU, beside bare CUDA and NCCL."""
import os
import subprocess

from driver import programs
from driver.samples import print_table, shown

TITLE = "one GPU, beside bare CUDA and NCCL"
ROW = "gpu"
NOT_MEASURED = 77


def absent():
    """Why nothing can be measured here; None when it can."""
    path = programs.program("bench_gpu")
    if not os.path.exists(path):
        return "no CUDA Toolkit was found when this was built"
    probe = subprocess.run([path, "--probe"], capture_output=True, text=True, timeout=60, check=False)
    return probe.stderr.strip() if probe.returncode == NOT_MEASURED else None


def run_round(samples):
    reason = absent()
    if reason:
        samples.mark_absent(ROW, f"{reason}: not measured")
        return
    samples.measure(ROW, "", lambda: programs.figures(programs.run(programs.program("bench_gpu"), timeout_s=600)))


def report(samples):
    if ROW in samples.absent:
        return

    def row(text, name, base, goal):
        value, floor = samples.median(ROW, "", name), samples.median(ROW, "", base)
        ratio = value / floor if value and floor else None
        return [text, shown(value), shown(floor), shown(ratio) if ratio else "-", goal]

    rows = [row(f"step of {size} kernels, us", f"step_{size}_cadre_us", f"step_{size}_bare_us", "1.01, or 20 us more")
            for size in ("small", "middle", "large")]
    rows += [row(f"the same, beside a wait a step ({size})", f"step_{size}_cadre_us", f"step_{size}_waiting_us", "")
             for size in ("small", "middle", "large")]
    rows += [row(f"steps with new batches, {size} batches, us", f"feed_{size}_new_us", f"feed_{size}_again_us", "1.02")
             for size in ("small", "large")]
    rows.append(row("host to device, 64 MiB, GB/s", "copy_cadre_gbs", "copy_bare_gbs", "0.9"))
    rows.append(row("all-reduce of 64 MiB, 1 rank, us", "carry_cadre_us", "carry_bare_us", "1.02"))
    print_table(["", "Cadre", "bare", "times", "goal"], rows)
