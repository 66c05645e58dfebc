# SPDX-License-Identifier: Apache-2.0
"""Gives a public header the marks of Doxygen. The headers have plain comments, which become:

    the first one                    the introduction of the header's page
    one that begins with "---"       a section of the page: a title, then what holds for all of it
    one in lines of its own          the description of the declaration behind it
    one behind code in its line      that of the declaration before it

Indented lines behind an empty one are code, or a drawing. Members of structures and constants of enums may have no
comment, where one would repeat the name: they get an empty one, so that links to them lead somewhere. Lines stay where
they are, so that a warning names the line of the header.
"""
import re

COMMENT = re.compile(r"(?:(?<=\n)\n(?=/\* ---))?/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
LICENCE = "SPDX-License-Identifier: Apache-2.0"
# A result, a whole call, a string with characters that mean something to Doxygen: as code.
CODE = re.compile(r"(?<!\w)\*+ret_\w*(?:\[\*?\w+\])?|\b(?:cadre|CADRE)_\w+\([^()]+\)"
                  r"|\"[^\" ]*[\\<][^\" ]*\"|\"<[^\"]*\"")
NAME = re.compile(r"(?<![\w#.>/\"`-])(?:cadre|CADRE)_\w+(?!\w|[.*]\w|->|/|\([^)])")
SPECIAL = re.compile(r"[\\@<>&#%]|--(?=\w)")
PLAIN = re.compile(r"(?<!\*/)\n( {4,}(?:[\w ]+[ *]+\w+(?:\[\w*\])*;|[A-Z]\w+(?: = [^,/\n]+)?,?))(?=\n)")
EMPTY = " /**< &zwnj; */"
ENUM_LINE = re.compile(r"(?<=enum )(\w+) \{ ([^}\n]*) \}") # an enum in one line
IN_EXAMPLE = "    " # more than that before a line: code


def escaped(line, in_span, names):
    """A line of prose for Doxygen, and whether a code span that began in it goes on in the next line."""
    pieces = line.split("`")
    for number, piece in enumerate(pieces):
        if in_span == (number % 2 == 0):
            continue
        parts, end = [], 0
        for match in CODE.finditer(piece):
            parts += [sentence(piece[end:match.start()], names), f"`{match.group()}`"]
            end = match.end()
        pieces[number] = "".join([*parts, sentence(piece[end:], names)])
    return "`".join(pieces), in_span ^ (len(pieces) % 2 == 0)


def sentence(text, names):
    """Words without code: special characters escaped, names linked."""
    return NAME.sub(lambda match: ("#" if match.group() in names else "") + match.group(),
                    SPECIAL.sub(r"\\\g<0>", text))


def is_code(block):
    """Whether Doxygen may colour it as C, and link the functions in it; drawings and tables it may not."""
    text = "\n".join(block)
    return bool(re.search(r"[;{]\s*(?://.*|/\*.*)?$", text, re.M)) and text.count("'") % 2 == 0


def examples(lines):
    """(first, end) of the indented blocks: they come behind an empty line, or at the beginning."""
    number = 0
    while number < len(lines):
        if lines[number].startswith(IN_EXAMPLE) and (number == 0 or not lines[number - 1].strip()):
            end = number
            while end < len(lines) and (lines[end].startswith(IN_EXAMPLE) or not lines[end].strip()):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            yield number, end
            number = end
        number += 1


def body(lines, names):
    """What a comment has in its lines, without the marks around it, as Doxygen reads it."""
    out, blocks = list(lines), list(examples(lines))
    inside = {number for first, end in blocks for number in range(first, end)}
    in_span = False
    for number, line in enumerate(lines):
        if number not in inside:
            out[number], in_span = escaped(line, in_span and bool(line.strip()), names)
    for first, end in blocks:
        begin, stop = ("@code{.c}", "@endcode") if is_code(lines[first:end]) else ("@verbatim", "@endverbatim")
        if first == 0 or (end < len(lines) and lines[end].strip()):
            raise SystemExit(f"\"{lines[first].strip()}\": put an empty line before and behind an example")
        out[first - 1] = begin
        if end < len(lines):
            out[end] = stop
        else:
            out[end - 1] += " " + stop
    return out


def unwrapped(comment):
    """The lines between the marks; the star that begins each of them goes, or the blanks of a comment behind code."""
    lines = comment[2:-2].split("\n")
    starred = all(re.match(r"\s*\*|\s*$", line) for line in lines[1:])
    rest = [re.sub(r"^\s*\* ?", "", line) if starred else line.strip() for line in lines[1:]]
    return [line.rstrip() for line in [lines[0].lstrip(), *rest]]


def wrapped(opening, lines):
    return opening + " " + "\n".join(lines) + " */"


def section(lines):
    """A title, which ends with the first sentence, and the lines of the rest: one less than there were."""
    text = "\n".join(lines).strip("- \n")
    title, _, rest = re.match(r"((?:[^.]|\.(?!\s|$))*)(\.?)(.*)", text, re.S).groups()
    title = " ".join(title.strip("- ").split())
    rest = rest.strip().split("\n") if rest.strip() else []
    return title[:1].upper() + title[1:], rest + [""] * (len(lines) - len(rest))


def names_of(text):
    """What a header declares and Doxygen does not link by itself in a sentence: all but structures."""
    code = COMMENT.sub("", text)
    code = ENUM_LINE.sub(lambda match: "{\n    " + match.group(2).replace(", ", "\n    ") + "\n}", code)
    patterns = (r"^#define (CADRE_\w+)\b", r"^    (CADRE_\w+)\b", r"^typedef \w+ (cadre_\w+)\(",
                r"^typedef \w+ \(\*(cadre_\w+)\)", r"^\} (cadre_\w+);", r"^typedef struct \w+\s+(cadre_\w+);",
                r"^(?:CADRE_API|static inline)\b[^;({]*?\b(cadre_\w+)\(")
    found = {name for pattern in patterns for name in re.findall(pattern, code, re.M)}
    return {name for name in found - set(re.findall(r"^typedef struct (\w+) \{", code, re.M))
            if not re.fullmatch(r"CADRE_(API|\w+_H)", name)}


def marked(text, names):
    """The header with Doxygen's marks. `names`: what all headers declare, to be linked in sentences."""
    is_open = False

    def mark(match):
        nonlocal is_open
        comment = match.group()
        if not comment.lstrip("\n").startswith("/*"):
            return comment
        lines = unwrapped(comment.lstrip("\n"))
        before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if lines[0].startswith(LICENCE):
            return wrapped("/**", ["@file", *body(lines[1:], names)])
        if comment.startswith("\n"):
            title, rest = section(lines)
            start = "/** @} */ " if is_open else ""
            is_open = True
            return start + wrapped("/** @name", [title, *body(rest, names)]) + " /** @{ */"
        if before.strip():
            return wrapped("/**<", body(lines, names)) + " " # so that PLAIN tells it from one above a member
        return wrapped("/**", body(lines, names))

    marked_text = COMMENT.sub(mark, text)
    marked_text = PLAIN.sub(rf"\n\1{EMPTY}", marked_text)
    marked_text = ENUM_LINE.sub(lambda match: f"{match.group(1)} {{ " + re.sub(
        r"(\w+(?: = [^,/]+)?)(,|$)", rf"\1\2{EMPTY}", match.group(2)) + " }", marked_text)
    return marked_text + ("/** @} */\n" if is_open else "")
