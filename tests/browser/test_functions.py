# SPDX-License-Identifier: Apache-2.0
"""The page's pure functions, in the browser that runs them: forms of values, charts, axes, what a history means."""
from browser import Browser
from standin import ATTACK, STORY, Standin, one_job, second, story
from testing import check, check_equal, run


class Functions:
    """A page whose modules are called: f("format.js", "bytes", 1024)."""

    def __enter__(self):
        self.standin = Standin().start()
        self.page = Browser()
        self.page.open(self.standin.url + "#/workers")
        return self

    def __exit__(self, *_):
        self.page.__exit__()
        self.standin.stop()

    def __call__(self, module, name, *arguments):
        return self.page.module(f"const m = await import('/assets/{module}'); return m.{name}(...args);", *arguments)


def test_values_as_text():
    with Functions() as f:
        cases = [("bytes", [0], "0 B"), ("bytes", [1023], "1023 B"), ("bytes", [1536], "1.5 KiB"),
                 ("bytes", [3 << 40], "3.0 TiB"), ("age", [119_000_000], "119 s"), ("age", [120_000_000], "2 min"),
                 ("age", [-5], "0 s"), ("duration", [350_000], "350 ms"), ("duration", [4_250_000], "4.2 s"),
                 ("duration", [187_000_000], "3:07 min"), ("duration", [3_729_000_000], "1:02:09 h"),
                 ("count", [1234567], "1,234,567"), ("plural", [1, "task"], "1 task"),
                 ("plural", [2, "task"], "2 tasks"),
                 ("gpuUse", [{"gpu_percent": 97, "gpu_memory_bytes": 70 << 30}], "97%, 70.0 GiB"),
                 ("gpuUse", [{"gpu_percent": 0, "gpu_memory_bytes": 0}], "0%, 0 B"),
                 ("gpuUse", [{"gpu_percent": None, "gpu_memory_bytes": 2048}], "2.0 KiB"),
                 ("gpuUse", [{"gpu_percent": None, "gpu_memory_bytes": None}], None), ("gpuUse", [None], None),
                 ("value", ["NaN"], "NaN"), ("value", ["-Infinity"], "−∞"), ("value", [None], "–"),
                 ("value", [0.123456789], "0.123457"), ("value", [1e-9], "1e-9"), ("value", [-42], "-42"),
                 ("clean", ["a\x1b[0m\n\u202eb"], "a\\x1b[0m\\x0a\\u202eb"),
                 ("cleanLogText", ["a\tb\x07"], "a\tb\\x07"),
                 ("utc", [1_790_000_000_123_000], "2026-09-21 14:13:20.123 UTC")]
        for name, arguments, wanted in cases:
            check_equal(f("format.js", name, *arguments), wanted, f"{name}({arguments})")


def test_done_is_that_of_the_command():
    with Functions() as f:
        progress = {"epoch": 1, "epochs": 4, "step": 5, "steps": 10}
        for state, given, wanted in [("running", progress, "37%"), ("succeeded", progress, "100%"),
                                     ("succeeded", None, "–"), ("running", progress | {"epochs": 0}, "–"),
                                     ("running", progress | {"step": 11}, "25%"),
                                     ("running", progress | {"steps": 0}, "25%")]:
            check_equal(f("format.js", "donePercent", {"state": state, "progress": given}), wanted, f"{state}, {given}")


def test_addresses():
    with Functions() as f:
        job = {"view": "job", "id": "3", "tab": "logs", "query": {"task": "1"}}
        check_equal(f("router.js", "parse", "#/jobs/3/logs?task=1"), job, "a job's logs")
        check_equal(f("router.js", "link", ["jobs", 3, "logs"], {"task": 1, "x": None}), "#/jobs/3/logs?task=1", "link")
        check_equal(f("router.js", "parse", "#/workers/a%2Fb%20%25")["id"], "a/b %", "a worker's name")
        for odd in ("", "#", "#/", "#/nowhere", "#/jobs/abc", "#/jobs/-1", "#/%zz", "#/jobs/<script>"):
            check_equal(f("router.js", "parse", odd)["view"], "jobs", odd)


