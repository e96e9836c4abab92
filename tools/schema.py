#!/usr/bin/env python3
"""Turns the notation of src/server/kinds/schema/ into constant C tables (src/server/schema/schema.h).

    schema.py OUT.c FILE.schema ...

The notation is described in docs/kinds.md. What does not fit together is told with file and line."""
import copy
import os
import re
import sys

VALUES = {
    'string': 'STRING', 'bool': 'BOOL', 'int32': 'INT32', 'int64': 'INT64', 'float64': 'DOUBLE',
    'bytes': 'BYTES', 'quantity': 'QUANTITY', 'int-or-string': 'INT_OR_STRING', 'time': 'TIME',
    'microtime': 'MICRO_TIME', 'raw': 'RAW', 'json': 'JSON', 'fields': 'FIELDS',
    'strings': 'STRINGS', 'schema-or-array': 'OR_ARRAY', 'schema-or-bool': 'OR_BOOL',
    'schema-or-strings': 'OR_STRINGS',
}
# What Go calls the values that have a name of their own there.
GO = {
    'bytes': '[]uint8', 'quantity': 'resource.Quantity', 'int-or-string': 'intstr.IntOrString',
    'time': 'v1.Time', 'microtime': 'v1.MicroTime', 'raw': 'runtime.RawExtension',
    'json': 'v1.JSON', 'fields': 'v1.FieldsV1', 'strings': 'v1.ExtraValue',
    'schema-or-array': 'v1.JSONSchemaPropsOrArray', 'schema-or-bool': 'v1.JSONSchemaPropsOrBool',
    'schema-or-strings': 'v1.JSONSchemaPropsOrStringArray',
}
SCHEMA_OF_SCHEMAS = 'JSONSchemaProps'  # what the schema-or-* values hold
ATTRIBUTES = {'required': 'REQUIRED', 'omitzero': 'OMIT_ZERO', 'set': 'LIST_SET',
              'atomic': 'ATOMIC', 'map-atomic': 'ATOMIC', 'map-granular': None, 'merge': 'MERGE', 'replace': None,
              'retainKeys': 'RETAIN_KEYS'}


class Wrong(Exception):
    """What is wrong, with where."""


class Field:
    """A line of a type: a field, or ('+') a type whose fields stand among these."""

    def __init__(self, where, words):
        self.where = where
        if len(words) < 3 or not words[1].isdigit():
            raise Wrong(f'{where}: want NAME NUMBER TYPE [ATTRIBUTES]')
        self.name, self.number, text = words[0], int(words[1]), words[2]
        self.flags, self.default, self.values, self.keys, self.merge_key = set(), None, None, [], None
        self.is_embedded = self.name == '+'
        if text.endswith('?'):
            self.flags.add('OMIT_EMPTY')
            text = text[:-1]
        self.text = text
        for word in words[3:]:
            self.attribute(word)

    def attribute(self, word):
        call = re.fullmatch(r'(keys|merge|enum)\(([^)]*)\)', word)
        if word.startswith('='):
            self.default = word[1:]
        elif call and call.group(1) == 'keys':
            self.keys = call.group(2).split(',')
        elif call and call.group(1) == 'enum':
            self.values = call.group(2).split(',')
        elif call:
            self.merge_key = call.group(2)
            self.flags.add('MERGE')
        elif word in ATTRIBUTES:
            if ATTRIBUTES[word]:
                self.flags.add(ATTRIBUTES[word])
        else:
            raise Wrong(f'{self.where}: unknown attribute "{word}"')


class Type:
    def __init__(self, where, scope, name, words):
        self.where, self.scope, self.name = where, scope, name
        self.is_atomic = 'atomic' in words
        hooks = [w for w in words if re.fullmatch(r'defaults\(\w+\)', w)]
        self.hook = hooks[0][9:-1] if hooks else None
        self.has_defaults = False  # itself, or what it holds
        if set(words) - set(hooks) - {'atomic'}:
            raise Wrong(f'{where}: want type NAME [atomic] [defaults(FUNCTION)]')
        self.lines = []    # as written
        self.fields = []   # flat, in the order of JSON
        self.parts = []    # (go, entries)
        self.id = -1


