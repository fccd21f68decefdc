import { describe, expect, it } from 'vitest';
import { parsePythonJson } from '../../../../main/core/datasets/pythonJson.ts';
import { TemplateError } from '../../../../main/core/datasets/template/errors.ts';
import { compileTemplate } from '../../../../main/core/datasets/template/template.ts';
import { Dict } from '../../../../main/core/datasets/template/values.ts';
import type { Value } from '../../../../main/core/datasets/template/values.ts';

const VARIABLES = parsePythonJson(String.raw`{
  "s": "Hello  World", "u": "ÄöSS ß 杭州 🏞️x　", "q": "it's \"quoted\" \\ back\n", "big": 12345678901234567890,
  "f": 1.0, "h": 1e16, "k": 0.00001234, "g": -2.5, "yes": true, "nil": null, "l": [3, 1, 2, 1], "e": "",
  "o": {"b": 1, "10": [1], "2": null, "items": "own", "b": "last"}, "lo": [{"r": "user"}, {"r": "Bot", "n": 1.5}]
}`);

function context(): Record<string, Value> {
  if (!(VARIABLES instanceof Dict)) throw new Error('not a dict');
  return Object.fromEntries(
    [...VARIABLES.entries()].map(([name, value]) => [typeof name === 'string' ? name : '', value]),
  );
}

function render(template: string): string {
  return compileTemplate(template).render(context(), new Date(2024, 6, 26, 9, 5, 7));
}

function error(template: string): string {
  try {
    return `rendered ${render(template)}`;
  } catch (thrown) {
    if (thrown instanceof TemplateError) return thrown.describe();
    throw thrown;
  }
}

