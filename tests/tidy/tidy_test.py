#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that each rule fires: trees with one fault each, built in a temporary folder, and one without any."""
import os
import subprocess
import tempfile
import unittest
import unittest.mock

import benches
import examples
import glossary
import graph
import guide
import links
import measure
import rules
import shown
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


def links_of_tree(tree):
    """Compiles each file alone: source -> {other source: symbols}."""
    with tempfile.TemporaryDirectory() as folder:
        objects = {}
        for number, (path, text) in enumerate(sorted(tree.items())):
            source_path = os.path.join(folder, f"{number}.c")
            with open(source_path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            objects[path] = source_path + ".o"
            subprocess.run(["cc", "-w", "-O0", "-c", source_path, "-o", objects[path]], check=True)
        return links.links_of(objects)


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

    def test_pages(self):
        head = "// SPDX-License-Identifier: Apache-2.0\n"
        good = {"a/b.js": head + 'import { c } from "./c.js";\n', "a/c.js": head + "export const c = 1; // \"//\"\n"}
        self.quiet(good)
        self.fires("licence", {"a/b.js": "let a;\n"})
        self.fires("page", {"a/b.js": head + "a.innerHTML = name;\n"})
        self.fires("page", {"a/b.js": head + 'fetch("https://example.org/x.js");\n'})
        self.fires("page", {"a/b.html": f"<!-- {head[3:-1]} -->\n<p onclick=\"a()\">\n"})
        self.fires("columns", {"a/b.css": f"/* {head[3:-1]} */\n" + "a" * 121 + "\n"})
        self.fires("length", {"a/b.js": head + "a();\n" * 300})
        self.fires("module", {"a/b.js": head + 'import { c } from "./c.js";\n'})
        self.fires("module", good | {"a/c.js": head + 'import { b } from "./b.js";\n'})

    def test_licence_and_comments(self):
        self.fires("licence", {**source("common/base/b.c", ""), "common/base/b.c": "int a;\n"})
        self.fires("licence", {"tests/x": "#!/bin/sh\ntrue\n"})
        drawing = "# x\n\n```\nx\n```\n"
        self.quiet({"deploy/templates/README.md": drawing, "deploy/templates/x/README.md": drawing,
                    "deploy/templates/CMakeLists.txt": "add_executable(b x/b.c)\n",
                    "deploy/templates/x/b.c": "/* What it does. */\nint a;\n",
                    "deploy/templates/x/Makefile": "x:\n\ty\n"})
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
        for name, _ in rules.UNALIGNED + rules.IN_LIBRARIES:
            with self.subTest(call=name):
                self.fires(name, source("worker/library/mesh/b.c", f"int a = {name}(1);\n"))
        self.fires("stderr", source("worker/library/mesh/b.c", "FILE *a = stderr;\n"))
        self.fires("printf", source("worker/library/cuda/b.cu", "void f(void)\n{\n    a(); printf(1);\n}\n"))
        self.quiet(source("worker/library/mesh/b.c", "int a = my_exit(1) + b.exit(2) + snprintf(c); /* exit(1) */\n"))
        self.quiet(source("worker/host/daemon/b.c", "int a = printf(1);\n"))

    def test_lengths(self):
        body = "    a();\n"
        self.fires("length", source("common/base/b.c", "void f(void)\n{\n" + body * 86 + "}\n"))
        self.quiet(source("common/base/b.c", "void f(void)\n{\n" + body * 85 + "}\n"))
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

    def test_circles(self):
        self.assertEqual(graph.circles({"a": ["b"], "b": ["c"], "c": []}), [])
        self.assertEqual(graph.circles({"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["e"], "e": ["c"], "f": ["f"]}),
                         [["c", "d", "e"], ["a", "b"]])
        self.assertEqual(graph.by_folder({"x/a": ["y/b", "x/c"], "y/b": []}), {"x": {"y"}, "y": set()})

    def test_links(self):
        """Objects of a small tree: who calls upwards is told with the symbol, and so is each kind of circle."""
        tree = {"common/pure/a.c": "int base(void); int a(void) { return base(); }",
                "common/base/b.c": "int a(void); int base(void) { return a(); }",
                "worker/core/c.c": "int d(void); int a(void); int c(void) { return d() + a(); }",
                "worker/core/d.c": "int c(void); int d(void) { return c(); }"}
        found = links_of_tree(tree)
        self.assertEqual(found["common/pure/a.c"], {"common/base/b.c": ["base"]})
        faults = list(links.faults_of(found, {}))
        self.assertIn("common/pure/a.c: link: needs base of common/base/b.c, which it may not include", faults)
        self.assertIn("common/base: link: a circle of folders: common/base, common/pure", faults)
        self.assertTrue(any(fault.startswith("worker/core: link: 2 files need each other") for fault in faults))
        self.assertFalse(any("c.c: link: needs a " in fault for fault in faults))

    def test_drawings(self):
        text = "# A\n\n" + links.DRAWN + ".\n\n```\n  a.c  b.c  above all\n  c.c\n```\n"
        found = {"x/a.c": {"x/b.c": ["f"], "x/c.c": ["g"], "y/a.c": ["h"]}, "x/b.c": {}, "x/c.c": {}}
        self.assertEqual(list(links.drawing_faults(found, {"x": text})), [])
        found = {"x/b.c": {"x/a.c": ["f"]}, "x/c.c": {"x/b.c": ["g", "h"]}, "x/d.c": {}}
        self.assertEqual(list(links.drawing_faults(found, {"x": text})),
                         ["x/README.md: drawing: b.c needs f of a.c", "x/README.md: drawing: c.c needs g, h of b.c",
                          "x/README.md: drawing: d.c is not in it"])
        self.assertEqual(list(links.drawing_faults(found, {"x": "# A\n"})), [])

    def test_includes(self):
        circle = {"common/rpc/a.h": {"common/wire/b.h"}, "common/wire/b.h": {"common/rpc/a.h"}}
        faults = list(links.faults_of({}, circle))
        self.assertEqual([fault for fault in faults if ": include: " in fault],
                         ["common/rpc: include: a circle of folders: common/rpc, common/wire",
                          "common/rpc/a.h: include: a circle of files: common/rpc/a.h, common/wire/b.h"])

    def test_one_name_in_two_programs(self):
        """Each calls its own."""
        tree = {"coordinator/daemon/work.c": "int work(void) { return 1; }",
                "worker/host/daemon/work.c": "int work(void) { return 2; }",
                "worker/host/daemon/e.c": "int work(void); int e(void) { return work(); }"}
        self.assertEqual(links_of_tree(tree)["worker/host/daemon/e.c"], {"worker/host/daemon/work.c": ["work"]})

    def test_measure(self):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {"a.c": HEAD + "static int f(void)\n{\n    CADRE_ASSERT(1);\n    return 1;\n}\n",
                               "a.h": HEAD + "/* What it does. */\nint do_it(int a);\n\nint other(void);\n"}.items():
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            rows = dict(measure.measure(measure.sources_of(root, [""])))
        self.assertEqual(rows["function lines, median/p90/max"], "4/4/4")
        self.assertEqual(rows["prototypes with a comment right above"], "50.0%")
        self.assertEqual(rows["functions named by one bare word"], "100.0%")
        self.assertEqual(rows["asserts a function"], "1.00")

    def test_shape(self):
        rows = [("functions named by one bare word", "1.9%"), ("prototypes with a comment right above", "90.0%")]
        self.assertEqual(measure.check(rows), [])
        rows = [("functions named by one bare word", "2.1%"), ("prototypes with a comment right above", "89.9%")]
        self.assertEqual([fault.split(": ")[1] for fault in measure.check(rows)],
                         ["functions named by one bare word", "prototypes with a comment right above"])

    def test_folder(self):
        files = {}
        for number in range(rules.FOLDER_SOURCES_MAX - 1):
            files.update(source(f"common/pure/b{number}.h", "int a;\n"))
        files["common/pure/CMakeLists.txt"] = GOOD["common/pure/CMakeLists.txt"]
        self.fires("folder", files)
        self.quiet({path: text for path, text in files.items() if path != "common/pure/b0.h"})

    GLOSSARY = ("# A\n\n## Terms\n\n| a | b | c |\n| - | - | - |\n| rank | a number | MPI |\n\n"
                "## Not in this tree\n\n| word | write |\n| - | - |\n| party, let go | group |\n\n"
                "## Not as names\n\n| word | write | except |\n| - | - | - |\n| line | row | cache_line |\n")

    def refused(self, path, text, tables=GLOSSARY):
        """The words that the glossary refuses in a file."""
        words, faults = glossary.read(tables)
        self.assertEqual(faults, [])
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
            return [word for _, word, _ in glossary.refused_in(words, tidy.Source(root, path))]

    def test_glossary_refuses_words(self):
        self.assertEqual(self.refused("worker/a.c", "int party_close;\n"), ["party"])
        self.assertEqual(self.refused("worker/a.c", "int PARTY_MAX;\n"), ["party"])
        self.assertEqual(self.refused("worker/a.c", "/* Of a party. */\n"), ["party"])
        self.assertEqual(self.refused("worker/a.c", "f(\"no party\");\n"), ["party"])
        self.assertEqual(self.refused("worker/README.md", "It is let\n * go.\n"), ["let go"])
        self.assertEqual(self.refused("worker/a.c", "int partying; /* counterparty */\n"), [])

    def test_glossary_refuses_names(self):
        self.assertEqual(self.refused("worker/a.c", "int line_at; /* a line */\n"), ["line"])
        self.assertEqual(self.refused("worker/line.c", "int a;\n"), ["line"])
        self.assertEqual(self.refused("worker/a.c", "int cache_line; /* a line */ f(\"line\"); inline int b;\n"), [])
        self.assertEqual(self.refused("tests/a.c", "int line_at;\n"), [])  # not shipped

    def test_glossary_has_tables(self):
        for heading in ("Terms", "Not in this tree", "Not as names"):
            self.assertTrue(glossary.read(self.GLOSSARY.replace(heading, "Other"))[1])
        self.assertIn("no source", glossary.read(self.GLOSSARY.replace("| MPI |", "| |"))[1][0])
        with unittest.mock.patch.object(glossary, "TERMS_MAX", 0):
            self.assertIn("1 terms", glossary.read(self.GLOSSARY)[1][0])

    def test_needed(self):
        self.assertEqual(symbols.check_needed("/bin/sh"), 0)

    def shown_faults(self, program):
        """Of a header with functions, typedefs and macros, and one program in deploy/examples."""
        header = HEAD + (
            "CADRE_API int cadre_one(int a);\nCADRE_API void cadre_two(\n    const char *b); /* cadre_ghost(1) */\n"
            "typedef int (*cadre_function)(int a);\ntypedef int cadre_other(int a);\n"
            "#define CADRE_DO(call) \\\n    cadre_two((call), #call)\n#define CADRE_SIZE 3\n"
            "static inline void cadre_inner(void)\n{\n}\n")
        tree = {"common/include/cadre/a.h": header, "deploy/examples/x/x.c": program,
                "tests/documents/b.c": "/* Of cadre/a.h. */\nint b;\n"}
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return shown.check(root)[2]

    def test_guide(self):
        tree = {"README.md": "`cadre_nothing`",
                "common/a.c": 'text = "no coordinator answers at %s: "\n    "start it";\n{ROW(T, "workers")}',
                "deploy/cadre/main.c": 'static const struct verb verbs[] = {{"run", 0}};',
                "deploy/docs/a.md": "`CADRE_NONE`, `cadre run --workers 2`\n```\ncadre rn --wrkers 2\n```\n",
                "deploy/docs/troubleshooting.md": "## Compiling\n| `foreign` |\n## Ours\n"
                                                  "| `no coordinator answers at … start it` |\n| `it is asleep` |\n"}
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertEqual(list(guide.faults(root)),
                             ["README.md: cadre_nothing is in no source",
                              "deploy/docs/a.md: CADRE_NONE is in no source",
                              "deploy/docs/a.md: --wrkers is no option of ours: cadre rn --wrkers 2",
                              "deploy/docs/a.md: `cadre rn` is no verb",
                              "deploy/docs/troubleshooting.md:5: no source says 'it is asleep'"])
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
                file.write("word " * 1501)
            self.assertIn("README.md: 1501 words", "".join(guide.faults(root)))

    def examples_faults(self, index):
        program = "static int early(int);\n\nint run(\n    int a)\n{\n}\n\nint early(int a)\n{\n    return a;\n}\n"
        tree = {"README.md": index, "one/one.c": program, "tour/a.c": "int a;\n", "tour/show.c": "int b;\n"}
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree.items():
                path = os.path.join(root, "deploy/examples", path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return examples.check(root)

    def test_examples(self):
        good = "[a](tour/a.c) [one](one) [`run`](one/one.c#L3-L6) [`early`](one/one.c#L8-L11) [`return`](one/one.c#L10)"
        self.assertEqual(self.examples_faults(good), ([], good))
        faults, corrected = self.examples_faults(good.replace("L8-L11", "L1"))
        self.assertIn("early is at one/one.c#L8-L11, not #L1", faults[0])
        self.assertEqual(corrected, good)
        for wrong, fault in ((good.replace("[a](tour/a.c)", ""), "no link to tour/a.c"),
                             (good.replace("[one](one)", ""), "no link to one"),
                             (good + "[x](two)", "there is no two"),
                             (good + "[`absent`](one/one.c#L1)", "one/one.c has no absent")):
            self.assertEqual(self.examples_faults(wrong)[0], [fault])

    def test_shown(self):
        self.assertEqual(self.shown_faults("int main(void) { cadre_one(1); CADRE_DO(2); cadre_two(0); }\n"), [])
        self.assertEqual(self.shown_faults("int main(void) { cadre_one(1); CADRE_DO(2); }\n"), [])  # by the macro
        self.assertEqual(self.shown_faults("int main(void) { g(cadre_one); CADRE_DO(2); }\n"), [])  # by its name
        for program in ("int a;\n", "/* cadre_one(1); CADRE_DO(2); */\n", "const char *a = \"cadre_one(1)\";\n",
                        "int cadre_one_more;\n"):
            with self.subTest(program=program):
                faults = self.shown_faults(program)
                self.assertEqual([fault.split()[1] for fault in faults], ["CADRE_DO", "cadre_one", "cadre_two"])
                self.assertIn("tests/documents/b.c", faults[1])

    def test_public_functions_are_counted(self):
        program = "int main(void) { cadre_one(1); CADRE_DO(2); }\n"
        with unittest.mock.patch.object(rules, "PUBLIC_FUNCTIONS_MAX", 2):
            self.assertEqual(self.shown_faults(program), [])
        with unittest.mock.patch.object(rules, "PUBLIC_FUNCTIONS_MAX", 1):
            self.assertIn("2 public functions, and at most 1", self.shown_faults(program)[0])

    def bench_faults(self, changes):
        """Of two parts, one of which runs its program by name, the other one of several; with some files changed."""
        tree = {"run": 'PARTS = ["one", "two"]\nimport sys\n',
                "CMakeLists.txt": "function(cadre_bench_program name)\n  cadre_program(${name})\nendfunction()\n",
                "one/CMakeLists.txt": "cadre_bench_program(bench_one SOURCES a.c) # not add_executable(bench_ghost)\n",
                "one/measure.py": '"""Also bench_other."""\nrun("bench_one")\n',
                "two/CMakeLists.txt": "foreach(kind a b)\n  add_executable(\n  bench_${kind}_two x.c)\nendforeach()\n",
                "two/measure.py": 'run(f"bench_{kind}_two")\n', "driver/programs.py": '"bench_other"\n'}
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**tree, **changes}.items():
                os.makedirs(os.path.dirname(os.path.join(root, benches.BENCH, path)), exist_ok=True)
                with open(os.path.join(root, benches.BENCH, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return benches.check(root)[1]

    def test_benches(self):
        other = "cadre_bench_program(bench_other SOURCES b.c)\n"
        unreached = ["tests/bench/one/CMakeLists.txt: bench_other is run by no part: name it in a measure.py whose "
                     "folder tests/bench/run lists"]
        self.assertEqual(self.bench_faults({}), [])
        self.assertEqual(self.bench_faults({"two/measure.py": 'run("bench_b_two")\n'}), [])
        self.assertEqual(self.bench_faults({"one/CMakeLists.txt": other}), unreached)  # a comment names it
        self.assertEqual(self.bench_faults({"one/CMakeLists.txt": other, "one/more.py": 'run("bench_other")\n'}), [])
        test = {"one/CMakeLists.txt": other, "one/test_a.py": '"bench_other"\n'}
        self.assertEqual(self.bench_faults(test), unreached)
        self.assertEqual(self.bench_faults({"two/measure.py": 'run("bench_twofold")\n'}),
                         [text.replace("one", "two").replace("other", "${kind}_two") for text in unreached])
        self.assertEqual(self.bench_faults({"three/measure.py": ""}),
                         ["tests/bench/three: tests/bench/run does not list this part"])
        self.assertEqual(self.bench_faults({"run": 'PARTS = ["one", "two", "four"]\n'}),
                         ["tests/bench/run: the part four has no measure.py"])


if __name__ == "__main__":
    unittest.main()