class Scope:
    """A group and version: where names are looked up."""

    def __init__(self, file, group, version):
        self.file, self.group, self.version = file, group, version
        self.types, self.names, self.aliases = {}, {}, {}

    def go(self, name):
        return f'{self.version}.{name}'


class Reader:
    def __init__(self):
        self.scopes = []
        self.by_file = {}  # file's stem -> its first scope: what "core.X" means

    def read(self, path):
        stem = os.path.basename(path).removesuffix('.schema')
        group, scope, at = None, None, None
        for number, line in enumerate(self.joined(path), 1):
            where = f'{path}:{number}'
            words = re.findall(r'[^\s"]*"[^"]*"\S*|\S+', line.split('#')[0])
            if not words:
                continue
            if line[0] == ' ':
                if at is None:
                    raise Wrong(f'{where}: a field outside of a type')
                at.lines.append(Field(where, words))
                continue
            at = None
            if words[0] == 'group':
                group = '' if words[1] == '""' else words[1]
            elif words[0] == 'version':
                scope = Scope(stem, group, words[1])
                self.scopes.append(scope)
                self.by_file.setdefault(stem, scope)
            elif scope is None:
                raise Wrong(f'{where}: group and version come first')
            elif words[0] == 'type':
                at = Type(where, scope, words[1], words[2:])
                self.add(where, scope, scope.types, words[1], at)
            elif words[0] in ('enum', 'name'):
                self.named(where, scope, words)
            elif words[0] == 'alias':
                self.add(where, scope, scope.aliases, words[1], words[2])
            else:
                raise Wrong(f'{where}: unknown word "{words[0]}"')

    @staticmethod
    def joined(path):
        """Lines; those indented by four are the rest of the line before, whose number stays."""
        out = []
        with open(path, encoding='utf-8') as f:
            for line in f.read().split('\n'):
                if line.startswith('    ') and out:
                    k = len(out) - 1
                    while not out[k]:
                        k -= 1
                    out[k] += line
                    line = ''
                out.append(line)
        return out

    @staticmethod
    def add(where, scope, table, name, value):
        if name in scope.types or name in scope.names or name in scope.aliases:
            raise Wrong(f'{where}: {name} is there already')
        table[name] = value

    def named(self, where, scope, words):
        """enum NAME [go X]: VALUES   or   name NAME [go X]"""
        values, go = None, None
        rest = words[1:]
        if words[0] == 'enum':
            if not any(w.endswith(':') for w in rest):
                raise Wrong(f'{where}: want enum NAME: VALUES')
            i = next(i for i, w in enumerate(rest) if w.endswith(':'))
            values = [v.strip('"') for v in rest[i + 1:]]
            rest = rest[:i] + [rest[i][:-1]]
            if values != sorted(set(values)) or not values:
                raise Wrong(f'{where}: values must be sorted, and each there once')
        name = rest[0]
        if len(rest) == 3 and rest[1] == 'go':
            go = rest[2]
        elif len(rest) != 1:
            raise Wrong(f'{where}: want {words[0]} NAME [go TYPE]')
        self.add(where, scope, scope.names, name, (go or scope.go(name), values))

    # ---- names ----

    def look_up(self, where, scope, name):
        """What a name means: ('value', v), ('name', (go, values)), ('type', Type), ('alias', ...)"""
        if name in VALUES:
            return 'value', name
        home = scope
        if '.' in name:
            stem, name = name.split('.', 1)
            if stem not in self.by_file:
                raise Wrong(f'{where}: there is no file {stem}.schema')
            home = self.by_file[stem]
        if name in home.types:
            return 'type', home.types[name]
        if name in home.names:
            return 'name', home.names[name]
        if name in home.aliases:
            return 'alias', (home, name)
        raise Wrong(f'{where}: there is no type {name}')

    def resolve(self, f, scope):
        """Fill in shape, value, type, go of a field from the text of its type."""
        text, f.shape, f.type, f.go = f.text, 'ONE', None, None
        kind, what = (None, None) if text[0] in '*[{' else self.look_up(f.where, scope, text)
        if kind == 'alias':
            home, name = what
            f.go, text, scope = home.go(name), home.aliases[name], home
        if text.startswith('[]'):
            f.shape, text, prefix = 'LIST', text[2:], '[]'
        elif text.startswith('{'):
            key, text = text[1:].split('}', 1)
            go_key = 'string'
            if key:
                key_kind, key_what = self.look_up(f.where, scope, key)
                if key_kind != 'name':
                    raise Wrong(f'{f.where}: {key} cannot be a key')
                go_key = key_what[0]
            f.shape, prefix = 'MAP', f'map[{go_key}]'
        elif text.startswith('*'):
            text, prefix = text[1:], ''
            f.flags.add('POINTER')
        else:
            prefix = ''
        if text.startswith('*'):
            raise Wrong(f'{f.where}: lists and maps hold no pointers')
        self.resolve_value(f, scope, text, prefix)

    def resolve_value(self, f, scope, text, prefix):
        kind, what = self.look_up(f.where, scope, text)
        go = text
        if kind == 'alias':
            home, name = what
            go, what, kind = home.go(name), home.aliases[name], 'value'
        if kind == 'value':
            f.value = VALUES.get(what)
            if f.value is None:
                raise Wrong(f'{f.where}: {what} cannot be used here')
            if go == text:
                go = GO.get(text, text)
            if text.startswith('schema-or'):
                f.type = self.look_up(f.where, scope, SCHEMA_OF_SCHEMAS)[1]
        elif kind == 'name':
            f.value = 'STRING'
            go = what[0]
            f.values = f.values or what[1]
        else:
            f.value, f.type = 'TYPE', what
            go = what.scope.go(what.name)
        f.go = f.go or prefix + go
        f.item_go = go

    # ---- checks ----

    def finish(self):
        types = [t for s in self.scopes for t in s.types.values()]
        types.sort(key=lambda t: (t.scope.group, t.scope.version, t.name))
        for i, t in enumerate(types):
            t.id = i
            for f in t.lines:
                self.resolve(f, t.scope)
        for t in types:
            t.parts.append((t.scope.go(t.name), []))
            self.flatten(t, t, 0)
            self.check(t)
        self.spread_defaults(types)
        return types

    @staticmethod
    def spread_defaults(types):
        """Which types need a look when defaults are set: those that have some, or hold such."""
        for t in types:
            t.has_defaults = bool(t.hook) or any(f.default for f, _ in t.fields)
        grows = True
        while grows:
            grows = False
            for t in types:
                if not t.has_defaults and any(f.value == 'TYPE' and f.type.has_defaults
                                              for f, _ in t.fields):
                    t.has_defaults = grows = True

    def flatten(self, into, t, part, in_protobuf=True):
        """The fields of t, and of what is embedded in it. What has the number 0 is in JSON alone."""
        entries = into.parts[part][1]
        for f in t.lines:
            if f.is_embedded:
                if f.value != 'TYPE' or f.shape != 'ONE':
                    raise Wrong(f'{f.where}: only a type can be embedded')
                into.parts.append((f.type.scope.go(f.type.name), []))
                inner = len(into.parts) - 1
                has_number = in_protobuf and f.number > 0
                if has_number:
                    entries.append((f.number, True, inner))
                self.flatten(into, f.type, inner, has_number)
                continue
            if in_protobuf and f.number:
                entries.append((f.number, False, len(into.fields)))
            elif f.number:
                f = copy.copy(f)
                f.number = 0
            into.fields.append((f, part))
        entries.sort()

    @staticmethod
    def check(t):
        seen = {}
        for f, _ in t.fields:
            if f.name in seen:
                raise Wrong(f'{f.where}: {f.name} is there already, at {seen[f.name]}')
            seen[f.name] = f.where
            if (f.keys or 'LIST_SET' in f.flags) and f.shape != 'LIST':
                raise Wrong(f'{f.where}: {f.name} is no list')
            for key in f.keys + ([f.merge_key] if f.merge_key else []):
                if f.value != 'TYPE' or not Reader.has(f.type, key):
                    raise Wrong(f'{f.where}: items of {f.name} have no field {key}')
        for _, entries in t.parts:
            numbers = [n for n, _, _ in entries]
            for n in set(numbers):
                if numbers.count(n) > 1:
                    raise Wrong(f'{t.where}: two fields of {t.name} have the number {n}')
        if len(t.fields) > 64:  # VG_PROTO_FIELDS_MAX
            raise Wrong(f'{t.where}: more than 64 fields')

    @staticmethod
    def has(t, name):
        return any(f.name == name or f.is_embedded and Reader.has(f.type, name) for f in t.lines)