/** Each pair was checked against Jinja2 3.1 on Python 3.11. */
describe('renders what Python renders', () => {
  it.each([
    ['{{ [yes, nil, f, h, k, big, g] }}', '[True, None, 1.0, 1e+16, 1.234e-05, 12345678901234567890, -2.5]'],
    ['{% set a = 1 %}{% autoescape false %}{% set a = "<b>" %}{{ a }}{% endautoescape %}{{ a }}', '<b>1'],
    ['{% for x in l %}{% continue %}{% else %}none{% endfor %}', 'none'],
    ['{% for x in l %}{{ x }}{% break %}{% else %}none{% endfor %}', '3none'],
    ['{% for x in l %}{{ x }}{% if x == 1 %}{% break %}{% endif %}{% else %}none{% endfor %}', '31'],
    ['{{ o }}', "{'b': 'last', '10': [1], '2': None, 'items': 'own'}"],
    ['{{ o|tojson }}', '{"b": "last", "10": [1], "2": null, "items": "own"}'],
    ['{{ [u, f, big]|tojson }}', '["ÄöSS ß 杭州 🏞️x　", 1.0, 12345678901234567890]'],
    ['{{ {"a": [], "b": [1, {}]}|tojson(indent=2) }}', '{\n  "a": [],\n  "b": [\n    1,\n    {}\n  ]\n}'],
    ['{{ q|tojson }}', '"it\'s \\"quoted\\" \\\\ back\\n"'],
    ['{{ [q] }}', "['it\\'s \"quoted\" \\\\ back\\n']"],
    ['{{ u|length }} {{ u[-3] }} {{ u[::-1] }}', '14 ️ 　x️🏞 州杭 ß SSöÄ'],
    ['{{ u|upper }}', 'ÄÖSS SS 杭州 🏞️X　'],
    ['{{ "ŉ ǰ ẞ ı Ꭰ ꭰ ς"|string|lower }} {{ "ŉ ǰ ẞ ı Ꭰ ꭰ ς".casefold() }}', 'ŉ ǰ ß ı ꭰ ꭰ ς ʼn ǰ ss ı Ꭰ Ꭰ σ'],
    [
      '{{ "ǆ ა ᾳ ΑΣ ΑΣΑ".title() }} {{ "ǅ".swapcase() }} {{ "Ⅷ".isupper() }} {{ "①⑴ⅷ".isdigit() }} {{ "三百".isnumeric() }}',
      'ǅ ა ᾼ Ας Ασα ǅ True False True',
    ],
    ['{{ "🏞🏞🏞🏞 🏞🏞🏞🏞 ab"|wordwrap(9) }}', '🏞🏞🏞🏞 🏞🏞🏞🏞\nab'],
    ['{{ "<b>a b</b>"|striptags }}', 'a b'],
    [
      "{{ {'key b': [1, 2.0, none, 'x' * 40], 'a': 'word ' * 20, 'n': {'z': (1,), 'y': []}}|pprint }}",
      "{'a': 'word word word word word word word word word word word word word word '\n      'word word word word word word ',\n 'key b': [1, 2.0, None, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'],\n 'n': {'y': [], 'z': (1,)}}",
    ],
    [
      '{{ 7 // -2 }} {{ 7 % -2 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 100 }} {{ 2 ** -1 }}',
      '-4 -1 3.5 3.0 1267650600228229401496703205376 0.5',
    ],
    ['{{ 1 == true }} {{ 1 == 1.0 }} {{ "1" == 1 }} {{ [1] == (1,) }}', 'True True False False'],
    ['{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ "b" in s }} {{ "H" in s }}', 'True False False True'],
    ['{{ "  x\u001f\u00a0"|trim }}|{{ "\u200bx\ufeff"|trim|length }}', 'x|3'],
    [
      '{{ s.split() }} {{ s.split(" ") }} {{ "a,b,c".rsplit(",", 1) }}',
      "['Hello', 'World'] ['Hello', '', 'World'] ['a,b', 'c']",
    ],
    [
      '{{ "xxhixx".strip("x") }} {{ "abc".startswith(("z", "a")) }} {{ "a-b".partition("-") }}',
      "hi True ('a', '-', 'b')",
    ],
    [
      '{{ (s|e).partition("-") }} {{ (s|e).rpartition("-") }}',
      "(Markup('Hello  World'), Markup(''), Markup('')) (Markup(''), Markup(''), Markup('Hello  World'))",
    ],
    [
      '{{ missing }}|{{ missing|default("D") }}|{{ e|default("D", true) }}|{{ nil|default("D") }}',
      '|D|D|None',
    ],
    ['{{ o.nope is defined }} {{ o["2"] is none }} {{ o.get("x", 5) }}', 'False True 5'],
    ['{{ lo|map(attribute="r")|join(", ") }} {{ lo|selectattr("n", "defined")|list|length }}', 'user, Bot 1'],
    ['{{ l|sort }} {{ l|unique|list }} {{ l|sum }} {{ l|max }}', '[1, 1, 2, 3] [3, 1, 2] 7 3'],
    ['{{ o|dictsort|map("first")|list }}', "['10', '2', 'b', 'items']"],
    [
      '{% for k, v in {"a": 1, "b": 2}|items %}{{ loop.index }}{{ k }}={{ v }}{{ "," if not loop.last }}{% endfor %}',
      '1a=1,2b=2',
    ],
    ['{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{% else %}none{% endfor %}', '3222'],
    ['{% for x in [] %}{% else %}none{% endfor %}', 'none'],
    [
      '{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{{ loop.depth }};{% endfor %}',
      '11;22;33;2;1;',
    ],
    ['{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}', '231'],
    [
      '{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}',
      '3',
    ],
    [
      '{% macro m(a, b="x") %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}{{ m(b=1) }}',
      "12(3,){'k': 4}1(){}",
    ],
    ['{% macro m() %}<{{ caller(1) }}>{% endmacro %}{% call(x) m() %}{{ x }}in{% endcall %}', '<1in>'],
    ['{% filter upper %}a{{ s }}{% endfilter %}{% set y %} b {% endset %}[{{ y|trim }}]', 'AHELLO  WORLD[b]'],
    [
      'a\n  {%- if yes %}  b\n  {% endif +%}\n c {# x #}\n{% raw -%} {{ x }} {% endraw %}d',
      'a  b\n\n c {{ x }} d',
    ],
    ['{{ "%s|%5.2f|%-4s|%05d|%r" % ("a", g, "b", 42, "c") }}', "a|-2.50|b   |00042|'c'"],
    ['{{ "{} {!r} {:>4} {x[b]}".format(1, "a", "r", x=o) }}', "1 'a'    r last"],
    ['{{ (s|safe) + "<b>" }}{{ "<b>"|e }}', 'Hello  World&lt;b&gt;&lt;b&gt;'],
    [
      '{{ [1.5, 2.5, -0.5]|map("round")|list }} {{ 3|round }} {{ 2.675|round(2) }}',
      '[2.0, 2.0, -0.0] 3 2.67',
    ],
    [
      '{{ "12abc"|int }} {{ " 42 "|int }} {{ "1e3"|int }} {{ "x"|float }} {{ "3"|float }}',
      '0 42 1000 0.0 3.0',
    ],
    ['{{ strftime_now("%d %b %Y") }} {{ strftime_now("%Y-%m-%d") }}', '26 Jul 2024 2024-07-26'],
    ['{{ "a b-c"|title }} {{ "a b-c".title() }} {{ "éA"|capitalize }}', 'A B-C A B-C Éa'],
    ['{{ missing|last }}|{{ missing|reverse|list }}|{{ missing|join }}', '|[]|'],
    ['{{ "a\\nb"|indent }}|{{ "a\\n\\nb"|indent(2, true, true) }}', 'a\n    b|  a\n  \n  b'],
    [
      '{{ l is sequence }} {{ o is mapping }} {{ s is iterable }} {{ yes is number }} {{ yes is integer }}',
      'True True True True False',
    ],
    ['{{ not yes }} {{ yes and 0 }} {{ e or "x" }} {{ 1 if nil }}|', 'False 0 x |'],
  ])('%s', (template, wanted) => {
    expect(render(template)).toBe(wanted);
  });
});

