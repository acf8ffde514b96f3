"""Random Jinja templates, and expressions in them, for check_templates.py.

They use what chat templates use, and more: most fail at once, since a filter or operator does not
take the value before it. About a third prints something.
"""
import random

EXPRESSION_VALUES = {
    "m": [{"role": "user", "content": " Hi 'x' {\u00e9} "},
          {"role": "assistant", "content": "ok</think>\n\nyes", "n": None}],
    "n": 7, "neg": -3, "f": 1.5, "t": True, "z": None, "e": {},
    "d": {"a": 1, "b": [1, "x", None, True]}, "s": "a,b,,c", "w": "hello wOrld-foo (bar) it's",
    "l": [3, 1, 2, "b", "A"], "nums": [3, 1, 2.5], "txt": "l1\n\n l2\r\nl3 <b>&",
    "p": [{"a": {"b": 1}, "k": "x"}, {"a": {"b": 0}, "k": "Y"}],
    "u": "stra\u00dfe \u01c5 \u0130 \u03a3\u0391\u03a3 \u00e9\u200b",
}
TEMPLATE_VALUES = {
    "xs": [1, 2, 3], "a": "A", "b": 2, "n": 0, "tools": None, "ps": [[1, "x"], [2, "y"]],
    "ms": [{"role": "user", "content": "Hi"},
           {"role": "assistant", "content": "yo", "kids": [{"role": "k", "content": "c"}]}],
    "d": {"k": 1, "j": "z"},
}

ATOMS = """m n neg f t z e d s w l nums txt p u undef 0 1 2 3 -1 1.5 2.25 10 0.1 1e3 1_000 12345678 100000.0
'a' 'b,c' ' x ' '' '%s' '{}' 'abc' 'ABC\u00a0d\u00e9' '3.7' ' 42 ' '1_0' 'inf' [] {} () (1,) [1,2,3] (1,2)
['a','B'] {'a':1} {1:2,'x':none} {'a':1,'b':2,'a':3} true false none m[0] m[1].content d.a d.b range(3)
range(1,7,2) 'x'|safe [[1,2],[3,4]] [(1,'b'),(0,'a')] d.items() d.keys() nums|map('int')""".split()

FILTERS = """abs|batch(2)|batch(2, 'f')|capitalize|center(12)|count|default('D')|default('D', true)
d(3)|dictsort|dictsort(reverse=true)|dictsort(by='value')|e|escape|first|float|float(2)|forceescape
format(1, 2)|format('q')|format(a=1)|indent|indent(2)|indent('> ', true)|indent(3, blank=true)|int|int(5)
int(default=9)|items|join|join(', ')|join(d='-')|join('-', 'k')|join(attribute='role')|last|length|list
list|list|lower|map('upper')|map(attribute='k')|map(attribute='a.b')|map(attribute='zz', default='dd')
map('default', 'x')|map('int')|map('string')|map('replace', 'a', 'b')|max|min|max(attribute='k')
min(case_sensitive=true)|reject|reject('none')|rejectattr('k')|rejectattr('k', 'equalto', 'x')
replace('a', 'b')|replace('l', 'L', 2)|replace(1, 2)|replace('', '-')|replace(old='a', new='b')|reverse
round|round(1)|round(2, 'floor')|round(method='ceil')|safe|select|select('string')|select('number')
select('gt', 1)|select('==', 1)|selectattr('k')|selectattr('k', 'eq', 'x')|selectattr('n', 'defined')
selectattr('a.b', 'ne', 0)|sort|sort(reverse=true)|sort(attribute='k')|sort(case_sensitive=true)|string
string|sum|sum(start=10)|sum(attribute='a.b')|title|tojson|tojson|tojson(indent=2)
tojson(ensure_ascii=true)|tojson(true, 1)|tojson(separators=(',', ':'))|tojson(sort_keys=true)
tojson(indent='\t')|trim|trim('a ')|trim(chars='x')|truncate(5)|truncate(5, true)
truncate(6, false, '!', 0)|unique|unique(true)|upper|wordcount|default(value=1)|join(x=1)|no_filter""".replace(
    "\n", "|").split("|")

METHODS = """strip();lstrip('a');rstrip('c ');strip(none);strip(chars='a');split(',');split();split(',', 1)
split(maxsplit=1);split(sep='l');rsplit(',', 1);rsplit(none, 1);splitlines();splitlines(true)
partition(',');rpartition('l');startswith('a');startswith(('a', 'h'));startswith(['a']);endswith('c')
startswith('b', 2);endswith('c', 0, 3);replace('a', 'x');replace('', '.');replace('l', 'L', 1)
replace(old='a', new='b');join(['x', 'y']);join('abc');join([1]);upper();lower();capitalize();title()
swapcase();find('b');rfind('l');index('a');rindex('a');find('l', 4);find('l', -3, -1);find('', 99)
count('l');count('');count('l', 3);isdigit();isalpha();isalnum();isupper();islower();isspace();isascii()
isdecimal();center(9);center(9, '*');ljust(9);rjust(9, '.');zfill(6);format(1, 'x');format(a=1)
removeprefix('a');removesuffix('c');items();keys();values();get('a');get('zz');get('zz', 5);get();copy()
count(1);index(2);append(1);update({});casefold();encode();expandtabs();items;a;b;role;k;content;0;1;zz
__class__""".replace("\n", ";").split(";")