def quote(s):
    return 'NULL' if s is None else '"' + s.replace('\\', '\\\\').replace('"', '\\"') + '"'


class Writer:
    def __init__(self, out):
        self.out = out
        self.shared = {}  # text of a constant -> its name

    def line(self, s=''):
        self.out.write(s + '\n')

    def constant(self, prefix, type_, text):
        """The name of a file-static constant with that text, written when it is new."""
        key = type_ + text
        if key not in self.shared:
            name = f'{prefix}_{len(self.shared)}'
            self.shared[key] = name
            self.line(f'static const {type_.format(name)} = {text};')
        return self.shared[key]

    def strings(self, values):
        if not values:
            return 'NULL'
        text = '{' + ', '.join(quote(v) for v in values) + ', NULL}'
        return self.constant('list', 'char *const {}[]', text)

    def more(self, f):
        parts = [quote(f.go), quote(f.item_go), quote(f.default), self.strings(f.values), self.strings(f.keys),
                 quote(f.merge_key)]
        return '&' + self.constant('more', 'struct vg_schema_more {}', '{' + ', '.join(parts) + '}')

    def type(self, t):
        rows = []
        for f, part in t.fields:
            flags = '|'.join('VG_SCHEMA_' + x for x in sorted(f.flags)) or '0'
            of = f'&types[{f.type.id}]' if f.type else 'NULL'
            rows.append(f'{{{quote(f.name)}, {of}, {self.more(f)}, {f.number}, {len(f.name)}, {part}, '
                        f'VG_SCHEMA_{f.value}, VG_SCHEMA_{f.shape}, {flags}}}')
        if rows:
            self.line(f'static const struct vg_schema_field fields_{t.id}[] = {{ /* {t.where.split("/")[-1]} */')
            for row in rows:
                self.line(f'    {row},')
            self.line('};')
        for i, (_, entries) in enumerate(t.parts):
            if entries:
                text = ', '.join(f'{{{n}, {int(is_part)}, {k}}}' for n, is_part, k in entries)
                self.line(f'static const struct vg_schema_entry entries_{t.id}_{i}[] = {{{text}}};')
        text = ', '.join(f'{{{quote(go)}, {f"entries_{t.id}_{i}" if e else "NULL"}, {len(e)}}}'
                         for i, (go, e) in enumerate(t.parts))
        self.line(f'static const struct vg_schema_part parts_{t.id}[] = {{{text}}};')
        log2, seed, table = perfect_hash([f.name.encode() for f, _ in t.fields])
        self.line(f'static const uint8_t names_{t.id}[] = {{{", ".join(map(str, table))}}};')
        numbers = [f.number for f, _ in t.fields if f.number]
        is_flat = all(not is_part for _, entries in t.parts for _, is_part, _ in entries)
        is_straight = is_flat and numbers == sorted(numbers)
        return (f'{{{quote(t.name)}, {quote(t.scope.go(t.name))}, {f"fields_{t.id}" if rows else "NULL"}, '
                f'parts_{t.id}, names_{t.id}, {len(t.fields)}, {len(t.parts)}, {log2}, {seed}, '
                f'{str(t.is_atomic).lower()}, {str(is_straight).lower()}, '
                f'{str(t.has_defaults).lower()}, {"vg_default_" + t.hook if t.hook else "NULL"}, '
                f'{shown(t):#x}}}')


