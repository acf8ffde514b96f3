"""c_functions.py - the functions that a C file declares and defines. It relies on our style."""
import re

SKIPPED = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.S | re.X)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.M)
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "_Static_assert", "__attribute__"}


def blank(match):
    """Replaces a comment or literal by a blank one with the same number of lines."""
    word = match.group()
    return '""' if word[0] == '"' else "' '" if word[0] == "'" else re.sub(r"[^\n]", " ", word)


def declarations(text):
    """Yields (line, text, is it a definition) of each declaration and definition at file scope, the
    latter without its body."""
    text = SKIPPED.sub(blank, text)
    text = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    text = re.sub(r'extern\s+""\s*\{', "", text)
    begin = depth = 0
    for i, c in enumerate(text):
        if c == "{":
            if depth == 0:
                yield text.count("\n", 0, i) + 1, text[begin:i], True
            depth += 1
        elif c == "}":
            depth = max(depth - 1, 0)
            begin = i + 1
        elif c == ";" and depth == 0:
            yield text.count("\n", 0, i) + 1, text[begin:i], False
            begin = i + 1


def groups(text):
    """Yields (begin, end) of each outermost pair of parentheses."""
    depth = begin = 0
    for i, c in enumerate(text):
        if c == "(":
            if depth == 0:
                begin = i
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                yield begin, i + 1


def count(parameters):
    """Returns the number of parameters: commas outside parentheses, and one."""
    depth = commas = 0
    for c in parameters:
        depth += (c == "(") - (c == ")")
        commas += c == "," and depth == 0
    words = parameters.strip()
    if words in ("", "void"):
        return 0
    return commas + (0 if words.endswith("...") else 1)


def function(text):
    """Returns (name, parameters) of a function's declarator, or None."""
    text = re.sub(r"\b(?:__attribute__|_Alignas|__declspec)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", " ", text)
    if "=" in re.sub(r"\(.*\)", "", text, flags=re.S) or re.match(r"\s*typedef\b", text):
        return None
    found = list(groups(text))
    if not found or text[found[-1][1]:].strip():
        return None
    begin, end = found[-1]
    before = text[:begin].rstrip()
    if before.endswith(")") and len(found) > 1:  # NAME(x)(parameters): a name that a macro makes
        inside = text[found[-2][0] + 1:found[-2][1] - 1].strip()
        if not re.fullmatch(r"\w+", inside):
            return None  # a pointer to a function
        name = inside
    else:
        match = re.search(r"(\w+)$", before)
        if not match or match.group(1) in KEYWORDS or not before[:match.start()].strip():
            return None
        name = match.group(1)
    return name, count(text[begin + 1:end - 1])


def functions(path):
    """Yields (line, name, parameters, is it a definition) of each function in a file."""
    for line, text, is_definition in declarations(path.read_text()):
        found = function(text)
        if found:
            yield line, *found, is_definition
