"""Writes the types as constant C tables (src/server/schema/schema.h)."""
from wrong import Wrong


def quote(s):
    return 'NULL' if s is None else '"' + s.replace('\\', '\\\\').replace('"', '\\"') + '"'


class Writer:
    def __init__(self, out):
        self.out = out
        self.shared = {}  # text of a constant -> its name
        self.abouts = []  # for each type its sentence and those of its fields: places in texts
        self.texts = ['']  # each once
        self.places = {'': 0, None: 0}

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

    def about(self, text):
        """Where a sentence begins in one long text, which needs no pointers; 0: there is none."""
        if text not in self.places:
            self.places[text] = sum(len(x.encode()) + 1 for x in self.texts)
            self.texts.append(text)
        self.abouts.append(self.places[text])

    def type(self, t, reader):
        rows = []
        about = len(self.abouts)
        self.about(t.about)
        for f, _ in t.fields:
            self.about(reader.about(f))
        for f, part in t.fields:
            flags = '|'.join('VG_SCHEMA_' + x for x in sorted(f.flags)) or '0'
            of = f'&types[{f.type.id}]' if f.type else 'NULL'
            rows.append(f'{{&{quote("f:" + f.name)}[2], {of}, {self.more(f)}, {f.number}, {len(f.name)}, {part}, '
                        f'VG_SCHEMA_{f.value}, VG_SCHEMA_{f.shape}, {flags}, {quote((f.name + chr(34))[:8])}}}')
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
                f'{shown(t):#x}, {always(t):#x}, {about}}}')

    def write_abouts(self):
        self.line('/* One text after another: offsets need no relocation, so nobody has pages of their own. */')
        self.line('static const char texts[] =')
        for text in self.texts:
            self.line(f'    {quote(text)} "\\0"')
        self.line(';')
        self.line('static const uint32_t abouts[] = {')
        for i in range(0, len(self.abouts), 16):
            self.line('    ' + ', '.join(map(str, self.abouts[i:i + 16])) + ',')
        self.line('};')


SCALARS = ('STRING', 'BOOL', 'INT32', 'INT64', 'DOUBLE', 'BYTES')


def shown(t):
    """Which fields JSON has even when nothing is there: omitempty leaves no struct out."""
    mask = 0
    for i, (f, _) in enumerate(t.fields):
        is_struct = f.shape == 'ONE' and 'POINTER' not in f.flags and f.value not in SCALARS
        if 'OMIT_EMPTY' not in f.flags or is_struct and 'OMIT_ZERO' not in f.flags:
            mask |= 1 << i
    return mask


def always(t):
    """Which fields protobuf has even when nothing is there: those that cannot be nil."""
    return sum(1 << i for i, (f, _) in enumerate(t.fields)
               if f.number and f.shape == 'ONE' and 'POINTER' not in f.flags and f.value != 'BYTES')


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
    w.line('/* Generated by tools/schema from src/server/kinds/schema/. */')
    w.line('#include <string.h>\n')
    w.line('#include "server/kinds/rules/defaults.h"')
    w.line('#include "server/kinds/rows.h"')
    w.line('#include "server/kinds/types.h"\n')
    w.line(f'static const struct vg_schema_type types[{len(types)}];\n')
    rows = [w.type(t, reader) for t in types]
    w.write_abouts()
    w.line(f'\nstatic const struct vg_schema_type types[{len(types)}] = {{')
    for row in rows:
        w.line(f'    {row},')
    w.line('};\n')
    w.line('static const struct vg_schema_scope scopes[] = {')
    for s in sorted(reader.scopes, key=lambda s: (s.group, s.version)):
        ids = [t.id for t in s.types.values()]
        w.line(f'    {{{quote(s.group)}, {quote(s.version)}, {min(ids)}, {len(ids)}}},')
    w.line('''};

const struct vg_schema_type *vg_schema_types(size_t *ret_n)
{
    *ret_n = sizeof types / sizeof *types;
    return types;
}

const char *vg_schema_about(const struct vg_schema_type *type, const struct vg_schema_field *field)
{
    size_t i = type->about + (field ? 1 + (size_t)(field - type->fields) : 0);
    return abouts[i] ? &texts[abouts[i]] : NULL;
}

const struct vg_schema_scope *vg_schema_scope(const struct vg_schema_type *type)
{
    const struct vg_schema_scope *s = scopes;
    while ((size_t)(type - types) >= s->first + s->n)
        s++;
    return s;
}

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
    return w