def test_curves_are_asked_for_from_where_all_are():
    def series(name, *steps):
        return {"name": name, "points": [[step, 0] for step in steps]}

    with Functions() as f:
        for wanted, given in ((0, []), (9, [series("loss", 1, 9), series("rate", 2)]), (0, [series("loss")]),
                              (4, [series("loss", 900), series("evaluation_loss", 3, 4)]),
                              (7, [series("evaluation_a", 7), series("evaluation_b", 5)])):
            check_equal(f("curves.js", "reached", given), wanted, str(given))


def test_axes():
    with Functions() as f:
        check_equal(f("scale.js", "ticks", 0, 10, 5), [0, 2, 4, 6, 8, 10], "ticks")
        check_equal(f("scale.js", "ticks", -0.3, 0.3, 3), [-0.2, 0, 0.2], "ticks about 0")
        check_equal(f("scale.js", "logTicks", 0.001, 1000, 7), [0.001, 0.01, 0.1, 1, 10, 100, 1000], "powers of ten")
        check_equal(f("scale.js", "logTicks", 1, 10, 9), [1, 2, 5, 10], "few powers of ten")
        check(len(f("scale.js", "ticks", 5, 5, 4)) == 1, "a range of one value has one tick")
        for span_s in (0.5, 10, 700, 90_000, 40 * 86400):
            times = f("scale.js", "timeTicks", second(0), second(span_s), 8)
            check(2 <= len(times) <= 9 and len({b - a for a, b in zip(times, times[1:])}) == 1, f"{span_s} s: {times}")
        near = f.page.module("const m = await import('/assets/scale.js'); const list = [1, 5, 9];"
                             "return [0, 3, 3.5, 7, 100].map((n) => m.nearest(list, n, (x) => x)).concat("
                             "m.nearest([], 1, (x) => x));")
        check_equal(near, [0, 0, 1, 1, 2, -1], "nearest")


SERIES = {"name": "loss", "stride": 2, "buckets": [
    {"first_step": 1, "last_step": 2, "count": 2, "not_finite": 0, "minimum": 1, "maximum": 5, "mean": 3, "last": 1},
    {"first_step": 3, "last_step": 4, "count": 2, "not_finite": 2, "minimum": None, "maximum": None, "mean": None,
     "last": "NaN"}], "points": [[5, 2], [6, "NaN"], [7, 4], [8, "Infinity"], [9, -1]]}


def test_labels_of_generations_do_not_hide_each_other():
    with Functions() as f:
        marks = [{"x": x, "number": i + 2} for i, x in enumerate((10, 14, 60, 200, 205, 210))]
        labels = f("scale.js", "generationLabels", marks, 40, 230)
        check_equal([(one["x"], one["text"], one["alone"], one["room"]) for one in labels],
                    [(10, "g2–3", False, 50), (60, "g4", True, 140), (200, "g5–7", False, 30)], "three labels for six")
        check_equal(f("scale.js", "generationLabels", [], 40, 230), [], "none")


def test_a_series_as_a_line():
    with Functions() as f:
        samples = f("chart.js", "samplesOf", SERIES)
        check_equal([(one["step"], one["value"]) for one in samples],
                    [(2, 3), (4, None), (5, 2), (6, None), (7, 4), (8, None), (9, -1)], "samples")
        check_equal(f("chart.js", "rangeOf", [samples], False)["low"] < -1, True, "the range has the least value")
        check_equal(f("chart.js", "rangeOf", [samples], True)["low"] > 0, True, "by magnitude only what is positive")
        check_equal(f("chart.js", "rangeOf", [[{"value": None}]], False), None, "no value, no range")
        check_equal(f("chart.js", "readOut", samples[0]), "3 (1 to 5 in steps 1 to 2)", "a bucket with its range")
        check_equal(f("chart.js", "readOut", samples[3]), "NaN", "a gap says why")
        path = f.page.module("const m = await import('/assets/chart.js'); return m.pathOf(m.samplesOf(args[0]),"
                             "(x) => x, (y) => y, (sample) => sample.value !== null);", SERIES)
        check_equal(path, "M2.0 3.0h0M5.0 2.0h0M7.0 4.0h0M9.0 -1.0h0", "each gap ends a run, lone values are dots")


