#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of test_rules.c, by the formulas as Keras' documentation and the papers print them, in plain float64 and
without a line of the library. Writes figures.h beside itself; `--check` compares it instead."""
import math
import pathlib
import sys
import textwrap

STEPS = 5
START = [1.0, -2.0, 0.5, 3.0]
GRADIENTS = [[0.1, -0.2, 0.3, 1.0], [0.5, 0.25, -0.125, -1.0], [-0.3, 0.6, 0.05, 0.0], [2.0, -1.0, 0.4, 0.7],
             [0.01, 0.02, -0.03, 0.04]]
DEFAULTS = {"rate": 0.01, "momentum": 0.0, "rho": 0.9, "initial_accumulator": 0.1, "beta1": 0.9, "beta2": 0.999,
            "epsilon": 1e-7, "weight_decay": 0.0, "nesterov": False, "centered": False}


def sgd(r, t, rate, w, g, s):
    return [x - rate * d for x, d in zip(w, g)]


def momentum(r, t, rate, w, g, s):
    s[0] = [r["momentum"] * a - rate * d for a, d in zip(s[0], g)]
    if r["nesterov"]:
        return [x + r["momentum"] * a - rate * d for x, a, d in zip(w, s[0], g)]
    return [x + a for x, a in zip(w, s[0])]


def adagrad(r, t, rate, w, g, s):
    s[0] = [a + d ** 2 for a, d in zip(s[0], g)]
    return [x - rate * d / math.sqrt(a + r["epsilon"]) for x, a, d in zip(w, s[0], g)]


def rmsprop(r, t, rate, w, g, s):
    rho = r["rho"]
    s[0] = [rho * a + (1 - rho) * d ** 2 for a, d in zip(s[0], g)]
    s[2] = [rho * c + (1 - rho) * d for c, d in zip(s[2], g)]
    variance = [a - c ** 2 for a, c in zip(s[0], s[2])] if r["centered"] else s[0]
    step = [rate * d / math.sqrt(a + r["epsilon"]) for a, d in zip(variance, g)]
    s[1] = [r["momentum"] * b + p for b, p in zip(s[1], step)]
    return [x - b for x, b in zip(w, s[1])]


def moments(r, w, g, s):
    s[0] = [r["beta1"] * m + (1 - r["beta1"]) * d for m, d in zip(s[0], g)]
    s[1] = [r["beta2"] * v + (1 - r["beta2"]) * d ** 2 for v, d in zip(s[1], g)]


def adam(r, t, rate, w, g, s):
    moments(r, w, g, s)
    alpha = rate * math.sqrt(1 - r["beta2"] ** t) / (1 - r["beta1"] ** t)
    return [x - alpha * m / (math.sqrt(v) + r["epsilon"]) for x, m, v in zip(w, s[0], s[1])]


def lamb(r, t, rate, w, g, s):
    moments(r, w, g, s)
    m_hat = [m / (1 - r["beta1"] ** t) for m in s[0]]
    v_hat = [v / (1 - r["beta2"] ** t) for v in s[1]]
    u = [m / (math.sqrt(v) + r["epsilon"]) + r["weight_decay"] * x for m, v, x in zip(m_hat, v_hat, w)]
    ratio = math.sqrt(sum(x * x for x in w)) / math.sqrt(sum(d * d for d in u))
    return [x - rate * ratio * d for x, d in zip(w, u)]


RULES = [
    ("SGD", sgd, {}), ("SGD", sgd, {"weight_decay": 0.1}),
    ("MOMENTUM", momentum, {"momentum": 0.9}), ("MOMENTUM", momentum, {"momentum": 0.9, "weight_decay": 0.2}),
    ("MOMENTUM", momentum, {"momentum": 0.8, "nesterov": True}),
    ("ADAGRAD", adagrad, {}), ("ADAGRAD", adagrad, {"initial_accumulator": 0.0, "epsilon": 0.5, "weight_decay": 0.1}),
    ("RMSPROP", rmsprop, {}), ("RMSPROP", rmsprop, {"momentum": 0.9}), ("RMSPROP", rmsprop, {"centered": True}),
    ("RMSPROP", rmsprop, {"rho": 0.8, "momentum": 0.5, "centered": True, "epsilon": 1e-3, "weight_decay": 0.1}),
    ("ADAM", adam, {}), ("ADAM", adam, {"beta1": 0.5, "beta2": 0.75, "epsilon": 0.25, "rate": 0.5}),
    ("ADAMW", adam, {"weight_decay": 0.004}), ("ADAMW", adam, {"rate": 1.0, "weight_decay": 0.5, "epsilon": 2.0}),
    ("LAMB", lamb, {}), ("LAMB", lamb, {"weight_decay": 0.01, "epsilon": 1e-6, "rate": 0.1}),
]

POLYNOMIAL = {"decay_steps": 10, "end_rate": 0.01}
COSINE = {"decay_steps": 20, "alpha": 0.1}
SCHEDULES = [
    ("EXPONENTIAL", {"decay_steps": 10, "decay_rate": 0.96}),
    ("EXPONENTIAL", {"decay_steps": 10, "decay_rate": 0.96, "staircase": True}),
    ("POLYNOMIAL", {**POLYNOMIAL, "power": 1.0}), ("POLYNOMIAL", {**POLYNOMIAL, "power": 0.5}),
    ("POLYNOMIAL", {**POLYNOMIAL, "power": 2.5, "cycle": True}),
    ("INVERSE_TIME", {"decay_steps": 7, "decay_rate": 0.5}),
    ("INVERSE_TIME", {"decay_steps": 7, "decay_rate": 0.5, "staircase": True}),
    ("COSINE", COSINE), ("COSINE", {**COSINE, "warmup_steps": 8, "warmup_target": 0.3}),
    ("CONSTANT", {"warmup_steps": 8, "warmup_target": 0.3}),
]
RATE = 0.1
TIMES = [0, 1, 5, 7, 8, 9, 10, 11, 17, 25, 28, 100]


def scheduled(kind, o, step):
    """As tf.keras.optimizers.schedules documents them."""
    rate = RATE
    if "warmup_steps" in o:
        if step < o["warmup_steps"]:
            return (o["warmup_target"] - rate) * step / o["warmup_steps"] + rate
        rate = o["warmup_target"]
        step -= o["warmup_steps"]
    if kind == "CONSTANT":
        return rate
    steps = o["decay_steps"]
    part = step // steps if o.get("staircase") else step / steps
    if kind == "EXPONENTIAL":
        return rate * o["decay_rate"] ** part
    if kind == "INVERSE_TIME":
        return rate / (1 + o["decay_rate"] * part)
    if kind == "POLYNOMIAL":
        if o.get("cycle"):
            steps = steps * max(1, math.ceil(step / steps))
        step = min(step, steps)
        return (rate - o["end_rate"]) * (1 - step / steps) ** o["power"] + o["end_rate"]
    decay = 0.5 * (1 + math.cos(math.pi * min(step, steps) / steps))
    return rate * ((1 - o["alpha"]) * decay + o["alpha"])


def literal(value):
    return str(value).lower() if isinstance(value, bool) else f"{value:.12g}"


def fields(options):
    return ", ".join(f".{name} = {literal(value)}" for name, value in options.items())


def braced(numbers):
    return "{" + ", ".join(map(literal, numbers)) + "}"


def rows(name, r, function):
    values = START
    slots = [[r["initial_accumulator"] if name == "ADAGRAD" else 0.0] * len(START), [0.0] * len(START),
             [0.0] * len(START)]
    for t in range(1, STEPS + 1):
        if name != "LAMB":
            values = [x - x * r["weight_decay"] * r["rate"] for x in values]
        values = function(r, t, r["rate"], values, GRADIENTS[t - 1], slots)
        yield values


def text():
    lines = ["/* SPDX-License-Identifier: Apache-2.0", " * Written by figures.py. */", "/* clang-format off */",
             f"#define STEPS {STEPS}", f"#define WIDTH {len(START)}", f"#define TIMES {len(TIMES)}",
             f"static const double start[WIDTH] = {braced(START)};",
             "static const double gradients[STEPS][WIDTH] = {" + ", ".join(map(braced, GRADIENTS)) + "};",
             "static const struct rule_figures {", "    struct optimizer_rule rule;",
             "    double values[STEPS][WIDTH];", "} rule_figures[] = {"]
    for name, function, changed in RULES:
        r = {**DEFAULTS, **changed}
        lines.append(f"    {{{{.kind = OPTIMIZER_{name}, {fields(r)}}},")
        lines.append("        {" + ",\n            ".join(braced(row) for row in rows(name, r, function)) + "}},")
    lines += ["};", f"static const double base_rate = {RATE};",
              "static const uint64_t times[TIMES] = {" + ", ".join(map(str, TIMES)) + "};",
              "static const struct schedule_figures {", "    struct schedule schedule;", "    double rates[TIMES];",
              "} schedule_figures[] = {"]
    for kind, options in SCHEDULES:
        lines.append(f"    {{{{.kind = SCHEDULE_{kind}, {fields(options)}}},")
        lines.append("        " + braced([scheduled(kind, options, step) for step in TIMES]) + "},")
    lines += ["};", "/* clang-format on */"]
    return "\n".join(textwrap.fill(line, 100, subsequent_indent="        ") if len(line) > 100 else line
                     for line in lines) + "\n"


if __name__ == "__main__":
    path = pathlib.Path(__file__).with_name("figures.h")
    if "--check" in sys.argv:
        sys.exit(path.read_text() != text() and "figures.h is not what figures.py writes")
    path.write_text(text())