TESTS = """defined;undefined;none;string;mapping;iterable;sequence;boolean;true;false;integer;float;number
callable;odd;even;divisibleby 2;divisibleby(3);equalto 1;eq('a');ne 1;gt 1;ge(2);lt 2;le 3;in [1, 'a']
in('abc');sameas none;sameas(true);lower;upper;escaped;greaterthan 1;lessthan 5;no_test""".replace(
    "\n", ";").split(";")

OPERATORS = "+ + - * * / // % ** ~ ~ == != < <= > >= in and or".split() + ["not in"]

PRINTF = """'%s' '%d|%5.2f' '%-6s|' '%05d' '%+d' '%x' '%r' '%e' '%g' '%%%s' '%(a)s' '%c' '%.2s' '%i_%o_%X' '%#x'
'%_d' '%5s|%-5d' '%G' '%F'""".replace("_", " ").split("' '")
PRINTF = ["'" + p.strip("'\n") + "'" for p in PRINTF]

FORMATS = [f"'{s}'" for s in """{} {0}{1} {:>8} {:<8}| {:^9}| {:*^9} {:05d} {:+.2f} {:,} {:_} {:x} {:#b} {:e} {:g}
{:%} {!r:>6} {!s} {{}}{} {a} {0[0]} {0.a} {:.3} {:8.3f}| {:=+6d} {0[a]} {:.2%} {:6}|{:6} {:d} {:s} {:010.3f} {:c} {
}""".split()]

NAMES = "a b x y tools ns xs q f g".split()
OUTER_NAMES = NAMES + "loop caller varargs kwargs".split()
LEAVES = """1;'s';xs;ms;ps;d;none;true;[];n;loop.index;loop.first;loop.last;loop.depth;loop.length
loop.revindex0;loop.previtem;loop.nextitem;ns.x;ns.y;range(3);d.items();x.role;x.content;f.name""".replace(
    "\n", ";").split(";")
TEXTS = ["", "x", " ", "\n", " \n", "  y\n", "\n  ", "<z>", "\t", "t{# c #}\n", "{#- d -#}", " {{ '{%' }}", "\u00e9\n",
         "\r\n"]


