# SPDX-License-Identifier: Apache-2.0
"""`cadre new`: each example is written, built by make and by CMake against an installation, without a warning, and runs
by hand, by `cadre run`, and as a job; one of its tasks is killed meanwhile. What cannot be a new program is refused."""
import glob
import os
import re
import shutil
import signal
import subprocess

from test_install import Installation
from testing import HANG_S, check, check_equal, check_in, run, skip, wait_for

STRICT = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror"
PS = "--strategy parameter_server --workers 2 --ps 2"


def built(here, name, example, make, cmake):
    """The program, made by make; what CMake makes prints the same by hand."""
    said = here.call(f"cadre new {name} --example {example}")
    check_in(f"\n  cd {name}\n  make\n  ./{name}\n  cadre run ", said, "what it says comes next")
    folder = os.path.join(here.app, name)
    for file in os.listdir(folder):
        with open(os.path.join(folder, file), encoding="utf-8") as text:
            check("@" not in re.sub(r"\$@", "", text.read()), f"a placeholder is left in {file}")
    here.app = folder
    here.call(f"make {make}")
    here.call(f"cmake -S . -B build {cmake} && cmake --build build")
    by_hand = here.call(f"./{name}")
    check_equal(here.call(f"build/{name}"), by_hand, "what the program of CMake prints")
    return by_hand


def built_strictly(here, name, example):
    return built(here, name, example, f"CFLAGS='-O2 -std=c11 {STRICT}'", f"-DCMAKE_C_FLAGS='{STRICT}'")


def test_mlp():
    with Installation() as here:
        by_hand = built_strictly(here, "circle", "mlp")
        right = float(re.match(r"right: (\d+\.\d)% of 1024 new points\n", by_hand).group(1))
        check(right > 90, f"it did not learn: {by_hand}")
        with open(os.path.join(here.app, "circle.c"), encoding="utf-8") as file:
            check(len(file.readlines()) < 150, "it is no longer short")
        check_in(by_hand, here.call("cadre run -n 2 ./circle"), "two tasks")
        with here.cluster():
            check_in(by_hand, here.call("cadre submit -n 2 ./circle"), "a job")
            check_in("checkpoint-960.safetensors", here.call("cadre get 1"), "what the job left")


def tasks_of(name):
    """The pids of processes of this program, which has a name of its own."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/comm", encoding="utf-8") as file:
                found += [int(entry)] if entry.isdigit() and file.read() == f"{name}\n" else []
        except OSError:
            continue  # no process, or it ended meanwhile
    return found


def is_dropped(pattern, seen):
    """Whether a file of an earlier look is gone: newer checkpoints are published, then, and not only written."""
    now = set(glob.glob(pattern))
    seen |= now
    return seen - now


def killed_once(here, name, words, checkpoint):
    """Runs two tasks of the program and kills one when a checkpoint is published; what the command prints to stderr."""
    seen = set()
    drill = subprocess.Popen(here.command(f"exec cadre run -n 2 --max-restarts 9 {words}"), cwd=here.app,
                             env=here.environment, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    try:
        wait_for("a published checkpoint", lambda: is_dropped(f"{here.app}/{checkpoint}", seen))
        os.kill(wait_for("two tasks", lambda: tasks_of(name)[1:])[0], signal.SIGKILL)
        out, errors = drill.communicate(timeout=HANG_S)
    finally:
        drill.kill()
    check_equal(drill.returncode, 0, f"status of the run: {out}{errors}")
    return errors


def test_mlp_is_killed():
    """The state at the end is that of a run in which no task was killed, bit for bit."""
    name = f"k{os.getpid()}"
    with Installation() as here:
        here.call(f"cadre new {name} && make -C {name}")
        here.call(f"cadre run -n 2 -o calm {name}/{name} -- 2000")
        errors = killed_once(here, name, f"-o drill {name}/{name} -- 2000", "drill/*/checkpoint-*.json")
        check_in("was killed by signal 9", errors, "what became of the task")
        here.call("cmp calm/*/checkpoint-32000.safetensors drill/*/checkpoint-32000.safetensors")


def test_plain():
    with Installation() as here:
        by_hand = built_strictly(here, "line", "plain")
        check_equal(by_hand, "y = 3.000 x + 1.000, after 400 steps\n", "by hand")
        check_in(by_hand, here.call("cadre run -n 2 ./line"), "two tasks")
        here.call("cadre run -n 2 --checkpoint-folder calm ./line -- 20000")
        errors = killed_once(here, "line", "--checkpoint-folder drill ./line -- 20000", "drill/checkpoint-*.json")
        check_in("all tasks began again from the checkpoint of step", errors, "what became of the job")
        here.call("cmp calm/checkpoint-200.safetensors drill/checkpoint-200.safetensors")


def test_ps():
    with Installation() as here:
        by_hand = built_strictly(here, "table", "ps")
        check_in("loss of the last round: 0.00", by_hand, "by hand")
        check_in("loss of the last round: 0.00", here.call(f"cadre run {PS} ./table"), "tasks of their own")


def test_cuda():
    """Where there is a CUDA Toolkit; without a GPU its steps run on the CPU."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        skip("there is no CUDA Toolkit: no nvcc in PATH, and no /usr/local/cuda/bin/nvcc")
    with Installation() as here:
        flags = "-Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow,-Werror"
        built(here, "kernel", "cuda", f"NVCCFLAGS='-O2 -std=c++17 -Werror=all-warnings {flags}'",
              f"-DCMAKE_CUDA_FLAGS='-Werror=all-warnings {flags}'")
        check_in("loss of the last batch: 0.0000", here.call("cadre run -n 2 ./kernel"), "two tasks")


def test_refused():
    with Installation() as here:
        def refused(words, status, sentence):
            done = subprocess.run(here.command(f"cadre new {words}"), cwd=here.app, env=here.environment,
                                  capture_output=True, text=True, timeout=HANG_S, check=False)
            check_equal(done.returncode, status, f"status of cadre new {words}: {done.stderr}")
            check_in(sentence, done.stderr, f"cadre new {words}")

        os.mkdir(os.path.join(here.app, "taken"))
        before = sorted(os.listdir(here.app))
        refused("taken", 1, "taken is there already: give another name, or remove it")
        refused("fit.c", 2, '"fit.c" cannot be a program\'s name')
        refused("9lives", 2, "beginning with a letter")
        refused("test", 2, '"test" has a meaning of its own to make')
        refused("absent/fit", 1, "cannot make the folder absent/fit: No such file")
        refused("", 2, "which name?")
        refused("fit --example plian", 2, "did you mean plain?")
        check_equal(sorted(os.listdir(here.app)), before, "nothing was left")
        check_equal(os.listdir(os.path.join(here.app, "taken")), [], "what was there is as it was")


if __name__ == "__main__":
    run(globals())
