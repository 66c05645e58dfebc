#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How plain comments become Doxygen's, and Markdown pages of the site."""
import glob
import os
import re
import unittest

import tree

import comments
import markdown_text
import pages

HEAD = "/* SPDX-License-Identifier: Apache-2.0\n * Purpose. */\n"


class Comments(unittest.TestCase):
    def marked(self, text, names=()):
        done = comments.marked(HEAD + text, set(names))
        begin = "/** @file\nPurpose. */\n"
        self.assertTrue(done.startswith(begin))
        return done[len(begin):]

    def test_marks(self):
        self.assertEqual(comments.marked(HEAD, set()), "/** @file\nPurpose. */\n")
        self.assertEqual(self.marked("/* A\n * b. */\nint a;\n"), "/** A\nb. */\nint a;\n")
        self.assertEqual(self.marked("#define A 1 /* one */\n"), "#define A 1 /**< one */ \n")
        self.assertEqual(self.marked("    int a; /* long\n             text */\n"), "    int a; /**< long\ntext */ \n")
        self.assertEqual(self.marked('f("/* no */");\n'), 'f("/* no */");\n')

    def test_members_without_a_comment_get_an_empty_one(self):
        self.assertEqual(self.marked("\n    int a;\n    int b; /* b */\n    int c;\n    /* d */\n    int d;\n"),
                         "\n    int a; /**< &zwnj; */\n    int b; /**< b */ \n    int c; /**< &zwnj; */\n"
                         "    /** d */\n    int d;\n")
        self.assertEqual(self.marked("\n    CADRE_A = 1,\n    CADRE_B\n"),
                         "\n    CADRE_A = 1, /**< &zwnj; */\n    CADRE_B /**< &zwnj; */\n")
        self.assertEqual(self.marked("\n    void (*f)(int a);\n    f(a);\n"), "\n    void (*f)(int a);\n    f(a);\n")

    def test_enums_in_one_line(self):
        self.assertEqual(self.marked("typedef enum cadre_e { CADRE_A = 1, CADRE_B } cadre_e;\n"),
                         "typedef enum cadre_e { CADRE_A = 1, /**< &zwnj; */ CADRE_B /**< &zwnj; */ } cadre_e;\n")
        self.assertEqual(comments.names_of("typedef enum cadre_e { CADRE_A = 1, CADRE_B } cadre_e;\n"),
                         {"CADRE_A", "CADRE_B", "cadre_e"})

    def test_special_characters_and_results(self):
        self.assertEqual(self.marked("/* a <b> @c \\n #d 5% `<e>` *ret_f f *ret_g[*ret_n]. */\n"),
                         "/** a \\<b\\> \\@c \\\\n \\#d 5\\% `<e>` `*ret_f` f `*ret_g[*ret_n]`. */\n")
        self.assertEqual(self.marked("/* `a\n * <b>` <c> */\n"), "/** `a\n<b>` \\<c\\> */\n")

        self.assertEqual(self.marked('/* "a/<b>", "<c d>", "\\n" "e", --flag, a -- b, *ret_ */\n'),
                         '/** `"a/<b>"`, `"<c d>"`, `"\\n"` "e", \\--flag, a -- b, `*ret_` */\n')

    def test_names_are_linked(self):
        names = comments.names_of("CADRE_API int cadre_a(int b);\ntypedef int (*cadre_f)(void);\n"
                                  "enum {\n    CADRE_X,\n};\ntypedef struct cadre_s {\n} cadre_s;\n"
                                  "#define CADRE_H_H\n#define CADRE_M 1\n")
        self.assertEqual(names, {"cadre_a", "cadre_f", "CADRE_X", "CADRE_M"})
        text = "/* cadre_a, CADRE_X; cadre_ab, cadre_a(1), cadre_a() `cadre_a` cadre/a */\n"
        self.assertEqual(self.marked(text, names),
                         "/** #cadre_a, #CADRE_X; cadre_ab, `cadre_a(1)`, #cadre_a() `cadre_a` cadre/a */\n")

    def test_examples(self):
        self.assertEqual(self.marked("/* A:\n *\n *     f(\"<x>\");\n *\n * B. */\n"),
                         "/** A:\n@code{.c}\n    f(\"<x>\");\n@endcode\nB. */\n")
        self.assertEqual(self.marked("/* A:\n *\n *     a ──▶ it's <b> */\n"),
                         "/** A:\n@verbatim\n    a ──▶ it's <b> @endverbatim */\n")
        self.assertEqual(self.marked("/* A\n *     b. */\n"), "/** A\n    b. */\n")
        with self.assertRaisesRegex(SystemExit, "empty line before and behind an example"):
            self.marked("/* A:\n *\n *     f();\n * B. */\n")

    def test_no_word_of_a_header_is_lost(self):
        added = re.compile(r"@code\{\.c\}|@(?:file|name|endcode|verbatim|endverbatim)\b|&zwnj;|@[{}]")
        for path in glob.glob(os.path.join(tree.ROOT, tree.HEADERS, "*.h")):
            text = tree.read("", path)
            with self.subTest(header=os.path.basename(path)):
                self.assertEqual(re.findall(r"\w+", added.sub("", comments.marked(text, set())).lower()),
                                 re.findall(r"\w+", text.replace(comments.LICENCE, "", 1).lower()))

    def test_sections(self):
        text = "\n/* --- one: of it --- */\n\nint a;\n\n/* --- two. Any thread;\n * so. --- */\n"
        self.assertEqual(self.marked(text),
                         "/** @name One: of it\n */ /** @{ */\n\nint a;\n/** @} */ /** @name Two\n"
                         "Any thread;\nso. */ /** @{ */\n/** @} */\n")


