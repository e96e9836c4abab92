"""Reads the notation: lines, groups, versions, types. Kinds are kinds.py's."""
import copy
import os
import re

from kinds import Kind
from wrong import Wrong

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
ABOUT_MAX = 100  # characters of a sentence: kubectl explain shows lists of them
SCHEMA_OF_SCHEMAS = 'JSONSchemaProps'  # what the schema-or-* values hold
ATTRIBUTES = {'required': 'REQUIRED', 'omitzero': 'OMIT_ZERO', 'set': 'LIST_SET',
              'atomic': 'ATOMIC', 'map-atomic': 'ATOMIC', 'map-granular': 'GRANULAR', 'merge': 'MERGE', 'replace': 'REPLACE',
              'retainKeys': 'RETAIN_KEYS', 'immutable': 'IMMUTABLE'}


class Field:
    """A line of a type: a field, or ('+') a type whose fields stand among these."""

    def __init__(self, where, words, about):
        self.where, self.about = where, about
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
    def __init__(self, where, scope, name, words, about):
        self.where, self.scope, self.name, self.about = where, scope, name, about
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

    def line(self, where, words, _, about):
        self.lines.append(Field(where, words, about))


class Scope:
    """A group and version: where names are looked up."""

    def __init__(self, file, group, version, priority):
        self.file, self.group, self.version, self.priority = file, group, version, priority
        self.types, self.names, self.aliases, self.kinds = {}, {}, {}, {}

    def go(self, name):
        return f'{self.version}.{name}'


class Reader:
    def __init__(self):
        self.scopes = []
        self.by_file = {}  # file's stem -> its first scope: what "core.X" means
        self.every = {}    # name of a field -> what it is wherever nothing else is said

    def read(self, path):
        stem = os.path.basename(path).removesuffix('.schema')
        group, priority, scope, at = None, 0, None, None
        for number, line in enumerate(self.joined(path), 1):
            where = f'{path}:{number}'
            line, about = self.said(where, line.split('#')[0])
            words = re.findall(r'[^\s"]*"[^"]*"\S*|\S+', line)
            if not words:
                continue
            if line[0] == ' ':
                if at is None:
                    raise Wrong(f'{where}: a line outside of a type or kind')
                at.line(where, words, ' '.join(line.split()), about)
                continue
            at = None
            if about and words[0] not in ('type', 'every'):
                raise Wrong(f'{where}: only types, their fields and every say what they are')
            if words[0] == 'group':
                group, priority = self.group(where, words)
            elif words[0] == 'version':
                scope = Scope(stem, group, words[1], priority)
                self.scopes.append(scope)
                self.by_file.setdefault(stem, scope)
            elif words[0] == 'every':
                self.say_of_every(where, words, about)
            elif scope is None:
                raise Wrong(f'{where}: group and version come first')
            elif words[0] == 'type':
                at = Type(where, scope, words[1], words[2:], about)
                self.add(where, scope, scope.types, words[1], at)
            elif words[0] == 'kind':
                at = Kind(where, scope, words)
                if scope.kinds.setdefault(at.resource, at) is not at:
                    raise Wrong(f'{where}: {at.resource} are there already')
            elif words[0] in ('enum', 'name'):
                self.named(where, scope, words)
            elif words[0] == 'alias':
                self.add(where, scope, scope.aliases, words[1], words[2])
            else:
                raise Wrong(f'{where}: unknown word "{words[0]}"')

    @staticmethod
    def said(where, line):
        """A line without what stands behind " -- ", and that: a sentence of ours."""
        line, dashes, about = line.partition(' -- ')
        about = about.strip()
        if not dashes:
            return line, None
        if not re.fullmatch(r'[A-Za-z0-9*"/].*[.]', about) or len(about) > ABOUT_MAX or '"' in about:
            raise Wrong(f'{where}: want a sentence of at most {ABOUT_MAX} characters behind --')
        return line, about

    def say_of_every(self, where, words, about):
        """every NAMES -- TEXT: of fields of these names that say nothing themselves."""
        if not about or len(words) < 2:
            raise Wrong(f'{where}: want every NAMES -- TEXT')
        for name in words[1:]:
            if self.every.setdefault(name, about) is not about:
                raise Wrong(f'{where}: every {name} is said already')

    def about(self, f):
        """What is told of a field: its own sentence, that of its name, that of its type."""
        return f.about or self.every.get(f.name) or (f.type.about if f.type else None)

    @staticmethod
    def group(where, words):
        """group NAME [priority N]: the higher, the earlier in /apis."""
        has_priority = len(words) == 4 and words[2] == 'priority' and words[3].isdigit()
        if len(words) != 2 and not has_priority:
            raise Wrong(f'{where}: want group NAME [priority NUMBER]')
        return words[1].strip('"'), int(words[3]) if has_priority else 0

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
        for kind in self.kinds():
            kind.finish(self)
        return types

    def kinds(self):
        """In the order of the table: by group, version and resource."""
        kinds = [k for s in self.scopes for k in s.kinds.values()]
        return sorted(kinds, key=lambda k: (k.scope.group, k.scope.version, k.resource))

    @staticmethod
    def spread_defaults(types):
        """Which types need a look when defaults are set: those that have some, or hold such."""
        for t in types:
            t.has_defaults = bool(t.hook) or any(
                f.default or (f.value, f.shape) == ('QUANTITY', 'MAP') for f, _ in t.fields)
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
