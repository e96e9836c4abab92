"""Writes the kinds as rows of C tables (src/server/kinds/kinds.h): rows, merge keys, groups."""
import json

import columns
from tables import quote

# What a value that nobody set is printed as.
ZERO = {'STRING': '""', 'BOOL': 'false', 'INT32': '0', 'INT64': '0', 'DOUBLE': '0', 'BYTES': 'null',
        'QUANTITY': '"0"', 'INT_OR_STRING': '0', 'TIME': 'null', 'MICRO_TIME': 'null', 'RAW': 'null',
        'JSON': 'null', 'FIELDS': '{}', 'STRINGS': 'null', 'OR_ARRAY': 'null', 'OR_BOOL': 'false',
        'OR_STRINGS': 'null'}


# What Go has as a struct, which omitempty never leaves out.
STRUCTS = ('TIME', 'MICRO_TIME', 'RAW', 'QUANTITY', 'INT_OR_STRING')


def zero(field, empties):
    """How a field that was not given is printed; None: it is not."""
    said = [text for path, text in empties if not path]
    if said:
        return said[0]
    is_nil = 'POINTER' in field.flags or field.shape != 'ONE'
    if field.value == 'TYPE' and not is_nil:
        return zero_object(field.type, empties)
    if empties and field.value == 'TYPE':
        return zero_object(field.type, empties)
    if 'OMIT_EMPTY' in field.flags and (is_nil or field.value not in STRUCTS):
        return None
    if 'OMIT_ZERO' in field.flags:
        return None
    return 'null' if is_nil else ZERO[field.value]


def zero_object(type_, empties, skipped=()):
    members = []
    for f, _ in type_.fields:
        if f.name in skipped:
            continue
        below = [(path[1:], text) for path, text in empties if path[0] == f.name]
        text = zero(f, below)
        if text is not None:
            members.append(f'{json.dumps(f.name)}:{text}')
    return '{' + ','.join(members) + '}'


def bookmark_tail(kind):
    text = zero_object(kind.type, kind.empties, ('kind', 'apiVersion', 'metadata'))[1:-1]
    return ',' + text if text else ''


class Merges:
    """Which lists strategic merge joins: a table for each type that has such, or leads to one."""

    def __init__(self, types):
        self.has = {t.id: False for t in types}
        grows = True
        while grows:
            grows = False
            for t in types:
                if not self.has[t.id] and any(self.row(f) for f, _ in t.fields):
                    self.has[t.id] = grows = True
        self.index = {t.id: i for i, t in enumerate(t for t in types if self.has[t.id])}

    def row(self, f):
        """What a field asks for, as C; None: nothing."""
        strategy = []
        if 'MERGE' in f.flags and f.shape == 'LIST':
            strategy.append('VG_MERGE_LIST')
        if 'REPLACE' in f.flags and f.shape == 'ONE':
            strategy.append('VG_MERGE_REPLACE')
        if 'RETAIN_KEYS' in f.flags:
            strategy.append('VG_MERGE_RETAIN_KEYS')
        leads = f.value == 'TYPE' and self.has[f.type.id]
        leads = leads and (f.shape == 'ONE' or 'VG_MERGE_LIST' in strategy)
        if not strategy and not leads:
            return None
        schema = f'&merges[{self.index[f.type.id]}]' if leads and hasattr(self, 'index') else 'NULL'
        return f'{{{quote(f.name)}, {" | ".join(strategy) or 0}, {quote(f.merge_key)}, {schema}}}'

    def write(self, w, types):
        w.line(f'\nstatic const struct vg_merge_schema merges[{len(self.index)}];')
        for t in types:
            if not self.has[t.id]:
                continue
            w.line(f'static const struct vg_merge_field merge_{t.id}[] = {{ /* {t.name} */')
            for f, _ in t.fields:
                row = self.row(f)
                if row:
                    w.line(f'    {row},')
            w.line('    {NULL, 0, NULL, NULL},\n};')
        w.line(f'static const struct vg_merge_schema merges[{len(self.index)}] = {{')
        for t in types:
            if self.has[t.id]:
                w.line(f'    {{merge_{t.id}}},')
        w.line('};')


def slice_(s):
    return f'{{{quote(s)}, {len(s)}}}' if s else '{"", 0}'


def write_fields(w, kind):
    """The names of the two tables of what may be selected."""
    rows, labels, trigger = [], ['{.name = {"metadata.name", 13}, .index = VG_OBJ_FIELD_NAME}'], 'VG_OBJ_NO_TRIGGER'
    if kind.has_namespace_label:
        labels.append('{.name = {"metadata.namespace", 18}, .index = VG_OBJ_FIELD_NAMESPACE}')
    for i, f in enumerate(kind.fields):
        path = ', '.join(quote(p) for p in f.path)
        path = f', .path = {{{path}}}' if path else ''
        rows.append(f'{{.label = {quote(f.label)}{path}, .missing = {quote(f.missing)}, '
                    f'.instead = {quote(f.instead)}}}')
        for label, _ in [x for x in kind.labels if x[1] == f.label]:
            canonical = f', .canonical = {slice_(f.label)}' if label != f.label else ''
            labels.append(f'{{.name = {slice_(label)}{canonical}, .index = {i}}}')
        if f.is_trigger:
            trigger = str(i)
        if kind.stored:
            continue
        labels.append(f'{{.name = {slice_(f.label)}, .index = {i}}}')
        if f.alias:
            labels.append(f'{{.name = {slice_(f.alias)}, .canonical = {slice_(f.label)}, .index = {i}}}')
    v = w.constant('selectable', 'struct vg_obj_field_def {}[]', '{' + ', '.join(rows) + '}') if rows else 'NULL'
    fields = w.constant('selectables', 'struct vg_obj_fields {}', f'{{.v = {v}, .n = {len(rows)}, .trigger = {trigger}}}')
    v = w.constant('label', 'struct vg_field_label {}[]', '{' + ', '.join(labels) + '}')
    name = f', .kind = {slice_(kind.refusal_name)}' if kind.refusal_name else ''
    labels = w.constant('labels', 'struct vg_field_labels {}',
                        f'{{.v = {v}, .n = {len(labels)}, .refusal = VG_FIELD_{kind.refusal}{name}}}')
    return fields, labels


