#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the built plugin shows and needs: its entry alone, and no library of NVIDIA's.

usage: symbols.py PLUGIN     "" is skipped: it was not built
"""
import re
import subprocess
import sys

ENTRY = "cadre_device_plugin"
NEEDED = r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux[\w-]*)\.so"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(plugin):
    if not plugin:
        print("skipped: libcadre-cuda.so is not built: cmake found no CUDA Toolkit (CADRE_CUDA)")
        return 77
    faults = []
    shown = [line.split()[-1] for line in run("nm", "-D", "--defined-only", plugin).splitlines()]
    if shown != [ENTRY]:
        faults.append(f"it exports {shown}, and may export {ENTRY} alone")
    asked = re.findall(r" U (\S+)", run("nm", "-D", "-u", plugin))
    faults += [f"{name} is to be found by others" for name in asked if re.match(r"cuda|nccl|cu[A-Z]|cadre_", name)]
    dynamic = run("readelf", "-d", plugin)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    faults += [f"{name} must not be loaded with it" for name in needed if not re.match(NEEDED, name)]
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        faults.append("it names folders of the machine that it was built on (RUNPATH)")
    print("needed:", " ".join(needed))
    print("\n".join(faults))
    return 1 if faults or not needed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
