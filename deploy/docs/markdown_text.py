# SPDX-License-Identifier: Apache-2.0
"""What dead_links.py and pages.py read of Markdown: code, headings with the anchors that GitHub gives them, links."""
import collections
import re

FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}(?P=fence)[`~]*[ ]*$|\Z)", re.M | re.S)
SPAN = re.compile(r"(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ ]*\n).)+?(?<!`)(?P=ticks)(?!`)", re.S)
HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$", re.M)
LINK = re.compile(r"!?\[(?P<text>(?:[^\[\]]|!?\[[^\[\]]*\](?:\([^()]*\))?)*)\]"
                  r"\((?P<target>[^()\s]*(?:\([^()]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:[ \t]*(?P<target>\S+)", re.M)
TAG = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"(?P<target>[^\"]*)\"")
ANCHOR = re.compile(r"<[a-z]+\b[^>]*?\b(?:id|name)=\"([^\"]*)\"")

Heading = collections.namedtuple("Heading", "start end level text anchor")


def blank(pattern, text):
    """The text with blanks for what matches; lines and offsets stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def without_fences(text):
    return blank(FENCE, text)


def without_code(text):
    """Neither fenced blocks nor code within a line: what is left may have links."""
    return blank(SPAN, without_fences(text))


def slug(text):
    """GitHub's anchor of a heading: its words in lower case, with a hyphen for each blank, without punctuation."""
    shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[^\w\- ]", "", shown.lower().strip()).replace(" ", "-")


def headings(text):
    """The headings in order; a second one of the same words has -1 behind its anchor, a third -2."""
    found, times = [], collections.Counter()
    for match in HEADING.finditer(without_fences(text)):
        name = slug(match.group(2))
        anchor = f"{name}-{times[name]}" if times[name] else name
        times[name] += 1
        found.append(Heading(match.start(), match.end(), len(match.group(1)), match.group(2), anchor))
    return found


def anchors(text):
    return {heading.anchor for heading in headings(text)} | set(ANCHOR.findall(without_code(text)))


def targets(text):
    """(line, target) of each link, image and reference definition."""
    bare = without_code(text)
    for pattern in (LINK, DEFINITION, TAG):
        for match in pattern.finditer(bare):
            yield bare.count("\n", 0, match.start()) + 1, match.group("target").strip("<>")