def bits(prefix, words):
    return ' | '.join(prefix + w.upper() for w in words) or '0'


def write_subs(w, kind):
    rows = ', '.join(f'{{.name = {quote(s.name)}, .type = VG_SUB_{s.type}, .kind = {quote(s.kind)}, '
                     f'.group = {quote(s.group)}, .version = {quote(s.version)}, '
                     f'.verbs = {bits("VG_VERB_", s.verbs)}}}' for s in kind.subs)
    return w.constant('subs', 'struct vg_kind_sub {}[]', '{' + rows + '}') if rows else 'NULL'


def write_scale(w, kind):
    if not kind.scale:
        return 'NULL'
    spec, status, selector = (quote(p) for p in kind.scale[:3])
    is_map = str(len(kind.scale) == 4).lower()
    return '&' + w.constant('scale', 'struct vg_kind_scale {}', f'{{{spec}, {status}, {selector}, {is_map}}}')


def row(w, merges, kind, kinds):
    """The row of a kind, as (member, text); what it points to is written at once."""
    scope, fields, labels = kind.scope, *write_fields(w, kind)
    slash, dot = ('/', '.') if scope.group else ('', '')
    stored = f'&vg_kind_rows[{kinds.index(kind.stored)}]' if kind.stored else 'NULL'
    return [
        ('stored', stored), ('conversion', f'&vg_conversion_{kind.conversion}' if kind.stored else 'NULL'),
        ('group', quote(scope.group)), ('version', quote(scope.version)),
        ('api_version', quote(scope.group + slash + scope.version)),
        ('resource', quote(kind.resource)), ('singular', quote(kind.name.lower())),
        ('kind', quote(kind.name)), ('list_kind', quote(kind.name + 'List')),
        ('qualified', quote(kind.resource + dot + scope.group)),
        ('type', f'&types[{kind.type.id}]'), ('merge', f'&merges[{merges.index[kind.type.id]}]'),
        ('short_names', w.strings(kind.short_names)), ('categories', w.strings(kind.categories)),
        ('verbs', bits('VG_VERB_', kind.verbs)), ('flags', bits('VG_KIND_', sorted(kind.flags))),
        ('name_rule', f'VG_NAME_{kind.name_rule}'), ('name_max', str(kind.name_max)),
        ('subs', write_subs(w, kind)), ('n_subs', str(len(kind.subs))), ('scale', write_scale(w, kind)),
        ('about', quote(kind.about)), ('fields', '&' + fields), ('labels', '&' + labels),
        ('prefix', quote(kind.prefix)), ('bookmark_tail', quote(bookmark_tail(kind))),
        ('storage_hash', quote(kind.hash)), ('ttl_s', str(kind.ttl)),
        ('new_status', quote(kind.new_status)), ('deprecation', quote(kind.deprecation)),
        ('orphan_warning', quote(kind.orphan_warning)), ('finalizer', quote(kind.finalizer)),
        ('spec', w.strings(kind.spec)), *columns.write(w, kind),
    ]


def write_groups(w, kinds):
    """Groups as /apis has them: by priority, then by name; versions best first. The core is last."""
    versions, priority = {}, {}
    for k in kinds:
        versions.setdefault(k.scope.group, set()).add(k.scope.version)
        priority[k.scope.group] = k.scope.priority
    names = sorted(versions, key=lambda g: (not g, -priority[g], g))
    rows = [f'    {{{quote(g)}, {w.strings(sorted(versions[g], reverse=True))}}},' for g in names]
    w.line('\nconst struct vg_group vg_group_rows[] = {')
    for text in rows:
        w.line(text)
    w.line('};')
    w.line(f'const size_t vg_group_rows_n = {len(names)};')


def write(w, reader, types):
    merges = Merges(types)
    merges.write(w, types)
    kinds = reader.kinds()
    rows = [row(w, merges, k, kinds) for k in kinds]
    w.line('\nconst struct vg_kind vg_kind_rows[] = {')
    for kind, members in zip(kinds, rows):
        w.line(f'    {{ /* {kind.where.split("/")[-1]} */')
        for name, text in members:
            if text not in ('NULL', '0'):
                w.line(f'        .{name} = {text},')
        w.line('    },')
    w.line('};')
    w.line(f'const size_t vg_kind_rows_n = {len(kinds)};')
    write_groups(w, kinds)
