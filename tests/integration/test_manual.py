# SPDX-License-Identifier: Apache-2.0
"""The manual pages of an installation: one of each program and of each verb, with every option of --help, without a
warning of groff or mandoc."""
import gzip
import os
import re
import shutil
import subprocess
import tempfile

from cluster import clean_environment, program
from testing import HANG_S, check, check_equal, check_in, run, skip

BUILD = os.environ.get("CADRE_TEST_BUILD", "")
PROGRAMS = ["cadre-coordinator", "cadre-worker", "cadre-devices"]
FLAG = re.compile(r"^ +(?:-\w, )?--(?:\[no-\])?([a-z][a-z-]*)", re.M)
DATE = "missing date"  # pages have none: a build of the same sources is the same


def call(*argv, status=0, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, check=False, env=clean_environment(),
                          **options)
    check_equal(done.returncode, status, f"status of {' '.join(argv)}: {done.stderr}")
    return done


class Pages:
    """Those of an installation, as text: name -> source."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")

    def __enter__(self):
        call("cmake", "--install", BUILD, "--prefix", self.folder)
        self.man = os.path.join(self.folder, "share/man")
        self.pages = {}
        for name in sorted(os.listdir(os.path.join(self.man, "man1"))):
            with gzip.open(os.path.join(self.man, "man1", name), "rt", encoding="utf-8") as file:
                self.pages[name.removesuffix(".1.gz")] = file.read()
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


def commands():
    """Page -> the command line whose --help it is made of."""
    found = {"cadre": ["cadre"]} | {name: [name] for name in PROGRAMS}
    for above, begin in ((["cadre"], "Verbs:\n"), (["cadre", "pki"], "(mutual TLS).\n\n")):
        text = call(program("cadre"), *above[1:], "--help").stdout
        for line in text[text.index(begin) + len(begin):].splitlines():
            if not line:
                break
            verb = line.split()[0]
            if verb != "help":
                found["-".join([*above, verb])] = [*above, verb]
    return found


def rendered(source):
    """The page as people read it, on lines that are long enough for all of it."""
    done = call("groff", "-man", "-Tutf8", "-P-cbou", "-rLL=500n", input=source)
    return done.stdout.replace("\N{HYPHEN}", "-")


def need_groff():
    if shutil.which("groff") is None:
        skip("groff is not installed (groff-base)")


def test_each_command_has_a_page_with_its_options():
    need_groff()
    with Pages() as here:
        wanted = commands()
        check_equal(sorted(here.pages), sorted(wanted), "pages")
        for name, argv in wanted.items():
            text = rendered(here.pages[name])
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
                check_in(f"\n{section}\n", text, f"the page {name}")
            printed = call(program(argv[0]), *argv[1:], "--help").stdout
            for flag in FLAG.findall(printed):
                check(re.search(rf"^ +(-\w, )?--(\[no-\])?{flag}\b", text, re.M), f"{name} has no --{flag}: {text}")
            for variable in re.findall(r"; (CADRE_\w+)\]|\[(CADRE_\w+)\]", printed):
                check_in("".join(variable), text[text.index("\nENVIRONMENT\n"):], f"the page {name}")
            for other in re.findall(r"([a-z-]+)\(1\)", text[text.index("SEE ALSO"):].rsplit("\n", 2)[0]):
                check(other in wanted, f"{name} refers to {other}(1), which is not there")
        check_in("EXAMPLES", rendered(here.pages["cadre-submit"]), "the page of submit")
        check_in("/etc/cadre/worker.conf", rendered(here.pages["cadre-worker"]), "the page of the worker")
        check_in("CADRE_WORKER_CONFIG", rendered(here.pages["cadre-worker"]), "the page of the worker")


def test_groff_has_no_warning():
    need_groff()
    with Pages() as here:
        for name, source in here.pages.items():
            check_equal(call("groff", "-man", "-ww", "-z", "-Tutf8", input=source).stderr, "", f"warnings of {name}")


def test_mandoc_has_no_warning():
    if shutil.which("mandoc") is None:
        skip("mandoc is not installed")
    with Pages() as here:
        for name, source in here.pages.items():
            done = subprocess.run(["mandoc", "-Tlint", "-W", "warning"], input=source, capture_output=True, text=True,
                                  timeout=HANG_S, check=False)
            check_equal([line for line in done.stdout.splitlines() if DATE not in line], [], f"warnings of {name}")


def test_help_names_the_page():
    for page, argv in commands().items():
        if argv[0] == "cadre" and len(argv) > 1 and page != "cadre-pki":
            check(call(program("cadre"), *argv[1:], "--help").stdout.endswith(f"\nManual page: man {page}\n"),
                  f"--help of {page}")
    check_in("Manual page: man cadre-submit", call(program("cadre"), "help", "submit").stdout, "cadre help submit")
    check_in("man cadre-VERB", call(program("cadre"), "help").stdout, "cadre help")
    check_in("there is no page", call(program("cadre"), "__manual", "cadre-nothing", status=2).stderr, "the refusal")


def test_man_finds_them():
    if shutil.which("man") is None:
        skip("man is not installed")
    with Pages() as here:
        for name in here.pages:
            check_in(f"/man1/{name}.1.gz", call("man", "-M", here.man, "-w", name).stdout, "where man finds it")


run(globals())
