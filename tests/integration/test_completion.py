# SPDX-License-Identifier: Apache-2.0
"""Completion as the shells do it: bash, zsh and fish load what `cmake --install` put below a prefix, and ask a cluster
with jobs and workers. bash and zsh have a terminal, and the tabulator is pressed."""
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile

from client import SUCCEEDED
from cluster import Cluster, clean_environment, program, script
from testing import HANG_S, Failure, check, check_equal, check_in, run, skip, wait_for

BUILD = os.environ.get("CADRE_TEST_BUILD", "")
REPORTER = os.environ.get("CADRE_TEST_REPORTER", "")
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[=>]|\x1b\][^\x07]*\x07|[\x00-\x08\x0e-\x1f]")


class Installed:
    """What an installation has for the shells, and a cluster with a job that runs and one that has ended."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")
        self.share = os.path.join(self.folder, "share")
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", self.folder], capture_output=True, text=True,
                              timeout=HANG_S, check=False)
        check_equal(done.returncode, 0, f"cmake --install: {done.stderr}")
        self.cluster = Cluster(workers=2)
        self.running = self.ended = 0

    def __enter__(self):
        self.cluster.__enter__()
        client = self.cluster.client
        self.ended = client.submit(script("exit 0"), name="short")
        client.wait(self.ended)
        self.running = client.submit(script("exec sleep 600"), name="digits")
        client.wait_running(self.running)
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.cluster.client.cancel(self.running)
                self.cluster.client.wait(self.running)
            self.cluster.__exit__(kind, error, trace)
        finally:
            shutil.rmtree(self.folder)

    @property
    def environment(self):
        return clean_environment() | {
            "CADRE_COORDINATOR": self.cluster.address, "HOME": self.folder, "TERM": "xterm", "LANG": "C.UTF-8",
            "XDG_DATA_DIRS": f"{self.share}:/usr/local/share:/usr/share", "XDG_CONFIG_HOME": self.folder,
            "PATH": f"{self.folder}/bin:/usr/local/bin:/usr/bin:/bin"}


def need(shell):
    if shutil.which(shell) is None:
        skip(f"{shell} is not installed")


class Terminal:
    """A shell on a terminal of 200 columns, with keys pressed one line at a time."""

    def __init__(self, argv, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, environment | {"COLUMNS": "200", "LINES": "50"})
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def read(self, seconds=0.02):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.text += CONTROL.sub("", os.read(self.fd, 65536).decode(errors="replace"))
            except OSError as error:
                raise Failure(f"the shell ended: {self.text[-500:]}") from error
            return True
        return False

    def press(self, keys):
        """Returns a function with what has been printed since."""
        begin = len(self.text)
        os.write(self.fd, keys.encode())

        def since():
            while self.read():
                pass
            return self.text[begin:]
        return since

    def until(self, keys, part):
        """Presses the keys, and waits for that text."""
        since = self.press(keys)
        try:
            wait_for(f"{part!r} behind {keys!r}", lambda: part in since())
        except Failure as failure:
            raise Failure(f"{failure}: {since()[-1500:]!r}") from None
        return since()


def check_terminal(here, terminal):
    """What bash and zsh have in common."""
    printed = terminal.until("cadre vers\t--hel\t\n", "usage: cadre version")
    check("unknown option" not in printed, printed)
    listed = terminal.until("\x15cadre job \t\t", str(here.running))
    check_in(str(here.ended), listed, "the jobs")
    terminal.until("\x15cadre drain w\t\t", "w1")
    terminal.until(f"\x15cadre cancel {here.running} --jso\t\b\b", "--json")
    terminal.until("\x15cadre-worker --log-level warn\t --hel\t\n", "usage: cadre-worker")
    with open(os.path.join(here.folder, "some-program"), "wb"):
        pass
    terminal.until("\x15cd ~\n", "$")
    terminal.until("cadre run ./some\t", "./some-program")


def test_bash_on_a_terminal():
    need("bash")
    if not os.path.exists(BASH_COMPLETION):
        skip("the package bash-completion is not installed")
    with Installed() as here:
        start = os.path.join(here.folder, "bashrc")
        with open(start, "w", encoding="utf-8") as file:
            file.write(f". {BASH_COMPLETION}\nPS1='ready$ '\nbind 'set enable-bracketed-paste off'\n")
        with Terminal(["bash", "--noprofile", "--rcfile", start, "-i"], here.environment) as terminal:
            terminal.until("", "ready$")
            check_terminal(here, terminal)


def test_zsh_on_a_terminal():
    need("zsh")
    with Installed() as here:
        with open(os.path.join(here.folder, ".zshrc"), "w", encoding="utf-8") as file:
            file.write(f"fpath=({here.share}/zsh/site-functions $fpath)\nautoload -Uz compinit\n"
                       f"compinit -u -d {here.folder}/dump\nPROMPT='ready$ '\nunsetopt zle_bracketed_paste\n")
        with Terminal(["zsh", "--no-globalrcs", "-i"], here.environment | {"ZDOTDIR": here.folder}) as terminal:
            terminal.until("", "ready$")
            check_terminal(here, terminal)
            terminal.until("\x15cadre logs \t\t", "digits, running")
            wait_for("the other job is listed", lambda: terminal.read() or "short, succeeded" in terminal.text)


def fish(here, line):
    """What fish offers for the line: candidate -> description."""
    done = subprocess.run(["fish", "--no-config", "-c",
                           f"source {here.share}/fish/vendor_completions.d/{line.split()[0]}.fish\n"
                           "complete -C \"$LINE\""], env=here.environment | {"LINE": line}, cwd=here.folder,
                          capture_output=True, text=True, timeout=HANG_S, check=False)
    check_equal(done.stderr, "", f"errors of fish at {line!r}")
    return dict((text + "\t").split("\t")[:2] for text in done.stdout.splitlines())


def test_fish():
    need("fish")
    with Installed() as here:
        check_equal(fish(here, "cadre lo"), {"logs": "print what a job's tasks wrote"}, "verbs")
        jobs = fish(here, "cadre cancel ")
        check_equal(jobs, {str(here.running): "digits, running"}, "jobs that can be cancelled")
        jobs = fish(here, "cadre verify ")
        check_equal(jobs, {str(here.running): "digits, running", str(here.ended): "short, succeeded"}, "jobs")
        check_equal(list(fish(here, f"cadre verify {here.running} ")), [str(here.ended)], "jobs not given yet")
        tasks = fish(here, f"cadre logs {here.running} --task ")
        check_equal(list(tasks), ["0"], "tasks")
        check_in("running, on w", tasks["0"], "task 0")
        check_equal(sorted(fish(here, "cadre workers ")), ["w0", "w1"], "workers")
        check_equal(list(fish(here, f"cadre get {here.ended} ")), [], "outputs")
        check_equal(list(fish(here, "cadre submit --restore ")), [str(here.running), str(here.ended)], "jobs")
        check_equal(list(fish(here, "cadre run --gpus=a")), ["--gpus=all"], "choices")
        check_equal(list(fish(here, "cadre run --output=li")), ["--output=lib/", "--output=libexec/"], "folders")
        check_in("--listen", fish(here, "cadre-coordinator --lis"), "options of a daemon")
        check_in("--json", fish(here, "cadre-devices --js"), "options of cadre-devices")


def complete(*arguments, **environment):
    done = subprocess.run([program("cadre"), "__complete", "--", *arguments], capture_output=True, text=True,
                          timeout=HANG_S, check=False, env=clean_environment() | environment)
    return done.returncode, done.stdout, done.stderr


def candidates(cluster, *arguments):
    """What is offered, without descriptions and without what the shell adds."""
    code, out, err = complete(*arguments, CADRE_COORDINATOR=cluster.address)
    check_equal((code, err), (0, ""), f"the answer to {arguments}")
    return sorted(line.partition("\t")[0] for line in out.splitlines()[:-1])


def test_jobs_that_have_ended_are_not_cancelled():
    with Cluster() as cluster:
        client = cluster.client
        with open(REPORTER, "rb") as file:
            program_bytes = file.read()
        ended = client.submit(program_bytes, arguments=["steps", "3"])
        check_equal(client.wait(ended).state, SUCCEEDED, "the one that ends")
        running = client.submit(script("exec sleep 600"))
        client.wait_running(running)
        for verb in ("cancel", "checkpoint"):
            check_equal(candidates(cluster, verb, ""), [str(running)], f"jobs to {verb}")
        check_equal(candidates(cluster, "cancel", str(running), ""), [], "none is left to cancel")
        for verb in ("job", "logs", "metrics", "verify"):
            check_equal(candidates(cluster, verb, ""), [str(ended), str(running)], f"jobs of {verb}")
        check_equal(candidates(cluster, "metrics", str(ended), ""), ["attempt", "loss"], "what it reported")
        check_equal(candidates(cluster, "metrics", str(ended), "loss", ""), ["attempt"], "and was not named yet")
        check_equal(candidates(cluster, "metrics", str(ended), "lo"), ["loss"], "by its beginning")
        check_equal(candidates(cluster, "metrics", str(running), ""), [], "a job that reports nothing")
        check_equal(candidates(cluster, "metrics", "77", ""), [], "no such job")
        client.cancel(running)
        client.wait(running)


def test_a_coordinator_that_does_not_answer():
    """There is nothing to offer then, nothing is printed, and a key is not waited for long."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for address in (f"127.0.0.1:{silent.getsockname()[1]}", "unix:/nowhere/c.sock", "no address at all"):
            code, out, err = complete("cancel", "", CADRE_COORDINATOR=address)
            check_equal((code, out, err), (0, ":none\n", ""), f"the answer without {address}")
            code, out, err = complete("cancel", "--coordinator", address, "")
            check_equal((code, out, err), (0, ":none\n", ""), f"the answer without {address}")


def test_an_installation_has_them_all():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", folder], capture_output=True, text=True,
                              timeout=HANG_S, check=False)
        check_equal(done.returncode, 0, f"cmake --install: {done.stderr}")
        share = os.path.join(folder, "share")
        for name in ("cadre", "cadre-coordinator", "cadre-worker", "cadre-devices"):
            for path in (f"bash-completion/completions/{name}", f"fish/vendor_completions.d/{name}.fish"):
                check(os.path.isfile(os.path.join(share, path)), f"{path} is not installed")
        check(os.path.isfile(os.path.join(share, "zsh/site-functions/_cadre")), "_cadre is not installed")


run(globals())
