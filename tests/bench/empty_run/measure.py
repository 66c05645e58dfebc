# SPDX-License-Identifier: Apache-2.0
"""An empty cadre_run by hand, beside the bare hand-over between as many threads."""
from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "an empty cadre_run on 1, 2 and 4 replicas of one process, us"
ROW = "empty run"
BLOCKS = amount.of("11", "1")


def run_round(samples):
    samples.measure(ROW, "", lambda: programs.figures(programs.run(programs.program("bench_empty_run"), BLOCKS)))


def report(samples):
    def figure(name):
        return samples.median(ROW, "", name)

    rows = []
    for replicas in (1, 2, 4):
        took = figure(f"run_{replicas}_us")
        futex, spin = figure(f"futex_{max(replicas, 2)}_us"), figure(f"spin_{max(replicas, 2)}_us")
        rows.append([f"{replicas}", shown(took), shown(futex), shown(took / futex) if took and futex else "-",
                     shown(spin) if spin else "-", shown(took / spin) if took and spin else "-"])
    print_table(["replicas", "cadre_run", "futex", "times (goal 2)", "spin", "times"], rows)
    print(f"  others {percent(samples.disturbed(ROW))}; of one replica: beside a hand-over between 2 threads; "
          "no spin where there are fewer CPUs than threads")
