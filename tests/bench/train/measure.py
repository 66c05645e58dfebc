# SPDX-License-Identifier: Apache-2.0
"""Steps per second of the example mlp, beside the same training by hand in C, and in PyTorch."""
import os
import re

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "an MLP on OpenBLAS, steps per second of training"
TORCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_train.py")
DATA = os.path.join(programs.ROOT, "deploy", "examples", "digits", "digits-train.bin")
ONE = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

# Model: epochs of C and Cadre, and of PyTorch; at least this share of C's steps, and this many times those of DDP.
MODELS = amount.of({"digits": (200, 40, 0.85, 9), "big": (6, 6, 0.95, 1.4)},
                   {"digits": (2, 2, 0.85, 9)})
FLOOR, HAND, RUN, TORCH_ROW = "C, by hand", "cadre, by hand", "cadre run", "PyTorch"
# The C program, ported to plain calls: its gradients in memory of its own, and in cadre_plain_alloc's.
OWN, ARENA = "C, plain calls, own memory", "C, plain calls, arena"
ROWS = (FLOOR, OWN, ARENA, HAND, RUN, TORCH_ROW)


def floor(model, processes):
    return programs.figures(programs.run(
        programs.program("bench_train_floor"), model, str(processes), str(MODELS[model][0]), DATA, env=ONE))


def plain(model, memory):
    text = programs.run(programs.program("cadre"), "run", "-n", "2", programs.program("bench_train_plain"), "--", model,
                        "2", str(MODELS[model][0]), DATA, memory, env=ONE)
    return programs.figures(re.sub(r"(?m)^\[\d+\] ", "", text))  # a task's lines begin with its number


def cadre(model, processes, *launch):
    """The example, started by `launch`; its own figure, of all epochs but the first."""
    text = programs.run(*launch, programs.program("mlp"), *(["--"] if launch else []), "--model", model, "--epochs",
                        str(MODELS[model][0]), "--data", os.path.dirname(DATA), env=ONE | {"CADRE_REPLICAS": "1"})
    steps = re.search(r"steps per second after the first epoch: (\S+)", text)
    losses = re.findall(r"epoch \d+ loss (\S+)", text)
    return {"steps_per_s": float(steps.group(1)), "loss": float(losses[-1])}


def torch(model, processes):
    return programs.figures(programs.run(programs.DEBIAN_PYTHON, TORCH, model, str(processes), str(MODELS[model][1]),
                                         DATA, env=ONE))


def learned(model, figures):
    """What is compared must train: the digits are learned, random labels begin to be."""
    if amount.smoke:
        return figures
    most = 0.1 if model == "digits" else 2.4
    if not 0 <= figures["loss"] < most:
        raise RuntimeError(f"a loss of {figures['loss']} at the end, not below {most}")
    return figures


def rows_of(processes):
    run = ("cadre", lambda model: cadre(model, processes, programs.program("cadre"), "run", "-n", str(processes)))
    rows = [(FLOOR, lambda model: floor(model, processes)), (RUN, run[1])]
    if processes == 1:
        rows.append((HAND, lambda model: cadre(model, processes)))
    else:
        rows += [(row, lambda model, memory=memory: plain(model, memory))
                 for row, memory in ((OWN, "own"), (ARENA, "arena"))]
    return rows


def run_round(samples):
    if not os.path.exists(programs.program("mlp")):
        samples.mark_absent("all", "OpenBLAS (libopenblas-dev) was not there when this was built")
        return
    no_torch = programs.absent_torch()
    for model in MODELS:
        for processes in (1, 2):
            for row, function in rows_of(processes):
                samples.measure(row, (model, processes), lambda: learned(model, function(model)))
            if no_torch is None:
                samples.measure(TORCH_ROW, (model, processes), lambda: learned(model, torch(model, processes)))
    if no_torch is not None:
        samples.mark_absent(TORCH_ROW, no_torch)


def met(ratio, goal):
    return "-" if ratio is None else "met" if ratio >= goal else "MISSED"


def report(samples):
    lines = []
    for model, (_, _, share, times) in MODELS.items():
        for processes in (1, 2):
            column = (model, processes)
            for row in ROWS:
                steps = samples.median(row, column, "steps_per_s")
                if steps is None:
                    continue
                of_floor = samples.ratio(row, FLOOR, column, "steps_per_s")
                of_torch = samples.ratio(row, TORCH_ROW, column, "steps_per_s")
                ours = row in (HAND, RUN)
                lines.append([f"{model}, {processes}: {row}", shown(steps), shown(of_floor),
                              met(of_floor, share) if ours else "", shown(of_torch),
                              met(of_torch, times) if ours and processes == 2 else ""])
    print_table(["model, processes", "steps/s", "of C", "", "times PyTorch", ""], lines)
    worst = max((samples.disturbed(row) or 0 for row in ROWS), default=0)
    goals = ", ".join(f"{model} {share} of C and {times} times DDP" for model, (_, _, share, times) in MODELS.items())
    print(f"  goals: {goals}; others at most {percent(worst)}")
