#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that each rule fires: trees with one fault each, built in a temporary folder, and one without any."""
import os
import subprocess
import tempfile
import unittest

import rules
import symbols
import tidy

HEAD = "/* SPDX-License-Identifier: Apache-2.0\n * Purpose. */\n"
GOOD = {
    "common/pure/README.md": "# Pure\n",
    "common/pure/CMakeLists.txt": "cadre_library(cadre_pure SOURCES a.c)\n",
    "common/pure/a.c": HEAD + '#include "common/pure/a.h"\n#include <string.h>\nvoid f(void)\n{\n    g("a // b");\n}\n',
    "common/pure/a.h": HEAD + "void f(void);\n",
}


def faults_with(changes):
    """The rules that fire on the good tree with some files changed, added, or (None) removed."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**GOOD, **changes}.items():
            if text is not None:
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
        return [line.split(": ")[1] for line in tidy.Tidy(root).check()]


def source(path, text):
    """A further file, with all that a folder needs around it."""
    folder = os.path.dirname(path)
    name = os.path.basename(path)
    return {path: HEAD + text, folder + "/README.md": "# A\n", folder + "/CMakeLists.txt": name + "\n"}


class Rules(unittest.TestCase):
    def fires(self, rule, changes):
        self.assertEqual(faults_with(changes), [rule])

    def quiet(self, changes):
        self.assertEqual(faults_with(changes), [])

    def test_good_tree(self):
        self.quiet({})

    def test_text(self):
        self.fires("tab", source("common/base/b.c", "int\ta;\n"))
        self.fires("blank", source("common/base/b.c", "int a; \n"))
        self.fires("columns", source("common/base/b.c", "/* " + "x" * 99 + " */\n"))
        self.fires("newline", source("common/base/b.c", "int a;"))
        self.fires("leftover", source("common/base/b.c", "/* TODO: more */\n"))
        self.fires("machine path", {"common/pure/README.md": "see /work/x\n"})
        self.quiet({"common/pure/README.md": "see ./work/x and a/home/b\n"})

    def test_licence_and_comments(self):
        self.fires("licence", {**source("common/base/b.c", ""), "common/base/b.c": "int a;\n"})
        self.fires("licence", {"tests/x": "#!/bin/sh\ntrue\n"})
        self.fires("comment", source("common/base/b.c", "int a; // no\n"))
        self.fires("comment", source("worker/library/cuda/b.cu", "int a; // no\n"))

    def test_layers(self):
        for path, include in [
                ("common/pure/b.c", "<stdio.h>"), ("common/base/b.c", '"common/wire/w.h"'),
                ("coordinator/core/b.c", '"worker/core/w.h"'), ("coordinator/core/b.c", "<time.h>"),
                ("worker/core/b.c", '"common/base/clock.h"'), ("worker/core/b.c", '"coordinator/core/c.h"'),
                ("worker/library/runtime/b.c", "<grpc/grpc.h>"), ("coordinator/engine/b.c", "<uv.h>"),
                ("common/rpc/b.c", "<sqlite3.h>"), ("common/rpc/b.c", '"cadre/v1/jobs.pb-c.h"'),
                ("deploy/examples/x/b.c", '"common/base/error.h"'), ("common/base/b.c", '"error.h"'),
                ("worker/library/mesh/b.c", '"worker/library/input/i.h"'), ("elsewhere/b.c", '"x/y.h"')]:
            with self.subTest(path=path, include=include):
                files = source(path, f"#include {include}\n")
                if path.startswith("common/pure/"):
                    files["common/pure/CMakeLists.txt"] = "a.c b.c\n"
                self.fires("layer", files)
        for path, include in [
                ("common/rpc/b.c", "<grpc/grpc.h>"), ("common/wire/b.c", '"cadre/v1/jobs.pb-c.h"'),
                ("worker/host/agent/b.c", "<uv.h>"), ("deploy/examples/x/b.c", '"net.h"'),
                ("deploy/examples/x/b.c", '"cadre/cadre.h"'), ("coordinator/store/b.c", "<sqlite3.h>")]:
            with self.subTest(path=path, include=include):
                self.quiet(source(path, f"#include {include}\n"))

    def test_calls(self):
        for name, _ in rules.ANYWHERE + rules.IN_LIBRARIES:
            with self.subTest(call=name):
                self.fires(name, source("worker/library/mesh/b.c", f"int a = {name}(1);\n"))
        self.fires("stderr", source("worker/library/mesh/b.c", "FILE *a = stderr;\n"))
        self.fires("printf", source("worker/library/cuda/b.cu", "void f(void)\n{\n    a(); printf(1);\n}\n"))
        self.quiet(source("worker/library/mesh/b.c", "int a = my_exit(1) + b.exit(2) + snprintf(c); /* exit(1) */\n"))
        self.quiet(source("worker/host/daemon/b.c", "int a = printf(1);\n"))

    def test_lengths(self):
        body = "    a();\n"
        self.fires("length", source("common/base/b.c", "void f(void)\n{\n" + body * 99 + "}\n"))
        self.quiet(source("common/base/b.c", "void f(void)\n{\n" + body * 98 + "}\n"))
        self.fires("length", source("common/base/b.c", "int a;\n" * 599))

    def test_built_and_described(self):
        self.fires("unbuilt", {**source("common/base/b.c", ""), "common/base/CMakeLists.txt": "xb.c\n"})
        self.quiet({**source("common/base/b.c", ""), "common/base/CMakeLists.txt": "foreach(n b)\n ${n}.c\n"})
        self.fires("unbuilt", {**source("worker/library/cuda/b.cu", ""), "worker/library/cuda/CMakeLists.txt": "b.c\n"})
        self.fires("unbuilt", {**source("common/base/a_b.c", ""), "common/base/CMakeLists.txt": "(n c) a_${n}.c\n"})
        self.quiet({**source("common/base/a_b.c", ""), "common/base/CMakeLists.txt": "(n b) a_${n}.c\n"})
        self.fires("readme", {**source("common/base/b.c", ""), "common/base/README.md": None})

    def test_symbols(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "core.c")
            for body, status in [("extern int read(void); int f(void) { return read(); }", 1),
                                 ("extern int strcmp(const char *, const char *); int f(const char *a, const char *b)"
                                  " { return strcmp(a, b); }", 0)]:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(body)
                subprocess.run(["cc", "-w", "-O0", "-c", path, "-o", path + ".o"], check=True)
                self.assertEqual(symbols.check_core(path + ".o", []), status)
            self.assertEqual(symbols.check_absent("x", folder), 1)
            os.unlink(path)
            self.assertEqual(symbols.check_absent("x", folder), symbols.SKIPPED)

    def test_runtime_layers(self):
        low, high = (f"worker/library/runtime/{name}/" for name in ("border", "lifecycle"))
        for low_body, high_body, status in [
                ("int f(void) { return 0; }", "int f(void); int g(void) { return f(); }", 0),
                ("int g(void); int f(void) { return g(); }", "int g(void) { return 0; }", 1)]:
            with tempfile.TemporaryDirectory() as root:
                objects = []
                for folder, body in (low, low_body), (high, high_body):
                    objects.append(os.path.join(root, "worker/library/runtime/CMakeFiles/r.dir", folder[23:] + "a.c.o"))
                    os.makedirs(os.path.dirname(objects[-1]))
                    subprocess.run(
                        ["cc", "-w", "-c", "-x", "c", "-", "-o", objects[-1]], input=body.encode(), check=True)
                self.assertEqual(symbols.check_layers(root, objects), status)
        self.assertEqual(symbols.circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}), [["b", "c"]])

    def test_needed(self):
        self.assertEqual(symbols.check_needed("/bin/sh"), 0)


if __name__ == "__main__":
    unittest.main()
