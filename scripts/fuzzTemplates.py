"""Random templates and what Jinja2, set up as transformers sets it up, makes of them: one JSON object a line.

Run by fuzzTemplates.ts. Arguments: seed, number of cases.
"""

import copy
import json
import random
import sys
import warnings
from datetime import datetime

import jinja2.exceptions
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARIABLES = {
    "s": "Hello  World",
    "t": "  <think>\nab\n</think>\n\ncd \t\n",
    "u": "ÄöSS ß 杭州 🏞️x\u3000",
    "e": "",
    "q": "it's \"quoted\" \\ back\n\x1f\u200b",
    "m": "a,b,,c",
    "d9": "42",
    "i": 7,
    "z": 0,
    "n": -3,
    "big": 12345678901234567890,
    "f": 1.0,
    "g": -2.5,
    "h": 1e16,
    "k": 0.00001234,
    "yes": True,
    "no": False,
    "nil": None,
    "l": [3, 1, 2, 1],
    "ls": ["b", "A", "c", "a"],
    "lx": [1, "a", None, 2.0, True],
    "le": [],
    "ll": [[1, 2], [3, 4], [5, 6]],
    "o": {"b": 1, "a": "x", "10": [1], "items": "own"},
    "oe": {},
    "lo": [{"r": "user", "c": "hi", "n": 2}, {"r": "Bot", "c": None, "n": 1.5}, {"r": "user", "c": "yo"}],
}
ATOMS = list(VARIABLES) + ["missing", "o.a", "o['10']", "lo[0]", "lo[-1].r", "ll[1][0]", "o.nope"]
CONSTANTS = [
    "'x'", "'a b'", "''", "' '", "'\\n'", "'</think>'", "'l'", "'🏞'", "0", "1", "2", "-1", "3", "2.0", "0.5", "1e3",
    "true", "false", "none", "[]", "[1, 'a']", "('a', 'b')", "{'k': 1, 'j': [2]}", "(1,)", "1_000",
]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
FILTERS = [
    "trim", "trim('x ')", "upper", "lower", "title", "capitalize", "length", "count", "first", "last", "int", "float",
    "int(5)", "string", "tojson", "tojson(indent=2)", "items|list", "dictsort", "sort", "sort(reverse=true)", "unique|list",
    "reverse|list", "reverse", "batch(2)|list", "batch(2, 'x')|list", "slice(2)|list", "indent", "indent(2, true)",
    "indent(2, blank=true)", "safe", "e", "abs", "sum", "min", "max", "join(', ')", "join", "join('-', 'r')",
    "map('upper')|list", "map(attribute='r')|list", "map(attribute='n', default=0)|list", "select|list",
    "select('string')|list", "reject('none')|list", "selectattr('n')|list", "selectattr('r', 'equalto', 'user')|list",
    "rejectattr('c', 'none')|list", "default('D')", "d('D', true)", "replace('a', 'b')", "replace('l', 'L', 1)",
    "replace('', '-')", "list", "round", "round(1)", "round(1, 'floor')", "groupby('r')", "groupby('r')|map('first')|list",
    "wordcount", "truncate(5)", "truncate(6, true, '…')", "center(12)", "format(1, 'b')", "map('int')|list", "urlencode",
    "xmlattr", "striptags", "pprint", "map('length')|list", "tojson(sort_keys=true)", "tojson(ensure_ascii=true)", "forceescape",
    "map('string')|join('|')", "sort(attribute='r')|map(attribute='r')|list", "items|map('last')|list",
    "dictsort(by='value')", "sum(attribute='n')", "tojson(separators=(',', ':'))", "filesizeformat", "attr('r')",
    "max(attribute='r')", "sort(case_sensitive=true)", "wordwrap(5)", "string|length", "tojson|safe",
]
TESTS = [
    "defined", "undefined", "none", "string", "mapping", "sequence", "iterable", "number", "integer", "float", "boolean",
    "true", "false", "odd", "even", "divisibleby(2)", "divisibleby 3", "equalto 1", "eq('x')", "ne 2", "gt 1", "ge(2)",
    "lt 3", "le 1", "in [1, 'a']", "in 'abc'", "sameas true", "upper", "lower", "callable", "escaped", "filter",
]
METHODS = [
    "strip()", "lstrip()", "rstrip()", "strip('\\n')", "lstrip('H ')", "rstrip('dl')", "split()", "split(',')",
    "split(' ', 1)", "split(None, 1)", "rsplit(',', 1)", "rsplit(None, 1)", "splitlines()", "splitlines(true)",
    "split('</think>')[0]", "split('</think>')[-1]", "upper()", "lower()", "title()", "capitalize()", "swapcase()",
    "startswith('H')", "endswith(('d', 'c'))", "startswith('e', 1)", "replace('l', 'LL')", "replace('l', '', 1)",
    "find('o')", "rfind('o')", "find('zz')", "index('o')", "count('l')", "count('')", "isdigit()", "isalpha()",
    "isalnum()", "isspace()", "isupper()", "islower()", "istitle()", "removeprefix('He')", "removesuffix('ld')",
    "zfill(8)", "ljust(14, '.')", "rjust(14)", "center(15, '*')", "partition(' ')", "rpartition(',')", "join(['a', 'b'])",
    "join(ls)", "format(1, x=2)", "get('a')", "get('zz', 9)", "get('zz')", "items()", "keys()", "values()", "keys()|list",
    "items()|list", "values()|list", "index(1)", "count(1)", "append(1)", "pop()", "update({})", "casefold()",
    "expandtabs(4)", "isdecimal()", "isnumeric()", "isidentifier()", "copy()", "foo", "foo.bar", "__class__",
]
SLICES = ["[0]", "[-1]", "[1:]", "[:-1]", "[::-1]", "[1:3]", "[::2]", "[-2:]", "['a']", "[99]", "[:0]", "[3:1:-1]"]
FORMATS = [
    "'%s and %s' % (EXPR, EXPR)", "'%d|%5.2f|%-6s|' % (i, g, EXPR)", "'%r' % EXPR", "'%05d %x' % (i, i)", "'%s' % EXPR",
    "'{} {!r} {:>8}'.format(EXPR, EXPR, s)", "'{0:05.1f}{1:,}'.format(g, big)", "'{a[b]}'.format(a=o)", "'%(a)s' % o",
]


