#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site of this tree: no warning, no dead link, and all that is public is in it."""
import glob
import html
import os
import re
import tempfile
import unittest

import tree

import pages
import shown


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.status, cls.output = tree.build(tree.ROOT, cls.folder.name)

    def page(self, name):
        return tree.read(self.folder.name, "html/" + name)

    def test_build_succeeds(self):
        self.assertEqual(self.status, 0, self.output)
        self.assertRegex(self.output, r"\d{4,} links, 0 dead\n")
        self.assertEqual(self.output.splitlines()[-1], self.folder.name + "/html/index.html")

    def test_each_public_function_and_macro_has_a_description(self):
        names, bodies = shown.public(tree.ROOT)
        self.assertGreater(len(names), 300)
        for name, header in sorted(names.items()):
            described = re.search(rf"</a></span>{name}(?:\(\))?</h2>(.*?)</div>\s*</div>",
                                  self.page(pages.header_page(header)), re.S)
            with self.subTest(name=name, header=header):
                self.assertIsNotNone(described)
                text = re.search(r'<div class="memdoc">(.*)', described.group(1), re.S).group(1)
                self.assertGreater(len(re.sub(r"<[^>]*>|\s+", " ", text).split()), 1)

    def test_each_document_is_a_page(self):
        for path in glob.glob(os.path.join(tree.ROOT, pages.DOCS, "**/*.md"), recursive=True):
            name = pages.name_of(os.path.relpath(path, tree.ROOT))
            title = re.match(r"# (.*)", tree.read("", path)).group(1)
            with self.subTest(page=name):
                found = re.search(r'<div class="title">(.*?)</div>', self.page(name + ".html"), re.S)
                shown = re.sub(r"<[^>]*>|\u2060", "", found.group(1))
                self.assertEqual(html.unescape(shown).strip(), title.replace("`", ""))

    def test_programs_are_pages_with_links(self):
        text = self.page(pages.example_page("tests/documents/metric.c"))
        self.assertTrue(re.search(r'<a class="code[^>]*href="metric_8h.html#\w+">cadre_metric_create</a>', text))
        self.assertTrue("tests_2documents_2metric_8c-example.html" in self.page("metric_8h.html"))

    def test_examples_are_code_with_links(self):
        text = self.page("strategy_8h.html")
        self.assertTrue(re.search(r'<pre class="fragment">\s+main +replica function', text))
        self.assertTrue(re.search(r'<div class="line">.*<a class="code[^>]*>cadre_run</a>', self.page("input_8h.html")))

    def test_lists_are_lists(self):
        self.assertTrue(re.search(r"<ul>\s*<li>", self.page("collective_8h.html")))

    def test_sections_are_in_order(self):
        text = self.page("tensor_8h.html")
        places = [text.index(title) for title in
                  ("Making them, in the memory of the host", "Lifetime", "Looking at them", "Printing and describing")]
        self.assertEqual(places, sorted(places))


if __name__ == "__main__":
    tree.skip_without_doxygen()
    unittest.main()
