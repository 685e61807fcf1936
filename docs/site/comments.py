"""comments.py: what Doxygen reads of a header. Makes documentation of the comments of a header: those in front of a declaration, and
those after one on its line. The comment at a header's head is left out: build.py has it on the page already."""

import re


def escaped(text):
    """A line that Doxygen shows as it is, but for `code`."""
    text = re.sub(r"([\\@<>&#%$\"])", r"\\\1", text).replace("::", "\\::")
    return re.sub(r"`([^`]+)`", r"<tt>\1</tt>", text)


def documented(block):
    """The lines of one comment. Lines that are indented, such as examples, keep their form."""
    indent, kept = block[0][: block[0].index("//")], False
    for line in block:
        text = line.strip()[2:]
        if (text.startswith("   ") and text.strip()) != kept:
            kept = not kept
            yield f"{indent}/// \\{'verbatim' if kept else 'endverbatim'}"
        yield f"{indent}///{text if kept else escaped(text)}"
    if kept:
        yield f"{indent}/// \\endverbatim"


def filtered(lines):
    """The lines of a header with comments in Doxygen's form."""
    start = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    block = []
    for line in lines[start:]:
        if re.match(r"\s*//", line) and not re.match(r"\s*// ---", line):
            block.append(line)
            continue
        belongs = line.strip() and not line.lstrip().startswith(("#include", "#pragma", "}", "public:", "private:"))
        yield from documented(block) if block and belongs else block
        block = []
        after = re.match(r"(.*[;,{)]|\s*\w+)(\s+)// (.*)", line)
        yield f"{after[1]}{after[2]}///< {escaped(after[3])}" if after and not after[1].rstrip().endswith("{") else line
