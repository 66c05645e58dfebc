# SPDX-License-Identifier: Apache-2.0
"""What it costs a job under daemons to report numbers at each step: steps of 1 ms, and steps that do nothing."""
from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "a step with reports beside the same step without"
STEPS = amount.of({1000: 3000, 0: 20000}, {1000: 50, 0: 200})  # by microseconds of work in a step
REPORTS = (0, 1, 16)


def train(cluster, busy_us, reports):
    done = cluster.cadre("submit", "--replicas", "1", programs.program("bench_reporting"), "--", str(STEPS[busy_us]),
                         str(busy_us), str(reports))
    return programs.figures(done.stdout.decode())


def run_round(samples):
    from cluster import Cluster
    with Cluster(workers=1, slots=1) as cluster:
        for busy_us in STEPS:
            for reports in REPORTS:
                samples.measure(f"{reports} reports", busy_us, lambda b=busy_us, r=reports: train(cluster, b, r))


def report(samples):
    rows = []
    for busy_us in STEPS:
        for reports in REPORTS:
            row = f"{reports} reports"
            ratio = samples.ratio(row, "0 reports", busy_us, "steps_per_s")
            rows.append([f"{busy_us} us", row, shown(samples.median(row, busy_us, "steps_per_s")),
                         "-" if ratio is None else f"{ratio:.3f}", shown(samples.median(row, busy_us, "report_ns")),
                         percent(samples.disturbed(row))])
    print_table(["work of a step", "", "steps/s", "ratio", "ns a report", "others"], rows)
