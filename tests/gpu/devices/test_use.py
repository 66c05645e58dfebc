# SPDX-License-Identifier: Apache-2.0
"""cadre-devices --use over the stand-in for NVML: what it answers, what it does not load, when it ends."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "integration"))
from cluster import clean_environment, program  # noqa: E402
from testing import HANG_S, check, check_equal, check_in, run  # noqa: E402

NVML = os.environ["CADRE_TEST_NVML"]  # the stand-in's folder


class Devices:
    """cadre-devices --use, and the file that the stand-in reads."""

    def __init__(self, folder, *names, text="", driver=True, library=True):
        self.path = os.path.join(folder, "nvml")
        environment = clean_environment() | ({"LD_LIBRARY_PATH": NVML} if library else {})
        environment |= {"CADRE_STANDIN_NVML": self.path} if driver else {}
        self.set(text)
        self.process = subprocess.Popen([program("cadre-devices"), "--use", *names], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)

    def set(self, text):
        with open(f"{self.path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(f"{self.path}.new", self.path)

    def ask(self, request=b"\n"):
        self.process.stdin.write(request)
        self.process.stdin.flush()
        return self.process.stdout.readline().decode()

    def end(self):
        """Its status at the end of its input, and what it printed since the last answer."""
        out, err = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, out.decode(), err.decode()

    def maps(self):
        with open(f"/proc/{self.process.pid}/maps", encoding="utf-8") as file:
            return file.read()


def test_values_are_those_of_nvml():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        devices = Devices(folder, "GPU-1", "GPU-2", "GPU-3", "MIG-4", "GPU-5", "-",
                          text="GPU-2 0 0\nGPU-1 97 75161927680\nMIG-4 - 4096\nGPU-5 55 -\n")
        # GPU-3 is lost; 0 is a value, and what is not known is not 0.
        check_equal(devices.ask(), "97,75161927680 0,0 -,- -,4096 55,- -,-\n", "the first answer")
        devices.set("GPU-1 101 9223372036854775808\nGPU-3 100 1\nGPU-2 - -\n")
        check_equal(devices.ask(), "-,- -,- 100,1 -,- -,- -,-\n", "the next, with values that cannot be")
        check_in("libnvidia-ml", devices.maps(), "what it has loaded")
        check("libcuda" not in devices.maps() and "libcadre" not in devices.maps(), "and no CUDA, no plugin")
        check_equal(devices.ask(b"\0any bytes" * 5000 + b"\n"), "-,- -,- 100,1 -,- -,- -,-\n", "to a long request")
        status, out, err = devices.end()
        check_equal((status, out), (0, ""), "at the end of the input")
        check_equal(err.splitlines(), [f"cadre-devices: NVML has no GPU {name} now; cadre-devices prints the UUIDs"
                                       for name in ("GPU-3", "-")], "what it says of names at its start")


def test_without_a_driver_nothing_is_known():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        for options, reason in (({"driver": False}, "nvmlInit_v2 of libnvidia-ml.so.1 returns 9"),
                                ({"library": False}, "libnvidia-ml.so.1")):
            devices = Devices(folder, "GPU-1", **options)
            check_equal(devices.ask(), "-,-\n", str(options))
            status, out, err = devices.end()
            check_equal((status, out), (0, ""), str(options))
            check_in(f"the use of GPUs is not known: {reason}", err, "why")


def test_wrong_arguments():
    for arguments, message in ((["--use"], "name one or more"), (["--use", "--json", "GPU-1"], "exclude each other"),
                               (["GPU-1"], "UUIDs are named with --use only"),
                               (["--use", *map(str, range(65))], '"64" is one word too many')):
        done = subprocess.run([program("cadre-devices"), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              env=clean_environment(), timeout=HANG_S, check=False)
        check_equal((done.returncode, done.stdout), (2, b""), str(arguments)[:80])
        check_in(message, done.stderr.decode(), "what it says")


if __name__ == "__main__":
    run(globals())
