#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that seeds.py finds each fault: a list and a tree that are right, then with one fault each."""
import os
import tempfile
import unittest

import seeds

FILES = {
    "common/include/cadre/a.h": "/* CADRE_REPLICAS counts; cadre_in_words is said only. */\n"
                                "CADRE_API int cadre_run(int a);\ntypedef struct cadre_value cadre_value;\n",
    "tests/unit/test_a.c": "cmocka_unit_test(it_runs), cmocka_unit_test_setup(\n    it_stops, begin)\n"
                           "static void not_registered(void **state)\n",
    "tests/cases/a.json": '[{"id": "run/one"}]\n',
    "tests/integration/test_a.py": "def test_it():\n    pass\n",
    "deploy/examples/tour/CMakeLists.txt": "tour_test(gather \"4\")\n",
}
HEADING = "## {}\n\n| # | what the document says | here | tests | state |\n| --- | --- | --- | --- | --- |\n"
ROWS = ["| 1 | It runs. | `cadre_run` `CADRE_REPLICAS` | `unit/test_a.c: it_runs` `cases/a.json: run/one` | works |",
        "| 2 | It stops. | `cadre_value` | `unit/test_a.c: it_stops` `integration/test_a.py: test_it` | partly: late |",
        "| 3 | It flies. | - | - | missing |",
        "| 4 | It runs on a TPU. | - | - | no meaning here: there are none |",
        "| 5 | It gathers. | `cadre_run` | `deploy/examples/tour/CMakeLists.txt: gather` | works |"]
TOTALS = "5 items: 2 work, 1 partly, 1 are missing, 1 have no meaning here."


def document(rows=None, totals=TOTALS, titles="ABCDE"):
    rows = ROWS if rows is None else rows
    parts = [HEADING.format(title) + row + "\n" for title, row in zip(titles, rows)]
    return "# A list\n\n" + totals + "\n\n" + "\n".join(parts)


class Seeds(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for path, text in FILES.items():
            path = os.path.join(self.folder.name, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.tree = seeds.Tree(self.folder.name)

    def faults(self, text):
        return seeds.Checker(text, self.tree).check()

    def fires(self, what, text):
        faults = self.faults(text)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(what, faults[0])

    def change(self, row, old, new):
        self.assertIn(old, ROWS[row])
        return document(ROWS[:row] + [ROWS[row].replace(old, new)] + ROWS[row + 1:])

    def test_a_list_that_is_right(self):
        self.assertEqual(self.faults(document()), [])

    def test_names(self):
        self.fires("cadre_walk is not in a public header", self.change(0, "cadre_run", "cadre_walk"))
        self.fires("cadre_in_words is not in a public header", self.change(0, "cadre_run", "cadre_in_words"))
        self.fires("CADRE_MORE is not in a public header", self.change(0, "CADRE_REPLICAS", "CADRE_MORE"))
        self.fires("backticks", self.change(0, "`cadre_run`", "cadre_run"))
        self.fires("backticks", self.change(0, "`cadre_run` ", "`cadre_run`, "))

    def test_tests(self):
        self.fires("no file unit/test_b.c", self.change(0, "test_a.c", "test_b.c"))
        self.fires('no test "it_walks"', self.change(0, "it_runs", "it_walks"))
        self.fires('no test "not_registered"', self.change(0, "it_runs", "not_registered"))
        self.fires('no test "it_run"', self.change(0, "it_runs", "it_run"))
        self.fires('no test "run/on"', self.change(0, "run/one", "run/on"))
        self.fires('no test "test_i"', self.change(1, "test_it", "test_i"))
        self.fires('no test "gathe"', self.change(4, ": gather", ": gathe"))
        self.fires('no test ""', self.change(0, ": it_runs", ""))

    def test_numbers(self):
        self.fires("the number is 4, not 3", self.change(2, "| 3 |", "| 4 |"))
        self.fires("the number is x, not 3", self.change(2, "| 3 |", "| x |"))

    def test_states(self):
        for row, old, new in ((0, "| works |", "| works: well |"), (0, "| works |", "| perhaps |"),
                              (1, "partly: late", "partly"), (2, "missing", "missing: wings"),
                              (3, "no meaning here: there are none", "no meaning here")):
            with self.subTest(new=new):
                faults = self.faults(self.change(row, old, new))
                self.assertIn("is no state", faults[0])
                self.assertIn("the rows are", faults[1])  # it is not counted either

    def test_what_works_has_tests_and_only_that(self):
        self.fires('"partly" has no tests', document(
            ROWS[:1] + ["| 2 | It stops. | `cadre_value` | - | partly: late |"] + ROWS[2:]))
        self.fires('"missing" has tests', document(
            ROWS[:2] + ["| 3 | It flies. | - | `unit/test_a.c: it_runs` | missing |"] + ROWS[3:]))

    def test_rows(self):
        self.assertIn("cells", self.faults(document(ROWS[:4] + ["| 5 | It gathers. | works |"]))[0])
        self.assertIn("cells", self.faults(document(ROWS[:2] + ["| 3 |  | - | - | missing |"] + ROWS[3:]))[0])

    def test_documents_and_totals(self):
        self.fires("5 documents", document(titles="ABCDD"))
        self.fires("the rows are [5, 2, 1, 1, 1]", document(totals=TOTALS.replace("2 work", "3 work")))
        self.fires("the rows are", document(totals=""))
        self.assertIn("5 documents", self.faults(document(ROWS[:4]))[0])


if __name__ == "__main__":
    unittest.main()
