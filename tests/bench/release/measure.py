# SPDX-License-Identifier: Apache-2.0
"""One release to many streams: from the last arrival until the first and the last of them have it."""
import signal
import subprocess

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "one release to many streams, microseconds after the last arrival: the first has it, the last has it"
STREAMS = amount.of({100: 50, 1000: 20, 5000: 7}, {10: 3})
FLOOR, CADRE = "TCP + epoll (floor)", "cadre"


def floor(streams, rounds):
    return programs.figures(programs.run(programs.program("bench_floor_release"), str(streams), str(rounds)))


def cadre(streams, rounds):
    from cluster import Cluster
    limits = ["--workers-max", str(streams), "--tasks-max", str(streams), "--lease", "300s", "--form-timeout", "300s"]
    with Cluster(workers=0, coordinator=limits) as cluster:
        argv = [programs.program("bench_release_agents"), cluster.address, str(streams), str(rounds)]
        agents = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            if agents.stdout.readline().strip() == "ready":
                cluster.cadre("submit", "--detach", "--workers", str(streams), "/bin/true")
            text, errors = agents.communicate(timeout=amount.deadline_s(200))
        finally:
            agents.kill()
            agents.wait()
        if agents.returncode != 0:
            raise RuntimeError(errors.strip()[-500:])
        # The job's tasks never existed: an orderly end of the daemon would wait for them.
        cluster.coordinator.process.send_signal(signal.SIGKILL)
        cluster.coordinator.process.wait()
        cluster.sweep()
    return programs.figures(text)


def run_round(samples):
    for streams, rounds in STREAMS.items():
        for row, function in ((FLOOR, floor), (CADRE, cadre)):
            samples.measure(row, streams, lambda f=function, n=streams, r=rounds: f(n, r))


def report(samples):
    def cell(row, streams):
        return " / ".join(shown(samples.median(row, streams, name)) for name in ("first_us", "last_us"))

    def ratio(streams):
        return " / ".join(shown(samples.ratio(CADRE, FLOOR, streams, name)) for name in ("first_us", "last_us"))

    print_table(["", *(f"{n} streams" for n in STREAMS), "others"],
                [[row, *(cell(row, n) for n in STREAMS), percent(samples.disturbed(row))] for row in (FLOOR, CADRE)]
                + [["ratio", *(ratio(n) for n in STREAMS), ""]])
