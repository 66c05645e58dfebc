# SPDX-License-Identifier: Apache-2.0
"""Makes Doxygen's pages of Markdown files, and the navigation of the first one.

Each file is a page with a name of its own, tutorial/1-program.md the page tutorial_1-program.html, and each heading has
the anchor that GitHub gives it. Links between pages and to headers lead to what is made of them; of what is no page the
path is shown instead. `cadre_run`, alone in a code span, leads to the function.
"""
import html
import os
import re

import markdown_text

DOCS = "deploy/docs"
MAIN = DOCS + "/README.md"
HEADERS = "common/include/"
EXAMPLES = ("deploy/examples", "tests/documents")
BOLD_CODE = re.compile(r"\*\*`[^`]+`\*\*")
SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:", re.I)


def name_of(path):
    """The name of a page: its path below the documents, or in the tree, without README.md."""
    if path == MAIN:
        return "index"
    name = os.path.relpath(path, DOCS) if path.startswith(DOCS + "/") else path
    return re.sub(r"[^\w-]", "_", re.sub(r"(/README)?\.md$", "", name))


def header_page(path):
    """Doxygen's name for the page of a header, or of what a header is made of."""
    return re.sub(r"\.in$", "", os.path.basename(path)).replace("_", "__").replace(".", "_8") + ".html"


def example_page(path):
    """Doxygen's name for the page of an example."""
    return path.replace("/", "_2").replace(".", "_8") + "-example.html"


class Pages:
    """`texts`: path of each file that is a page -> its text. `names`: what the headers declare."""

    def __init__(self, texts, names):
        self.texts, self.names = texts, names
        self.titles = {path: markdown_text.headings(text)[0].anchor for path, text in texts.items()}

    def address(self, source, target):
        """Where a link of the page `source` leads: an address in the site, or None and the path in the tree."""
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(source), path)) if path else source
        page = full if full in self.texts else full + "/README.md"
        if page in self.texts:
            behind = "" if anchor in ("", self.titles[page]) else f"#{name_of(page)}_{anchor}"
            return name_of(page) + ".html" + behind, full
        if full.startswith(HEADERS) and full.endswith((".h", ".h.in")):
            return header_page(full), full
        if full.startswith(EXAMPLES) and full.endswith(".c"):
            return example_page(full), full
        return ("files.html" if full + "/" == HEADERS + "cadre/" else None), full

    def link(self, source, text, match):
        target = match.group("target")
        shown = text[match.start("text"):match.end("text")]
        if SCHEME.match(target):
            return text[match.start():match.end()]
        if match.group().startswith("!"):
            return f"![{shown}]({os.path.basename(target)})"  # Doxygen copies it from IMAGE_PATH
        address, path = self.address(source, target)
        if address:
            return f"[{shown}]({address})"
        return shown if path.endswith(shown.strip("`/")) else f"{shown} (`{path}`)"

    def span(self, code):
        """Code within a line: a name of the headers leads to them; with a ' in it Doxygen takes ` for a quote."""
        inner = code.strip("`")
        if inner in self.names:
            return f"<code>@ref {inner}</code>"
        return f"`` {inner} ``" if "'" in inner and code.count("`") == 2 else code

    def page(self, source):
        """The text of a page for Doxygen, line by line as it was."""
        text, edits = self.texts[source], []
        for match in markdown_text.LINK.finditer(markdown_text.without_code(text)):
            edits.append((match.start(), match.end(), self.link(source, text, match)))
        bare = markdown_text.without_fences(text)
        for match in markdown_text.SPAN.finditer(bare):
            if not any(start <= match.start() < end for start, end, _ in edits):
                edits.append((match.start(), match.end(), self.span(match.group())))
        for match in BOLD_CODE.finditer(bare):
            edits += [(match.start(), match.start() + 2, "<b>"), (match.end() - 2, match.end(), "</b>")]
        for number, heading in enumerate(markdown_text.headings(text)):
            anchor = name_of(source) if number == 0 else name_of(source) + "_" + heading.anchor
            edits.append((heading.end, heading.end, " {#" + ("mainpage" if anchor == "index" else anchor) + "}"))
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        text = re.sub(r"^# (\d+)\.", "# \\1\u2060.", text) # else Doxygen takes the number for that of a list
        return re.sub(r"^( {0,3}```)(?:sh|bash|console|text)$", r"\1", text, flags=re.M)


def navigation(pages):
    """The groups of the main page's headings, each with its links to pages, as elements of Doxygen's layout."""
    text, rows, seen = pages.texts[MAIN], [], set()
    bare = markdown_text.without_code(text)
    heads = [heading for heading in markdown_text.headings(text) if heading.level == 2]
    for number, heading in enumerate(heads):
        end = heads[number + 1].start if number + 1 < len(heads) else len(text)
        tabs = []
        for match in markdown_text.LINK.finditer(bare, heading.end, end):
            address, _ = pages.address(MAIN, match.group("target"))
            if address and address not in seen and not SCHEME.match(match.group("target")):
                seen.add(address)
                title = re.sub(r"[`*]", "", text[match.start("text"):match.end("text")])
                tabs.append(f'<tab type="user" url="{html.escape(address)}" title="{html.escape(title)}"/>')
        if tabs:
            rows.append(f'<tab type="usergroup" title="{html.escape(heading.text)}">\n' + "\n".join(tabs) + "\n</tab>")
    return "\n".join(rows)