class Generator:
    def __init__(self, rng):
        self.rng = rng

    def pick(self, items):
        return self.rng.choice(items)

    def expression(self, depth=3):
        r = self.rng.random()
        if depth <= 0 or r < 0.18:
            return self.pick(ATOMS) if self.rng.random() < 0.7 else self.pick(CONSTANTS)
        inner = lambda: self.expression(depth - 1)
        if r < 0.42:
            return f"({inner()})|{self.pick(FILTERS)}"
        if r < 0.55:
            return f"({inner()}).{self.pick(METHODS)}"
        if r < 0.63:
            return f"({inner()}){self.pick(SLICES)}"
        if r < 0.80:
            return f"({inner()} {self.pick(OPERATORS)} {inner()})"
        if r < 0.88:
            return f"({inner()} is {self.pick(['', 'not '])}{self.pick(TESTS)})"
        if r < 0.92:
            return f"({inner()} if {inner()} else {inner()})"
        if r < 0.94:
            return f"({inner()} if {inner()})"
        if r < 0.96:
            return f"(not {inner()})"
        if r < 0.98:
            text = self.pick(FORMATS)
            while "EXPR" in text:
                text = text.replace("EXPR", inner(), 1)
            return f"({text})"
        return self.pick(["range(3)", "range(1, 6, 2)|list", "dict(a=1, b=2)", "[" + inner() + ", " + inner() + "]", "-" + self.pick(ATOMS)])

    def tag(self, text):
        left = self.pick(["", "", "-", "+"])
        right = self.pick(["", "", "-", "+"])
        return f"{{%{left} {text} {right}%}}"

    def text(self):
        return self.pick(["", " ", "\n", "a", "  b\n", "\n  ", "\t\n\n", "x y", "{", "é\r\n"])

    def statement(self, depth):
        e = self.expression
        body = lambda: self.body(depth - 1)
        kind = self.rng.randrange(13) if depth > 0 else self.rng.randrange(3)
        if kind <= 1:
            return f"{{{{{self.pick(['', '-'])} {e()} {self.pick(['', '-'])}}}}}"
        if kind == 2:
            return self.tag(f"set {self.pick(['v', 'w', 'ns.x'])} = {e(2)}") + self.pick(["{{ v }}", "{{ ns.x }}", ""])
        if kind == 3:
            middle = self.pick(["", self.tag("else") + body(), self.tag(f"elif {e(2)}") + body() + self.tag("else") + body()])
            return self.tag(f"if {e(2)}") + body() + middle + self.tag("endif")
        if kind == 4:
            head = self.pick(["for x in l", "for x in lo", f"for x in {e(1)}", "for k, v in o|items", "for x in ls if x != 'c'", "for a, b in ll", "for c in u", "for x in l|sort recursive"])
            loop = self.pick(["", "{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}", "{{ loop.previtem }}{{ loop.nextitem is defined }}", "{{ loop.cycle('p', 'q') }}{{ loop.revindex0 }}", "{{ x }}{{ v }}", "{% if loop.index > 1 %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}", "{{ loop.changed(x) }}", "{{ loop.depth }}"])
            other = self.pick(["", "", self.tag("else") + body()])
            return self.tag(head) + loop + body() + other + self.tag("endfor")
        if kind == 5:
            return self.tag(f"macro mc(a, b={e(1)})") + "{{ a }}{{ b }}" + self.pick(["", "{{ varargs }}{{ kwargs }}", "{{ caller() }}"]) + self.tag("endmacro") + self.pick([f"{{{{ mc({e(1)}) }}}}", f"{{{{ mc(1, b={e(1)}) }}}}", "{{ mc(1, 2, 3, z=4) }}", "{% call mc(1) %}in{% endcall %}"])
        if kind == 6:
            return self.tag("set v") + body() + self.tag("endset") + "[{{ v }}]"
        if kind == 7:
            return self.tag(f"filter {self.pick(['upper', 'trim', 'indent(2)', 'replace(' + chr(39) + 'a' + chr(39) + ', ' + chr(39) + 'A' + chr(39) + ')'])}") + body() + self.tag("endfilter")
        if kind == 8:
            return self.tag(f"with v = {e(2)}, w = v") + "{{ v }}{{ w }}" + body() + self.tag("endwith")
        if kind == 9:
            return self.pick(["{#- note -#}", "{# a\n b #}\n", "{%- raw %} {{ x }} {% endraw -%}", "{% raw -%} y {%- endraw %}\n"])
        if kind == 10:
            return "{% set ns.x = ns.x ~ " + e(2) + " %}{{ ns.x }}"
        if kind == 11:
            return self.tag("generation") + body() + self.tag("endgeneration")
        return "{{ x|default('-') }}{{ v }}"

    def body(self, depth):
        parts = []
        for _ in range(self.rng.randrange(1, 4)):
            parts.append(self.text())
            parts.append(self.statement(depth))
        parts.append(self.text())
        return "".join(parts)

    def template(self):
        if self.rng.random() < 0.6:
            return "{{ " + self.expression() + " }}"
        return "{% set ns = namespace(x='') %}" + self.body(3)


class Generation(jinja2.ext.Extension):
    """The generation tag as transformers defines it, without its bookkeeping."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(lineno)

    def _render(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    return env


def main():
    warnings.simplefilter('ignore')
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    env = environment()
    print(json.dumps({"variables": json.dumps(VARIABLES)}))
    for i in range(count):
        template = Generator(random.Random(f"{seed}:{i}")).template()
        case = {"template": template}
        try:
            case["text"] = env.from_string(template).render(**copy.deepcopy(VARIABLES))
        except Exception as error:  # every failure of Python is an expected failure here
            case["error"] = f"{type(error).__name__}: {error}"
        if " at 0x" in case.get("text", ""):
            continue  # an address, different on every run
        print(json.dumps(case))


if __name__ == "__main__":
    main()