class Templates:
    """Draws them: the same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pick = self.random.choice

    # ---- expressions ----

    def part(self, depth):
        """An expression, most often in parentheses."""
        text = self.expression(depth)
        return text if self.random.random() < 0.35 else f"({text})"

    def expression(self, depth):
        if depth <= 0:
            return self.pick(ATOMS)
        part, inner = (lambda: self.part(depth - 1)), (lambda: self.expression(depth - 1))
        kinds = [
            (28, lambda: f"{part()}|{self.pick(FILTERS)}"),
            (14, lambda: f"{part()}.{self.pick(METHODS)}"),
            (20, lambda: f"{part()} {self.pick(OPERATORS)} {part()}"),
            (8, lambda: f"{part()} is {self.pick(['', 'not '])}{self.pick(TESTS)}"),
            (4, lambda: f"{self.pick(['not ', '-', '+'])}{part()}"),
            (4, lambda: f"{part()} if {part()} else {part()}"),
            (2, lambda: f"({inner()} if {inner()})"),
            (5, lambda: f"{part()}[{inner()}]"),
            (3, lambda: f"{part()}[{self.pick(['', '1', '-1', '-2', '0', '5', 'n'])}:"
                        f"{self.pick(['', '2', '-1', '0', '9'])}{self.pick(['', ':', ':2', ':-1', ':-2'])}]"),
            (3, lambda: f"[{inner()}, {inner()}]"),
            (1, lambda: f"({inner()}, {inner()})"),
            (1, lambda: "{" + f"{inner()}: {inner()}, 'q': {inner()}" + "}"),
            (3, lambda: f"{self.pick(PRINTF)} % {self.pick([part(), f'({inner()}, {inner()})'])}"),
            (3, lambda: f"{self.pick(FORMATS)}.format({inner()}, {inner()}, a={inner()})"),
            (1, lambda: f"dict(x={inner()}, y={inner()})"),
        ]
        return self.random.choices([k for _, k in kinds], [w for w, _ in kinds])[0]()

    def printed_expression(self):
        return "{{ " + self.expression(self.pick([1, 1, 2, 2, 3])) + " }}"

    # ---- templates ----

    def simple(self, depth=1):
        """An expression of variables that tags set."""
        kind = self.random.random()
        if depth <= 0 or kind < 0.5:
            return self.pick(OUTER_NAMES if kind < 0.35 else LEAVES)
        inner = lambda: self.simple(depth - 1)
        return self.pick([
            lambda: f"{inner()} ~ {inner()}", lambda: f"f({inner()})", lambda: f"f({inner()})",
            lambda: f"g({inner()}, {self.pick(['x=', 'y=', '*', '**', ''])}{inner()})",
            lambda: f"{inner()} is {self.pick(['defined', 'none', 'string', 'iterable', 'mapping', 'number'])}",
            lambda: f"{inner()}|{self.pick(['upper', 'length', 'default(5)', 'list', 'join', 'first', 'tojson'])}",
            lambda: f"{inner()}, {inner()}", lambda: f"{inner()} if {inner()} else {inner()}",
            lambda: f"{inner()} == {inner()}", lambda: "loop.cycle('p', 'q')",
            lambda: f"loop.changed({inner()})", lambda: f"loop({inner()})", lambda: "caller()",
            lambda: "caller(1)"])()

    def tag(self, text):
        return "{%" + self.pick(["", "", "-", "+"]) + f" {text} " + self.pick(["", "", "-", "+"]) + "%}"

    def target(self):
        name = lambda: self.pick(NAMES)
        return self.pick([name] * 8 + [lambda: f"{name()}, {name()}", lambda: f"({name()}, {name()})"])()

    def parameters(self):
        plain = self.random.sample(["x", "y", "a"], self.pick([0, 1, 1, 2]))
        return ", ".join(plain + self.random.sample(["q=1", "z='d'", "w=x"], self.pick([0, 0, 1])))

    def block(self, words, depth, end):
        return self.tag(words) + self.body(depth) + self.tag(end)

    def loop(self, depth):
        words = f"for {self.target()} in {self.simple()}" + self.pick([""] * 6 + [f" if {self.simple()}", " recursive"])
        other = self.tag("else") + self.body(depth) if self.random.random() < 0.2 else ""
        return self.tag(words) + self.body(depth) + other + self.tag("endfor")

    def choice(self, depth):
        parts = [f"if {self.simple()}"]
        if self.random.random() < 0.2:
            parts.append(f"elif {self.simple()}")
        if self.random.random() < 0.4:
            parts.append("else")
        return "".join(self.tag(p) + self.body(depth) for p in parts) + self.tag("endif")

    def statement(self, depth):
        shown = lambda: "{{" + self.pick(["", "", "-"]) + f" {self.simple()} " + self.pick(["", "", "-"]) + "}}"
        if depth <= 0:
            return shown()
        name, less = (lambda: self.pick(NAMES)), depth - 1
        kinds = [
            (30, shown), (14, lambda: self.loop(less)), (12, lambda: self.choice(less)),
            (14, lambda: self.tag(f"set {self.target()} = {self.simple()}")),
            (3, lambda: self.block(f"set {name()}" + self.pick(["", " | upper"]), less, "endset")),
            (3, lambda: self.tag(f"set ns = namespace(x={self.simple()})")),
            (3, lambda: self.tag(f"set ns.{self.pick('xy')} = {self.simple()}")),
            (7, lambda: self.block(f"macro {self.pick('fg')}({self.parameters()})", less, "endmacro")),
            (2, lambda: self.tag(self.pick(["break", "continue"]))),
            (3, lambda: self.block(f"with {name()} = {self.simple()}", less, "endwith")),
            (3, lambda: self.block(f"call{self.pick(['', '(x)'])} {self.pick('fg')}({self.simple()})", less, "endcall")),
            (2, lambda: self.block(f"filter {self.pick(['upper', 'trim', 'indent(2)', 'no_filter'])}", less, "endfilter")),
            (2, lambda: self.block("generation", less, "endgeneration")),
            (2, lambda: self.tag("raw") + "{{ a }} {% b %}" + self.tag("endraw")),
        ]
        return self.random.choices([k for _, k in kinds], [w for w, _ in kinds])[0]()

    def body(self, depth):
        parts = [self.pick(TEXTS) + self.statement(depth) for _ in range(self.pick([1, 1, 2, 2, 3]))]
        return "".join(parts) + self.pick(TEXTS)

    def template(self):
        text = "".join(self.body(self.pick([1, 2, 2, 3])) for _ in range(self.pick([1, 2])))
        if self.random.random() < 0.7:
            text = ("{% set ns = namespace(x=1) %}{% macro f(x) %}<{{ x }}>{% endmacro %}"
                    "{% macro g(x, y=2) %}[{{ x }}{{ y }}{{ caller is defined }}]{% endmacro %}") + text
        return text