class Markdown(unittest.TestCase):
    def test_anchors(self):
        text = "# A `b` c!\n## A-b, c\n## [x](y) *z*\n## x z\n```\n# no\n```\n<a id=\"own\"></a>\n"
        self.assertEqual(markdown_text.anchors(text), {"a-b-c", "a-b-c-1", "x-z", "x-z-1", "own"})

    def test_targets(self):
        text = ("[a](b.md) ![c](d.png \"t\")\n`[e](f)` [`g`\nh](i(j).md)\n\n[k]: l.md\n<a href=\"m\">\n"
                "~~~\n[n](o)\n~~~\n")
        self.assertEqual(sorted(markdown_text.targets(text)),
                         [(1, "b.md"), (1, "d.png"), (2, "i(j).md"), (5, "l.md"), (6, "m")])

    def test_pages(self):
        text = ("# T\n## U V\n[a](../README.md#x) [b](#u-v) [x](../../examples/x) "
                "[h](../../../common/include/cadre/at_exit.h)\n"
                "[other](../../../proto/b) [p](https://e.org) `cadre_run` [`cadre_run`](#t)\n"
                "```sh\n[no](no.md)\n```\n")
        site = pages.Pages({"deploy/docs/README.md": "# X\n", "deploy/docs/guides/a.md": text,
                            "deploy/examples/x/README.md": "# E\n"}, {"cadre_run"})
        self.assertEqual(site.page("deploy/docs/guides/a.md"),
                         "# T {#guides_a}\n## U V {#guides_a_u-v}\n[a](index.html) [b](guides_a.html#guides_a_u-v) "
                         "[x](deploy_examples_x.html) [h](at__exit_8h.html)\nother (`proto/b`) [p](https://e.org) "
                         "<code>@ref cadre_run</code> [`cadre_run`](guides_a.html)\n```\n[no](no.md)\n```\n")

    def test_what_doxygen_reads_otherwise(self):
        text = "# 3. A\n**`a\nb`** and `it's` in ``c'd``\n```\n**`a`** `it's`\n```\n"
        site = pages.Pages({"deploy/docs/a.md": text}, set())
        self.assertEqual(site.page("deploy/docs/a.md"), "# 3\u2060. A {#a}\n<b>`a\nb`</b> and `` it's `` in ``c'd``\n"
                         "```\n**`a`** `it's`\n```\n")

    def test_links_to_programs(self):
        text = "# A\n[m](../../tests/documents/m_x.c) [x](../examples/y/x.c) [z](../examples/y/z.cu)\n"
        site = pages.Pages({"deploy/docs/a.md": text}, set())
        self.assertEqual(site.page("deploy/docs/a.md"),
                         "# A {#a}\n[m](tests_2documents_2m_x_8c-example.html) "
                         "[x](deploy_2examples_2y_2x_8c-example.html) z (`deploy/examples/y/z.cu`)\n")

    def test_navigation(self):
        main = "# T\n[z](a.md)\n## One & two\n- [`A`](a.md), [again](a.md)\n## None\n[b](c)\n"
        site = pages.Pages({"deploy/docs/README.md": main, "deploy/docs/a.md": "# A\n"}, set())
        self.assertEqual(pages.navigation(site), '<tab type="usergroup" title="One &amp; two">\n'
                         '<tab type="user" url="a.html" title="A"/>\n</tab>')


if __name__ == "__main__":
    unittest.main()
