"""A kind of the notation: what is served of a type, under which names, by which rules.

Each line of a kind is a word and what it says; LINES below names the words. Texts are facts of the
API, except `about`, a short sentence of ours."""
import json
import re

import columns
from wrong import Wrong

VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
FLAGS = {
    'uncached': 'UNCACHED', 'create-on-update': 'CREATE_ON_UPDATE',
    'update-needs-revision': 'UPDATE_NEEDS_REV', 'delete-answers-object': 'DELETE_ANSWERS_OBJECT',
    'graceful': 'GRACEFUL', 'finalized-by-spec': 'FINALIZED_BY_SPEC', 'string-data': 'HAS_STRING_DATA',
    'update-checks-all': 'UPDATE_CHECKS_ALL', 'not-stored': 'NOT_STORED',
}
NAME_RULES = {'subdomain': 'SUBDOMAIN', 'label': 'LABEL', 'label-1035': 'LABEL_1035',
              'path-segment': 'PATH_SEGMENT', 'any': 'ANY'}
REFUSALS = {'not-supported': 'NOT_SUPPORTED', 'not-known': 'NOT_KNOWN',
            'not-supported-for': 'NOT_SUPPORTED_FOR', 'not-supported-kind': 'NOT_SUPPORTED_KIND'}
SUBS = {'status': 'STATUS', 'scale': 'SCALE', 'binding': 'BINDING', 'finalize': 'FINALIZE', 'eviction': 'EVICTION',
        'ephemeralcontainers': 'PART', 'resize': 'PART', 'approval': 'PART', 'token': 'TOKEN',
        'log': 'CONNECT', 'exec': 'CONNECT', 'attach': 'CONNECT', 'portforward': 'CONNECT', 'proxy': 'CONNECT'}
FIELDS_MAX, PATH_MAX = 32, 8  # VG_OBJ_FIELDS_MAX, VG_OBJ_PATH_MAX


class Sub:
    def __init__(self, name, kind, verbs):
        self.name, self.verbs = name, verbs
        home, _, self.kind = kind.rpartition('.') if '/' in kind else (None, None, kind)
        self.group, self.version = home.split('/') if home else (None, None)
        self.type = SUBS.get(name)


class Selectable:
    """select LABEL [at PATH | nowhere] [missing VALUE] [instead LABEL] [alias LABEL] [trigger]"""

    def __init__(self, where, words):
        self.label, self.path, self.missing = words[0], words[0].split('.'), None
        self.instead, self.alias, self.is_trigger = None, None, False
        rest = words[1:]
        while rest:
            word = rest.pop(0)
            if word == 'nowhere':
                self.path = []
            elif word == 'trigger':
                self.is_trigger = True
            elif word in ('at', 'missing', 'instead', 'alias') and rest:
                value = rest.pop(0)
                if word == 'at':
                    self.path = value.split('.')
                else:
                    setattr(self, word, value)
            else:
                raise Wrong(f'{where}: unknown word "{word}" behind select')
        if len(self.path) > PATH_MAX:
            raise Wrong(f'{where}: the path is too long')


