"""Columns of a kind: what a table shows of its objects, and by which rule (src/server/kinds/columns.h)."""
import json
import re

from tables import quote
from wrong import Wrong

TYPES = ('string', 'integer', 'boolean', 'date')
# How many paths a rule takes, and whether a member of the items of a list may follow.
RULES = {'at': (1, 1, False), 'first': (1, 1, True), 'age': (1, 1, False), 'count': (1, 9, False),
         'join': (1, 1, True), 'ratio': (2, 2, False), 'labels': (1, 1, False),
         'selector': (1, 1, False), 'text': (1, 1, False), 'by': (1, 1, False)}
# What is shown of a field that is not there.
NOTHING = {'STRING': '""', 'BOOL': 'false', 'INT32': '0', 'INT64': '0', 'QUANTITY': '"0"'}
SHORT = {'Name': 'Name string name at metadata.name', 'Age': 'Age string age metadata.creationTimestamp'}
WANT = 'want column NAME TYPE [name] [wide] RULE ... [or VALUE]'


def unquoted(word):
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] == '"' else word


def as_json(word):
    """true and numbers are themselves, all else is text; as Go prints it in JSON."""
    if re.fullmatch(r'true|false|\d+', word):
        return word
    text = json.dumps(unquoted(word))
    return text.replace('<', '\\u003c').replace('>', '\\u003e').replace('&', '\\u0026')


class Column:
    """column NAME TYPE [name] [wide] RULE ... [or VALUE]; NAME alone: see SHORT; -: told by no definition"""

    def __init__(self, where, words):
        if len(words) == 1 and words[0] in SHORT:
            words = SHORT[words[0]].split()
        self.where, words = where, list(words)
        self.name, self.type = unquoted(words.pop(0)), words.pop(0) if words else ''
        self.format = words.pop(0) if words[:1] == ['name'] else ''
        self.priority = int(bool(words[:1] == ['wide'] and words.pop(0)))
        self.rule = words.pop(0) if words else ''
        if self.type not in TYPES or self.rule not in RULES:
            raise Wrong(f'{where}: {WANT}')
        self.missing = self.member = self.text = self.call = None
        if words[-2:-1] == ['or']:
            self.missing = as_json(words[-1])
            words = words[:-2]
        self.empty_is_missing = False
        self.paths = words
        self.take_words(words)

    def take_words(self, words):
        low, high, has_member = RULES[self.rule]
        if has_member and len(words) == high + 1:
            self.member = words[-1]
            self.paths = words[:-1]
        if not low <= len(self.paths) <= high:
            raise Wrong(f'{self.where}: {WANT}')
        if self.rule == 'by':
            self.call, self.paths = words[0], []
        if self.rule == 'text':
            self.text = unquoted(words[0])
            self.paths = re.findall(r'\{([^}]*)\}', self.text)

    def check(self, type_):
        """Are its paths there? Then what is shown when there is nothing is known too."""
        fields = [find(self.where, type_, path.split('.')) for path in self.paths]
        if self.member:
            find(self.where, fields[0].type, self.member.split('.'))
        f = fields[0] if fields else None
        if self.rule == 'at' and self.missing:
            self.empty_is_missing = 'POINTER' not in f.flags
        if self.missing is None:
            self.missing = NOTHING.get(f.value, '""') if self.rule == 'at' else '""'
            if self.rule == 'age':
                self.missing = as_json('<unknown>')

    def row(self, w):
        name = None if self.name == '-' else self.name
        return (f'{{.name = {quote(name)}, .type = {quote(self.type)}, .format = {quote(self.format)}, '
                f'.about = {quote(", ".join(self.paths))}, .priority = {self.priority}, '
                f'.rule = VG_CELL_{"CALL" if self.call else self.rule.upper()}, '
                f'.empty_is_missing = {str(self.empty_is_missing).lower()}, '
                f'.paths = {w.strings(self.paths)}, .text = {quote(self.member or self.text)}, '
                f'.missing = {quote(self.missing)}, '
                f'.call = {"vg_cell_" + self.call if self.call else "NULL"}}}')


def find(where, type_, steps):
    """The field at the end of a path; below a map any key is one."""
    field, at, is_key = None, type_, False
    for step in steps:
        if is_key:
            at, is_key = field.type, False
            continue
        found = [f for f, _ in at.fields if f.name == step] if at else []
        if not found:
            raise Wrong(f'{where}: there is no {".".join(steps)}')
        field, at, is_key = found[0], found[0].type, found[0].shape == 'MAP'
    return field


# Of a kind that says none.
DEFAULT = [['Name'], ['"Created At"', 'date', 'at', 'metadata.creationTimestamp', 'or', '0001-01-01T00:00:00Z']]


def finish(kind):
    kind.columns = kind.columns or [Column(kind.where, words) for words in DEFAULT]
    for column in kind.columns:
        column.check(kind.type)
    for path, _, _ in kind.row_ends:
        find(kind.where, kind.type, path.split('.'))


def write(w, kind):
    """The member of a kind's row."""
    kind = kind.stored or kind
    rows = [c.row(w) for c in kind.columns]
    columns = w.constant('columns', 'struct vg_column {}[]', '{' + ', '.join(rows) + '}')
    ends = 'NULL'
    if kind.row_ends:
        rows = [f'{{{quote(p)}, {quote(v)}, {quote(m)}}}' for p, v, m in kind.row_ends]
        ends = w.constant('ends', 'struct vg_row_end {}[]', '{' + ', '.join(rows + ['{NULL, NULL, NULL}']) + '}')
    return [('columns', f'{{{columns}, {len(kind.columns)}, {ends}}}')]