SCALARS = ('STRING', 'BOOL', 'INT32', 'INT64', 'DOUBLE', 'BYTES')


def shown(t):
    """Which fields JSON has even when nothing is there: omitempty leaves no struct out."""
    mask = 0
    for i, (f, _) in enumerate(t.fields):
        is_struct = f.shape == 'ONE' and 'POINTER' not in f.flags and f.value not in SCALARS
        if 'OMIT_EMPTY' not in f.flags or is_struct and 'OMIT_ZERO' not in f.flags:
            mask |= 1 << i
    return mask


def slot(key, log2, seed):
    """As vg_schema_slot()."""
    h = len(key)
    for c in key:
        h = (h * (2 * seed + 1) + c) & 0xffffffff
    return (h ^ h >> 7) & ((1 << log2) - 1)


def perfect_hash(keys):
    log2 = max(1, (len(keys) - 1).bit_length() if keys else 1)
    while log2 < 12:
        for seed in range(1, 256):
            slots = [slot(k, log2, seed) for k in keys]
            if len(set(slots)) == len(slots):
                table = [0] * (1 << log2)
                for i, s in enumerate(slots):
                    table[s] = i + 1
                return log2, seed, table
        log2 += 1
    raise Wrong(f'no hash for {keys}')


def write(out, reader, types):
    w = Writer(out)
    w.line('/* Generated by tools/schema.py from src/server/kinds/schema/. */')
    w.line('#include <string.h>\n')
    w.line('#include "server/kinds/rules/defaults.h"')
    w.line('#include "server/kinds/types.h"\n')
    w.line(f'static const struct vg_schema_type types[{len(types)}];\n')
    rows = [w.type(t) for t in types]
    w.line(f'\nstatic const struct vg_schema_type types[{len(types)}] = {{')
    for row in rows:
        w.line(f'    {row},')
    w.line('};\n')
    w.line('static const struct { const char *group, *version; unsigned first, n; } scopes[] = {')
    for s in sorted(reader.scopes, key=lambda s: (s.group, s.version)):
        ids = [t.id for t in s.types.values()]
        w.line(f'    {{{quote(s.group)}, {quote(s.version)}, {min(ids)}, {len(ids)}}},')
    w.line('''};

const struct vg_schema_type *vg_schema_find(struct vg_slice group, struct vg_slice version,
                                            struct vg_slice name)
{
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        if (!vg_slice_eq(group, vg_slice_str(scopes[i].group)) ||
            !vg_slice_eq(version, vg_slice_str(scopes[i].version)))
            continue;
        const struct vg_schema_type *t = &types[scopes[i].first];
        for (unsigned k = 0; k < scopes[i].n; k++)
            if (vg_slice_eq(name, vg_slice_str(t[k].name)))
                return &t[k];
    }
    return NULL;
}''')


def main():
    reader = Reader()
    try:
        for path in sys.argv[2:]:
            reader.read(path)
        types = reader.finish()
        with open(sys.argv[1] + '.new', 'w', encoding='utf-8') as out:
            write(out, reader, types)
        os.replace(sys.argv[1] + '.new', sys.argv[1])
    except Wrong as wrong:
        sys.exit(str(wrong))


if __name__ == '__main__':
    main()
