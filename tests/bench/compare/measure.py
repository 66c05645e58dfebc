# SPDX-License-Identifier: Apache-2.0
"""What it costs to compare replicas: mlp (big) and gpt with `--verify-state` as shipped and off, by turns."""
import os
import re

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "replicas compared: steps of training with and without, two replicas by hand and two tasks"
ON, OFF = "compared", "off"
TURNS = amount.of(3, 1)  # of both, in each round: the machine's speed drifts
MOST = 1.01  # of the time without
MOST_HASHED = 1.0  # percent of the time of the steps, by the job's own account
ONE = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
DATA = os.path.join(programs.ROOT, "deploy", "examples", "digits")
INTERVAL = re.compile(r"are compared every (\d+) steps,.*: to hash ([0-9.]+) of [0-9.]+ MB takes ([0-9.]+) ms")
COST = re.compile(r"were compared (\d+) times: to hash them took ([0-9.]+) % of the time of the steps")

# Example: its arguments, and the figure that it prints of its own speed.
EXAMPLES = {
    "mlp": (["--model", amount.of("big", "digits"), "--epochs", amount.of("8", "2"), "--data", DATA],
            r"steps per second after the first epoch: (\S+)"),
    "gpt": (["--steps", amount.of("200", "5")], r"bytes per second: ([0-9.]+)"),
}
LAUNCHES = {
    "2 replicas": ([], {"CADRE_REPLICAS": "2"}),
    "2 tasks": (["cadre", "run", "-n", "2"], {"CADRE_REPLICAS": "1"}),
}


def train(example, launch, verify):
    """The example's speed; where states are compared, every how many steps, and what the job says that it came to."""
    arguments, speed = EXAMPLES[example]
    words, environment = LAUNCHES[launch]
    before = [programs.program(words[0]), *words[1:]] if words else []
    text = programs.run(*before, programs.program(example), *(["--"] if before else []), *arguments, timeout_s=600,
                        with_errors=True, env=ONE | environment | verify)
    found = INTERVAL.findall(text)
    figures = {"speed": float(re.search(speed, text).group(1))}
    cost = COST.search(text)
    if cost:
        figures |= {"times": float(cost.group(1)), "cost": float(cost.group(2))}
    if found:
        every, megabytes, hash_ms = found[-1]
        figures |= {"every": float(every), "MB": float(megabytes), "hash_ms": float(hash_ms)}
    return figures


def run_round(samples):
    for example in EXAMPLES:
        if not os.path.exists(programs.program(example)):
            samples.mark_absent(example, "OpenBLAS (libopenblas-dev) was not there when this was built")
            continue
        for launch in LAUNCHES:
            for turn in range(TURNS):
                rows = [(ON, {}), (OFF, {"CADRE_VERIFY_STATE": "off"})]
                for row, verify in rows if turn % 2 == 0 else reversed(rows):
                    samples.measure(row, (example, launch),
                                    lambda verify=verify: train(example, launch, verify))


def report(samples):
    lines = []
    for example in EXAMPLES:
        for launch in LAUNCHES:
            column = (example, launch)
            ratio = samples.ratio(OFF, ON, column, "speed")  # of times: the inverse of that of speeds
            cost = samples.median(ON, column, "cost")
            spread = max((samples.spread(row, column, "speed") or 0 for row in (ON, OFF)), default=0)
            lines.append([f"{example}, {launch}", shown(samples.median(ON, column, "speed")),
                          shown(samples.median(OFF, column, "speed")), "-" if ratio is None else f"{ratio:.3f}",
                          percent(spread), shown(samples.median(ON, column, "every")),
                          shown(samples.median(ON, column, "MB")), shown(samples.median(ON, column, "hash_ms")),
                          shown(samples.median(ON, column, "times")), shown(cost),
                          "-" if ratio is None else "met" if ratio <= MOST else "MISSED",
                          "-" if cost is None else "met" if cost <= MOST_HASHED else "MISSED"])
    print_table(["", "compared", "off", "time, of off", "spread", "every N", "MB", "hash ms", "times", "hashing, %",
                 f"goal {MOST}", f"goal {MOST_HASHED} %"], lines)
    worst = max((samples.disturbed(row) or 0 for row in (ON, OFF)), default=0)
    print(f"  speeds: mlp steps/s, gpt bytes/s; medians over rounds of {TURNS} turns; others at most {percent(worst)}")