class Kind:
    """kind KIND RESOURCE namespaced|cluster"""

    def __init__(self, where, scope, words):
        if len(words) != 4 or words[3] not in ('namespaced', 'cluster'):
            raise Wrong(f'{where}: want kind KIND RESOURCE namespaced|cluster')
        self.where, self.scope, self.name, self.resource = where, scope, words[1], words[2]
        self.flags = {'NAMESPACED'} if words[3] == 'namespaced' else set()
        self.said = {}  # word -> where; each is said once, except those of MANY
        self.about = self.prefix = self.hash = self.new_status = None
        self.deprecation = self.orphan_warning = self.finalizer = self.scale = None
        self.short_names, self.categories, self.verbs = [], [], VERBS
        self.name_rule, self.name_max, self.ttl = 'SUBDOMAIN', 0, 0
        self.subs, self.fields, self.empties, self.spec = [], [], [], []
        self.refusal, self.refusal_name, self.has_namespace_label = None, None, True
        self.type = None
        self.columns, self.row_ends = [], []
        self.stored_as = self.stored = self.conversion = None
        self.labels = []  # of a kind that is stored as another: (as clients write it, as it is stored)

    def line(self, where, words, text, about):
        if about:
            raise Wrong(f'{where}: only types, their fields and every say what they are')
        word, rest = words[0], words[1:]
        if word not in self.LINES:
            raise Wrong(f'{where}: unknown word "{word}"')
        if self.said.setdefault(word, where) != where and word not in self.MANY:
            raise Wrong(f'{where}: {word} is said already, at {self.said[word]}')
        if not rest and word not in self.ALONE:
            raise Wrong(f'{where}: {word} says nothing')
        self.LINES[word](self, where, rest, text[len(word):].strip())

    # ---- lines: each takes where, the words and the text behind the first ----

    def on_about(self, _, __, text):
        self.about = text

    def on_short(self, _, words, __):
        self.short_names = words

    def on_categories(self, _, words, __):
        self.categories = words

    def on_key(self, where, words, _):
        if len(words) != 1 or not re.fullmatch(r'/registry/([^/]+/)+', words[0]):
            raise Wrong(f'{where}: want key /registry/.../')
        self.prefix = words[0]

    def on_hash(self, _, __, text):
        self.hash = text

    def on_verbs(self, where, words, _):
        self.verbs = self.checked_verbs(where, words)

    def on_flags(self, where, words, _):
        for word in words:
            if word not in FLAGS:
                raise Wrong(f'{where}: unknown flag "{word}"')
            self.flags.add(FLAGS[word])

    def on_names(self, where, words, _):
        """names RULE [max N] [in-bytes]"""
        if words[0] not in NAME_RULES:
            raise Wrong(f'{where}: unknown rule of names "{words[0]}"')
        self.name_rule = NAME_RULES[words[0]]
        rest = words[1:]
        if rest[:1] == ['max'] and rest[1:2] and rest[1].isdigit():
            self.name_max, rest = int(rest[1]), rest[2:]
        if rest == ['in-bytes']:
            self.flags.add('NAME_IN_BYTES')
        elif rest:
            raise Wrong(f'{where}: want names RULE [max N] [in-bytes]')

    def on_status(self, where, _, text):
        """What status becomes at create, as JSON; kept: as the client gave it."""
        self.flags.add('HAS_STATUS')
        self.subs.append(Sub('status', self.name, ['get', 'patch', 'update']))
        if text != 'kept':
            self.new_status = self.checked_json(where, text)

    def on_generation(self, where, words, _):
        """generation MEMBERS [annotations] [labels]: whose change makes one; never: none's."""
        self.flags.add('HAS_GENERATION')
        for word in ('annotations', 'labels'):
            if word in words:
                self.flags.add('GENERATION_BY_' + word.upper())
        self.spec = [w for w in words if w not in ('annotations', 'labels', 'never')]
        if ('never' in words) == bool(self.spec):
            raise Wrong(f'{where}: want generation MEMBERS [annotations] [labels], or generation never')

    def on_sub(self, where, words, _):
        """sub NAME [GROUP/VERSION.]KIND VERBS"""
        if len(words) < 3:
            raise Wrong(f'{where}: want sub NAME KIND VERBS')
        if words[0] not in SUBS:
            raise Wrong(f'{where}: there is no subresource "{words[0]}"')
        self.subs.append(Sub(words[0], words[1], self.checked_verbs(where, words[2:])))

    def on_scale(self, where, words, _):
        """scale REPLICAS STATUS-REPLICAS SELECTOR [map]"""
        if len(words) not in (3, 4) or words[3:] not in ([], ['map']):
            raise Wrong(f'{where}: want scale PATH PATH PATH [map]')
        self.scale = words
        self.subs.append(Sub('scale', 'autoscaling/v1.Scale', ['get', 'patch', 'update']))

    def on_stored(self, where, words, _):
        """stored [GROUP/]VERSION.KIND by CONVERSION"""
        if len(words) != 3 or words[1] != 'by' or '.' not in words[0]:
            raise Wrong(f'{where}: want stored [GROUP/]VERSION.KIND by CONVERSION')
        home, _, name = words[0].rpartition('.')
        group, _, version = home.rpartition('/')
        self.stored_as, self.conversion = (group, version, name), words[2]

    def on_label(self, where, words, _):
        """label LABEL [STORED]: of a kind that is stored as another"""
        if len(words) > 2:
            raise Wrong(f'{where}: want label LABEL [STORED]')
        self.labels.append((words[0], words[-1]))

    def on_select(self, where, words, _):
        self.fields.append(Selectable(where, words))

    def on_selectors(self, where, words, _):
        """selectors REFUSAL [NAME] [without metadata.namespace]: how unknown fields are refused."""
        if words[-2:] == ['without', 'metadata.namespace']:
            self.has_namespace_label, words = False, words[:-2]
        if not words:
            return
        if words[0] not in REFUSALS:
            raise Wrong(f'{where}: unknown refusal "{words[0]}"')
        self.refusal, self.refusal_name = REFUSALS[words[0]], ' '.join(words[1:]) or None

    def on_empty(self, where, words, _):
        """empty PATH JSON: what an empty object has nevertheless, as bookmarks show it."""
        if len(words) != 2:
            raise Wrong(f'{where}: want empty PATH JSON')
        self.empties.append((words[0].split('.'), self.checked_json(where, words[1])))

    def on_column(self, where, words, _):
        self.columns.append(columns.Column(where, words))

    def on_completed(self, where, words, _):
        """completed PATH VALUE MESSAGE: a condition of its row when the value at PATH is that."""
        if len(words) != 3:
            raise Wrong(f'{where}: want completed PATH VALUE "MESSAGE"')
        self.row_ends.append((words[0], words[1], columns.unquoted(words[2])))

    def on_finalizer(self, _, __, text):
        self.finalizer = text

    def on_ttl(self, where, words, _):
        if len(words) != 1 or not words[0].isdigit():
            raise Wrong(f'{where}: want ttl SECONDS')
        self.ttl = int(words[0])

    def on_deprecated(self, _, __, text):
        self.deprecation = text

    def on_orphans(self, _, __, text):
        """orphans [WARNING]: a delete without a policy orphans what belongs to the object."""
        self.flags.add('ORPHANS_BY_DEFAULT')
        self.orphan_warning = text or None

    LINES = {'about': on_about, 'short': on_short, 'categories': on_categories, 'key': on_key,
             'hash': on_hash, 'verbs': on_verbs, 'flags': on_flags, 'names': on_names,
             'status': on_status, 'generation': on_generation, 'sub': on_sub, 'scale': on_scale,
             'select': on_select, 'selectors': on_selectors, 'empty': on_empty,
             'finalizer': on_finalizer, 'ttl': on_ttl, 'deprecated': on_deprecated,
             'orphans': on_orphans, 'stored': on_stored, 'label': on_label,
             'column': on_column, 'completed': on_completed}
    MANY = {'sub', 'select', 'empty', 'label', 'column', 'completed'}
    ALONE = {'orphans'}

    # ---- checks ----

    @staticmethod
    def checked_verbs(where, words):
        for word in words:
            if word not in VERBS:
                raise Wrong(f'{where}: unknown verb "{word}"')
        return [v for v in VERBS if v in words]

    @staticmethod
    def checked_json(where, text):
        try:
            json.loads(text)
        except ValueError as e:
            raise Wrong(f'{where}: {text}: {e}') from e
        return text

    def finish(self, reader):
        """When all files are read: does it fit its type, and all other kinds?"""
        if self.name not in self.scope.types:
            raise Wrong(f'{self.where}: there is no type {self.name}')
        self.type = self.scope.types[self.name]
        if not any(f.name == 'metadata' and f.type and f.type.name == 'ObjectMeta' for f, _ in self.type.fields):
            raise Wrong(f'{self.where}: {self.name} has no metadata')
        if self.stored_as:
            self.take_stored(reader)
        for word in ('about', 'key'):
            if word not in self.said and not (word == 'key' and self.stored):
                raise Wrong(f'{self.where}: {self.name} says no {word}')
        if ('NOT_STORED' in self.flags) == bool(self.hash):
            raise Wrong(f'{self.where}: want either a hash or the flag not-stored')
        self.subs.sort(key=lambda s: s.name)
        self.check_fields()
        self.check_paths()
        if not self.stored:
            columns.finish(self)
        for other in reader.kinds():
            if self.stored or other.stored_as:
                continue
            if other is not self and other.prefix and other.prefix.startswith(self.prefix):
                raise Wrong(f'{self.where}: the keys of {other.where} lie below {self.prefix}')

    def take_stored(self, reader):
        """What it has from the kind that it is stored as: all but names, names' rule and labels."""
        for kind in reader.kinds():
            if (kind.scope.group, kind.scope.version, kind.name) == self.stored_as:
                self.stored = kind
        if not self.stored or self.stored.stored_as:
            raise Wrong(f'{self.where}: there is no kind {self.stored_as} to be stored as')
        for name in ('prefix', 'hash', 'flags', 'new_status', 'spec', 'ttl', 'finalizer', 'fields'):
            setattr(self, name, getattr(self.stored, name))
        known = [f.label for f in self.fields]
        for _, stored in self.labels:
            if stored not in known:
                raise Wrong(f'{self.where}: {stored} cannot be selected of {self.stored.name}')

    def check_fields(self):
        labels = [f.label for f in self.fields] + [f.alias for f in self.fields if f.alias]
        for label in labels:
            if labels.count(label) > 1:
                raise Wrong(f'{self.where}: {label} can be selected twice')
        if len(self.fields) > FIELDS_MAX:
            raise Wrong(f'{self.where}: more than {FIELDS_MAX} fields')
        if sum(f.is_trigger for f in self.fields) > 1:
            raise Wrong(f'{self.where}: more than one trigger')
        for f in self.fields:
            if f.instead and f.instead not in labels:
                raise Wrong(f'{self.where}: there is no {f.instead} to read instead')
        if not self.refusal:
            self.refusal = 'NOT_SUPPORTED' if self.fields else 'NOT_KNOWN'

    def check_paths(self):
        paths = [p for p, _ in self.empties]
        if self.stored:
            return
        paths += [f.path for f in self.fields]
        paths += [p.split('.') for p in (self.scale or [])[:3]]
        paths += [[member] for member in self.spec]
        paths += [['status']] if 'HAS_STATUS' in self.flags else []
        for path in paths:
            at = self.type
            for step in path:
                found = [f for f, _ in at.fields if f.name == step] if at else []
                if not found:
                    raise Wrong(f'{self.where}: {self.name} has no {".".join(path)}')
                at = found[0].type
