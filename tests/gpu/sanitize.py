# SPDX-License-Identifier: Apache-2.0
"""The plugin's kernels and the examples' under compute-sanitizer, each program with each tool. Skipped, with the
reason, where the tool or a GPU is absent.

    sanitize.py PLUGIN PROGRAM...     PROGRAM is given the plugin, and exits with 77 where there is no GPU
"""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
FOUND = 99
TOOLS = {
    # What stream-ordered memory is used for before it is got, and after it is given back, counts too.
    "memcheck": ["--report-api-errors", "no", "--track-stream-ordered-races", "all"],
    "racecheck": [],
    "initcheck": [],
    "synccheck": [],
}
LIMIT_S = 240


def find():
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=f"{toolkit}/bin")


def skip(reason):
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


def main(plugin, programs):
    sanitizer = find()
    if sanitizer is None:
        skip("there is no compute-sanitizer in PATH nor in the toolkit's bin folder")
    first = subprocess.run([programs[0], plugin], capture_output=True, text=True, timeout=LIMIT_S)
    if first.returncode == SKIPPED:
        skip(first.stderr.strip().removeprefix("skipped: "))
    failed = 0
    for tool, options in TOOLS.items():
        for program in programs:
            command = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), *options, program, plugin]
            try:
                result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        timeout=LIMIT_S)
                code, output = result.returncode, result.stdout
            except subprocess.TimeoutExpired as late:
                code, output = "none", f"{late.output or ''}\nnot done after {LIMIT_S} s"
            name = f"{tool} {os.path.basename(program)}"
            print(f"{name}: {'clean' if code == 0 else f'exit code {code}'}", flush=True)
            if code != 0:
                failed += 1
                lines = output.splitlines()
                print("\n".join(lines[:60] + ["..."] + lines[-20:] if len(lines) > 80 else lines), flush=True)
    sys.exit(1 if failed > 0 else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
