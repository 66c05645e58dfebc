# SPDX-License-Identifier: Apache-2.0
"""What README.md says of a program of one's own, with Cadre installed below a folder and the checkout out of sight: it
is compiled by cc and pkg-config, by CMake, and with Cadre inside; it runs by hand, by `cadre run`, and as a job."""
import contextlib
import os
import re
import shutil
import subprocess
import tempfile

from cluster import AS_ROOT, clean_environment
from testing import HANG_S, check, check_equal, check_in, run, wait_for

SOURCE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD = os.environ.get("CADRE_TEST_BUILD", "")
CMAKE_LISTS = """cmake_minimum_required(VERSION 3.25)
project(fit LANGUAGES C)
find_package(cadre REQUIRED)
add_executable(fit_shared fit.c)
target_link_libraries(fit_shared PRIVATE cadre::cadre)
add_executable(fit_inside fit.c)
target_link_libraries(fit_inside PRIVATE cadre::static)
"""


class Installation:
    """Below a folder of its own, with the program of README.md as app/fit.c; commands run in app/, with the checkout
    hidden where we may mount."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")
        os.chmod(self.folder, 0o755)
        self.prefix = os.path.join(self.folder, "prefix")
        self.app = os.path.join(self.folder, "app")
        os.mkdir(self.app)
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
            self.readme = file.read()
        self.write("fit.c", next(block for block in re.findall(r"```c\n(.*?)```", self.readme, re.S)
                                 if "int main" in block))
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", self.prefix], capture_output=True, text=True,
                              timeout=HANG_S, check=False)
        check_equal(done.returncode, 0, f"cmake --install: {done.stderr}")
        libraries = subprocess.run(["find", self.prefix, "-name", "cadre.pc"], capture_output=True, text=True,
                                   check=True).stdout.strip()
        self.environment = {name: value for name, value in clean_environment().items() if name != "LD_LIBRARY_PATH"}
        self.environment.update(PKG_CONFIG_PATH=os.path.dirname(libraries), CMAKE_PREFIX_PATH=self.prefix,
                                PATH=f"{self.prefix}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        with open(os.path.join(self.app, name), "w", encoding="utf-8") as file:
            file.write(text)

    def command(self, line):
        """The shell's command line, in a namespace in which the checkout is an empty folder, if we may make one."""
        if not AS_ROOT:
            return ["sh", "-c", line]
        return ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none '{SOURCE}' && {line}"]

    def call(self, line):
        done = subprocess.run(self.command(line), cwd=self.app, env=self.environment, capture_output=True, text=True,
                              timeout=HANG_S, check=False, stdin=subprocess.DEVNULL)
        check_equal(done.returncode, 0, f"status of {line}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def cluster(self):
        """A coordinator and a worker with two slots, which the commands find."""
        os.chmod(self.folder, 0o711)
        self.environment["CADRE_COORDINATOR"] = f"unix:{self.folder}/c.sock"
        daemons = []
        try:
            for name, options in (("coordinator", f"--listen unix:{self.folder}/c.sock"), ("worker", "--slots 2")):
                ready = os.path.join(self.folder, f"{name}.ready")
                daemons.append(self.start(f"cadre-{name} {options} --state-dir {self.folder}/{name}-state "
                                          f"--ready-file {ready}", f"{name}.log"))
                wait_for(f"{name} is ready", lambda ready=ready: os.path.exists(ready))
            yield
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait(HANG_S)

    def start(self, line, log):
        with open(os.path.join(self.folder, log), "wb") as file:
            return subprocess.Popen(self.command(f"exec {line}"), cwd=self.folder, env=self.environment,
                                    stdin=subprocess.DEVNULL, stdout=file, stderr=file)


def test_a_program_of_ones_own():
    with Installation() as here:
        for line in ("cc fit.c $(pkg-config --cflags --libs cadre) -o fit", "cadre run -n 2 ./fit"):
            check_in(line, here.readme, "README.md")
        here.call("cc fit.c $(pkg-config --cflags --libs cadre) -o fit")
        check_in("w = 3.000", here.call("./fit"), "by hand")
        check_in("w = 3.000", here.call("cadre run -n 2 ./fit"), "cadre run")
        check_in("libcadre.so", here.call("readelf -d ./fit"), "what the program needs")
        here.call("cc fit.c $(pkg-config --cflags --libs cadre-static) -o fit-alone")
        check_in("w = 3.000", here.call("./fit-alone"), "with Cadre inside")
        check("libcadre" not in here.call("readelf -d ./fit-alone"), "a program with Cadre inside needs no libcadre.so")


def test_one_version_everywhere():
    with open(os.path.join(SOURCE, "CHANGELOG.md"), encoding="utf-8") as file:
        version = re.search(r"^## (\S+)$", file.read(), re.M)[1]
    with Installation() as here:
        check_equal(here.call("cadre version 2>/dev/null || true"), f"cadre {version}\n", "the command")
        for program in ("cadre-coordinator", "cadre-worker"):
            check_in(version, here.call(f"{program} --version"), program)
        for name in ("cadre", "cadre-static", "cadre-client"):
            check_equal(here.call(f"pkg-config --modversion {name}"), f"{version}\n", name)
        here.write("CMakeLists.txt", CMAKE_LISTS.replace("cadre REQUIRED", f"cadre {version} EXACT REQUIRED"))
        here.call("cmake -S . -B build")


def test_with_cmake():
    with Installation() as here:
        here.write("CMakeLists.txt", CMAKE_LISTS)
        here.call("cmake -S . -B build && cmake --build build")
        for name in ("fit_shared", "fit_inside"):
            check_in("w = 3.000", here.call(f"build/{name}"), name)


def test_each_example_builds_alone():
    with Installation() as here:
        examples = os.path.join(here.prefix, "share/cadre/examples")
        with open(os.path.join(examples, "README.md"), encoding="utf-8") as file:
            commands = next(line for line in file if line.startswith("cmake -S /usr/share/cadre/examples/digits "))
        commands = commands.replace("/usr/share/cadre/examples", examples)
        check_in("test accuracy: ", here.call(commands.rstrip() + " --epochs 1"), commands)
        alone = sorted(name for name in os.listdir(examples)
                       if os.path.exists(os.path.join(examples, name, "CMakeLists.txt")) and name != "digits")
        check(len(alone) > 6, f"examples: {alone}")
        for name in alone:
            here.call(f"cmake -S {examples}/{name} -B {name} && cmake --build {name} -j 2")
        check_in("from the true ones", here.call("anywhere/anywhere mirrored"), "anywhere")
        check_equal(here.call("tour/tour/run_constant"), "(6)\n", "a program of the tour, with libcadre.so")
        link = os.path.join(here.prefix, "share/doc/libcadre-dev/examples")
        check_equal(os.path.realpath(link), os.path.realpath(examples), "where Debian has examples")


def test_as_a_job():
    with Installation() as here:
        here.call("cc fit.c $(pkg-config --cflags --libs cadre-static) -o fit")
        with here.cluster():
            check_in("w = 3.000", here.call("cadre submit --workers 2 ./fit"), "cadre submit")


if __name__ == "__main__":
    run(globals())