def test_thinning_keeps_the_extremes():
    with Functions() as f:
        kept = f.page.module(
            "const m = await import('/assets/chart.js'); const samples = [];"
            "const at = (i) => i === 777 ? 1e6 : i === 30001 ? null : i % 13;"
            "for (let i = 0; i < 40000; i++) samples.push({ step: i, value: at(i) });"
            "const thin = m.thin(samples, (step) => step / 100);"
            "return [thin.length, thin.some((one) => one.value === 1e6), thin.some((one) => one.value === null),"
            " thin.every((one, i) => i === 0 || thin[i - 1].step < one.step)];")
        check(kept[0] <= 400 * 5 and kept[1:] == [True, True, True], f"{kept}")


def test_what_a_history_means():
    with Functions() as f:
        events = story(one_job(STORY))
        ledger = f("ledger.js", "readLedger", events, one_job(STORY), second(90))
        spans = {task["task"]: [(span["outcome"], span["worker"]) for span in task["spans"]]
                 for task in ledger["tasks"]}
        check_equal(spans, {0: [("lost", "w0000"), ("open", "w0000")], 1: [("lost", "w0001"), ("open", "w0009")],
                            2: [("open", "w0002")]}, "who did the steps")
        check_equal([(g["number"], g["first"], g["counted"], g["reached"]) for g in ledger["generations"]],
                    [(1, 0, 600, 600), (2, 600, 700, 740), (3, 700, 900, 900)], "which steps count")
        check_equal([task["noteworthy"] for task in ledger["tasks"]], [True, True, True], "what happened to whom")
        stall = ledger["tasks"][2]["stalls"][0]
        check_equal((stall["to_us"] - stall["from_us"], stall["position"]), (4_000_000, 400), "who was waited for")
        check_equal(len(ledger["falls"]), 1, "one fall: 40 steps were undone")
        check_equal({point["position"] for point in ledger["falls"][0]}, {700, 740}, "from 740 to 700")
        check("\x1b" not in f("ledger.js", "describe", events[7] | {"text": ATTACK}), "control characters are shown")


def test_tasks_of_an_ending_job_are_stopped_not_lost():
    with Functions() as f:
        base = {"position": 0, "generation": 1, "worker": "w0", "text": ""}
        events = [base | {"number": i + 1, "time_us": second(i)} | one for i, one in enumerate([
            {"kind": "task_started", "task": 0, "incarnation": 1}, {"kind": "task_started", "task": 1},
            {"kind": "task_ended", "task": 0, "exit_code": 1, "exit_signal": None}, {"kind": "ending"},
            {"kind": "task_ended", "task": 1, "exit_code": None, "exit_signal": 15}])]
        ledger = f("ledger.js", "readLedger", events, one_job(STORY), second(90))
        check_equal([task["spans"][0]["outcome"] for task in ledger["tasks"]], ["failed", "ended"], "outcomes")
        stalls = [{"kind": "stalled", "time_us": second(20), "task": 0, "waited_us": 10_000_000, "position": 7},
                  {"kind": "stalled", "time_us": second(25), "task": 1, "waited_us": 15_000_000, "position": 7},
                  {"kind": "went_on", "time_us": second(30), "position": 8, "waited_us": 20_000_000}]
        ledger = f("ledger.js", "readLedger", stalls, one_job(STORY), second(90))
        spans = [((one["from_us"] - second(0)) / 1e6, (one["to_us"] - second(0)) / 1e6) for one in ledger["stalls"]]
        check_equal(spans, [(10, 25), (25, 30)], "a stall from its beginning, then of another task")


def test_histories_that_are_cut_or_strange():
    with Functions() as f:
        job = one_job(STORY)
        for events in ([{"number": 9, "kind": "went_on", "time_us": second(1), "position": 5}],
                       [{"number": 1, "kind": "of a later version", "time_us": second(1), "text": "x"}],
                       [{"number": 1, "kind": "task_lost", "time_us": second(2), "task": 3},
                        {"number": 2, "kind": "task_ended", "time_us": second(1), "task": 3, "exit_code": 1}],
                       [{"number": 1, "kind": "generation", "generation": 7, "position": 50, "undone": 10,
                         "time_us": second(3), "tasks": 1}]):
            ledger = f("ledger.js", "readLedger", events, job, second(90))
            check(ledger["begin_us"] <= ledger["end_us"], f"{events}")
            for event in events:
                check(f("ledger.js", "describe", event) != "", f"a sentence for {event}")


if __name__ == "__main__":
    run(globals())
