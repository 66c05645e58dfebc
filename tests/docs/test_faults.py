#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trees with one fault each: the build of the site, or the checker of links, fails and names it."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import tree

README = "deploy/docs/README.md"
PROBE = tree.HEADERS + "/sparse.h"


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.out = os.path.join(folder.name, "build-docs")
        tree.copy(self.root)

    def change(self, path, old, new):
        text = tree.read(self.root, path)
        self.assertIn(old, text)
        tree.write(self.root, path, text.replace(old, new, 1))

    def declare(self, text):
        """Puts text at the end of a header; the line that it begins in."""
        before = tree.read(self.root, PROBE).index("#ifdef __cplusplus\n}")
        self.change(PROBE, "#ifdef __cplusplus\n}", text + "\n#ifdef __cplusplus\n}")
        return tree.read(self.root, PROBE).count("\n", 0, before) + 1

    def fails(self, *patterns):
        status, output = tree.build(self.root, self.out)
        self.assertEqual(status, 1, output)
        for pattern in patterns:
            self.assertRegex(output, pattern)

    def succeeds(self):
        status, output = tree.build(self.root, self.out)
        self.assertEqual(status, 0, output)

    def test_good_tree(self):
        self.declare("/* A. */\nCADRE_API int cadre_a(void);\n\n"
                     "/* B. */\nenum cadre_b {\n    CADRE_B_ONE,\n    CADRE_B_TWO\n};\n"
                     "\n/* C. */\ntypedef struct cadre_c {\n    int plain; /* not a comment of the next */\n"
                     "    const char *also_plain;\n    int dims[3];\n} cadre_c;\n")
        self.succeeds()

    def test_what_else_is_refused(self):
        for arguments, pattern in [(["--fast"], "unknown option --fast"), (["a", "b"], "one folder at most"),
                                   ([os.path.join(self.root, "CMakeLists.txt")], "cannot make the folder")]:
            with self.subTest(arguments=arguments):
                status, output = tree.build(self.root, *arguments)
                self.assertEqual(status, 1)
                self.assertIn(pattern, output)
        tree.write(self.root, "build-docs/html/mine.html", "<p>")
        self.fails("html is no site that this made")
        self.assertTrue(os.path.exists(os.path.join(self.out, "html/mine.html")))
        self.assertIn("usage: deploy/docs/build [OUT]", tree.build(self.root, "--help")[1])

    def test_undocumented_function(self):
        line = self.declare("/* One. */\nCADRE_API int cadre_one(void);\nCADRE_API int cadre_two(void);\n")
        self.fails(rf"{re.escape(PROBE)}:{line + 2}: warning: Member cadre_two\(void\) \(function\)",
                   "docs/build: doxygen warns")

    def test_undocumented_function_behind_a_section(self):
        line = self.declare("/* --- a section. It is long, so that\n * there are three\n * lines. --- */\n\n"
                            "CADRE_API int cadre_two(void);\n")
        self.fails(rf"{re.escape(PROBE)}:{line + 4}: warning: Member cadre_two\(void\)")

    def test_other_declarations_without_a_comment(self):
        for text, pattern in [
                ("struct cadre_x {\n    int a;\n};\n", "Compound cadre_x"),
                ("enum cadre_x {\n    CADRE_X\n};\n", r"cadre_x \(enumeration\)"),
                ("typedef int (*cadre_x)(void);\n", r"cadre_x\)\(void\) \(typedef\)|cadre_x \(typedef\)"),
                ("typedef struct cadre_x cadre_x;\n", r"cadre_x \(typedef\)"),
                ("#define CADRE_X(a) (a)\n", r"CADRE_X\(a\) \(macro"),
                ("#define CADRE_X 3\n", r"CADRE_X \(macro"),
                ("/* X. */\nstruct cadre_x {\n    void (*call)(int a);\n};\n", r"call\)\(int a\) \(variable\)")]:
            with self.subTest(text=text):
                before = tree.read(self.root, PROBE)
                self.declare(text)
                self.fails(pattern)
                tree.write(self.root, PROBE, before)

    def test_header_that_is_not_listed(self):
        tree.write(self.root, tree.HEADERS + "/other.h", "/* SPDX-License-Identifier: Apache-2.0\n * Other. */\n")
        self.fails(r"reference\.md: other\.h is missing")

    def test_dead_links_of_documents(self):
        for target, pattern in [("absent.md", "no such file"), ("reference.md#absent", 'no heading "absent"'),
                                ("#absent", 'no heading "absent"'), ("../../../outside.md", "no such file"),
                                ("Doxyfile#absent", "only Markdown")]:
            with self.subTest(target=target):
                tree.write(self.root, README, f"# Documents\n\n[a link]({target})\n")
                self.fails(rf"{re.escape(README)}:3: dead link: {re.escape(target)}: .*{pattern}")
        tree.write(self.root, README, "# A\n\n`[x](a.md)` [b](reference.md#data) [c](#a) [d](https://example.org/x)\n\n"
                   "```\n[y](b.md)\n```\n")
        self.succeeds()

    def check_site(self, html):
        site = os.path.join(self.root, "site")
        tree.write(self.root, "site/a.html", html)
        tree.write(self.root, "site/b.html", '<p id="here">')
        checker = os.path.join(tree.ROOT, "deploy/docs/dead_links.py")
        run = subprocess.run([sys.executable, "-B", checker, "--html", site],
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout

    def test_dead_links_of_pages(self):
        good = '<a href="b.html#here">b</a><a href="https://example.org/">c</a>'
        self.assertEqual(self.check_site(good), (0, "1 links, 0 dead\n"))
        for html, pattern in [('<a href="c.html">', "no such page"), ('<a href="b.html#there">', 'no anchor "there"'),
                              ('<a href="#there">', 'no anchor "there"'), ('<img src="c.png">', "no such page"),
                              ('<script src="https://example.org/x.js"></script>', "loaded from the network"),
                              ('<link rel="stylesheet" href="//example.org/x.css">', "loaded from the network")]:
            with self.subTest(html=html):
                status, output = self.check_site(good + html)
                self.assertEqual(status, 1)
                self.assertRegex(output, f"^a.html:1: dead link: .*{pattern}")
        tree.write(self.root, "site/navigation.js", "['B','b.html#gone',1]\n")
        self.assertRegex(self.check_site(good)[1], "navigation.js:1: dead link: b.html#gone")

    def test_nothing_to_check_is_a_fault(self):
        self.assertEqual(self.check_site("<p>")[0], 1)


if __name__ == "__main__":
    tree.skip_without_doxygen()
    unittest.main()