describe('fails where Python fails, in its words', () => {
  it.each([
    ['{{ s + 1 }}', 'TypeError: can only concatenate str (not "int") to str'],
    ['{{ 1 + s }}', "TypeError: unsupported operand type(s) for +: 'int' and 'str'"],
    ['{{ ["a", "b"]|urlencode }}', 'ValueError: not enough values to unpack (expected 2, got 1)'],
    ['{{ [(1, 2, 3)]|urlencode }}', 'ValueError: too many values to unpack (expected 2)'],
    ['{{ missing.x }}', "UndefinedError: 'missing' is undefined"],
    ['{{ o.nope.x }}', "UndefinedError: 'dict object' has no attribute 'nope'"],
    ['{{ nil.x.y }}', "UndefinedError: 'None' has no attribute 'x'"],
    ['{{ missing + "x" }}', "UndefinedError: 'missing' is undefined"],
    ['{{ [1, "a"]|sort }}', "TypeError: '<' not supported between instances of 'str' and 'int'"],
    ['{{ raise_exception("Only user and assistant") }}', 'TemplateError: Only user and assistant'],
    ['{{ l.append(1) }}', "SecurityError: access to attribute 'append' of 'list' object is unsafe."],
    ['{{ "".__class__.x }}', "SecurityError: access to attribute '__class__' of 'str' object is unsafe."],
    ['{{ 1 // 0 }}', 'ZeroDivisionError: integer division or modulo by zero'],
    ['{{ "" * 2 ** 70 }}', "OverflowError: cannot fit 'int' into an index-sized integer"],
    ['{% for a, b in [1] %}{% endfor %}', 'TypeError: cannot unpack non-iterable int object'],
    ['{{ nil|length }}', "TypeError: object of type 'NoneType' has no len()"],
    ['{% for x in 5 %}{% endfor %}', "TypeError: 'int' object is not iterable"],
    ['{{ {}|tojson(indent=[]) }}', "TypeError: can't multiply sequence by non-int of type 'list'"],
    ['{{ missing|tojson }}', 'TypeError: Object of type Undefined is not JSON serializable'],
    [
      '{{ range(1000000) }}',
      'OverflowError: Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).',
    ],
    ['{{ x|nofilter }}', "TemplateAssertionError: No filter named 'nofilter'."],
    ['{% macro m(a, b=a, c) %}{% endmacro %}', 'non-default argument follows default argument'],
    ['{% do l %}', "TemplateSyntaxError: Encountered unknown tag 'do'."],
    ['{% autoescape true %}{% endautoescape %}', "'autoescape' can only be false here"],
    ['{{ 1', 'TemplateSyntaxError'],
    ['{% if x %}', 'TemplateSyntaxError: Unexpected end of template'],
    ['{# open', 'TemplateSyntaxError: Missing end of comment tag'],
  ])('%s', (template, wanted) => {
    expect(error(template)).toContain(wanted);
  });

  it('names the line', () => {
    let thrown: unknown;
    try {
      render('a\nb\n{{ s }}\n{% if yes %}\n{{ 1 + s }}{% endif %}');
    } catch (caught) {
      thrown = caught;
    }
    expect((thrown as TemplateError).line).toBe(5);
    expect(() => compileTemplate('\n\n{{ ) }}')).toThrow(expect.objectContaining({ line: 3 }) as Error);
  });
});

describe('JSON as Python reads it', () => {
  it('keeps types, order and exact integers, and takes what Python takes', () => {
    const text = '{"2": 1.0, "1": 10000000000000000000001, "a": 1e5, "n": [NaN, -Infinity, -0], "a": 2}';
    expect(compileTemplate('{{ x }}').render({ x: parsePythonJson(text) })).toBe(
      "{'2': 1.0, '1': 10000000000000000000001, 'a': 2, 'n': [nan, -inf, 0]}",
    );
  });

  it.each([
    ['', 'Expecting value: line 1 column 1 (char 0)'],
    ['{"a":1} x', 'Extra data: line 1 column 9 (char 8)'],
    ['{"a"\n:tru}', 'Expecting value: line 2 column 2 (char 6)'],
    ['["a', 'Unterminated string starting at: line 1 column 2 (char 1)'],
    ['["\t"]', 'Invalid control character at: line 1 column 3 (char 2)'],
    ['{1: 2}', 'Expecting property name enclosed in double quotes: line 1 column 2 (char 1)'],
    ['[1 2]', "Expecting ',' delimiter: line 1 column 4 (char 3)"],
  ])('%s', (text, wanted) => {
    expect(() => parsePythonJson(text)).toThrow(wanted);
  });
});
