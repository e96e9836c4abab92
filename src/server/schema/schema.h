/* schema.h - what the objects of a kind are made of: types, their fields, and both of their forms.
 * The tables are constant data, generated from src/server/kinds/schema/ by tools/schema; the
 * code of this room works on any table. A type is what Go calls a struct. Its fields are listed as
 * JSON has them, in the order in which kube-apiserver prints them: fields of an embedded type stand
 * flat among the others, with the number of the part that holds them in protobuf. Invariants,
 * checked by tools/schema: T1 names of one type are unique, numbers of one part are unique. T2
 * parts[0] is the type itself; every other part is an entry of exactly one part. T3 entries of a
 * part are sorted by number. Thread: any. */
#ifndef VG_SCHEMA_SCHEMA_H
#define VG_SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

struct vg_schema_type;
struct vg_arena;
struct vg_json;
/* Sets what is not given in one object of a type; its parts come later. 0, -ENOMEM. */
typedef int vg_schema_default_fn(struct vg_arena *a, struct vg_json *v);

/* What one value is; the shape says how many of them. */
enum vg_schema_value {
    VG_SCHEMA_STRING,
    VG_SCHEMA_BOOL,
    VG_SCHEMA_INT32,
    VG_SCHEMA_INT64,
    VG_SCHEMA_DOUBLE,
    VG_SCHEMA_BYTES,         /* base64 in JSON */
    VG_SCHEMA_QUANTITY,      /* a string or number in JSON; {1 string} in protobuf */
    VG_SCHEMA_INT_OR_STRING, /* {1 type, 2 int, 3 string} */
    VG_SCHEMA_TIME,          /* RFC 3339 in seconds; {1 seconds, 2 nanos}; zero is null */
    VG_SCHEMA_MICRO_TIME,    /* the same with six digits */
    VG_SCHEMA_RAW,           /* RawExtension: any object; {1 bytes} */
    VG_SCHEMA_JSON,          /* any JSON; {1 bytes} */
    VG_SCHEMA_FIELDS,        /* FieldsV1: an object; {1 bytes} */
    VG_SCHEMA_STRINGS,       /* a list as value of a map; {1 repeated string} */
    VG_SCHEMA_OR_ARRAY,      /* a JSON schema, or a list of them; {1 schema, 2 repeated schema} */
    VG_SCHEMA_OR_BOOL,       /* {1 bool, 2 schema} */
    VG_SCHEMA_OR_STRINGS,    /* {1 schema, 2 repeated string} */
    VG_SCHEMA_TYPE,          /* a message: `type` */
};

enum vg_schema_shape {
    VG_SCHEMA_ONE,
    VG_SCHEMA_LIST,
    VG_SCHEMA_MAP, /* by strings */
};

enum vg_schema_flag {
    VG_SCHEMA_POINTER =
        1, /* absent and zero differ; else absent is zero, and protobuf has it always */
    VG_SCHEMA_OMIT_EMPTY = 2, /* not printed when nil, or a zero scalar, or an empty list or map */
    VG_SCHEMA_OMIT_ZERO = 4,  /* a zero time is not printed either */
    VG_SCHEMA_REQUIRED = 8,   /* as OpenAPI declares it */
    VG_SCHEMA_LIST_SET = 16,
    VG_SCHEMA_ATOMIC = 32, /* a list or map that server-side apply owns as a whole */
    VG_SCHEMA_MERGE = 64,  /* strategic merge joins the lists (by merge_key, or as a set) */
    VG_SCHEMA_RETAIN_KEYS = 128,
    VG_SCHEMA_REPLACE = 256,    /* strategic merge replaces the object */
    VG_SCHEMA_GRANULAR = 512,   /* server-side apply looks into it, whatever its type says */
    VG_SCHEMA_IMMUTABLE = 1024, /* rules refuse to change it; here for who describes it */
};

/* What is rarely asked for; many fields share one. */
struct vg_schema_more {
    const char *go;            /* the type's name in Go: "v1.PullPolicy", "[]v1.Container" */
    const char *item_go;       /* of one value of a list or map: "v1.Container" */
    const char *def;           /* the default, as JSON; NULL: none */
    const char *const *values; /* the closed set of its strings, sorted, ends with NULL; or NULL */
    const char *const *list_keys; /* of a list-map; ends with NULL; or NULL */
    const char *merge_key;        /* of strategic merge; NULL: none */
};

struct vg_schema_field {
    const char *name; /* "f:" stands before it, as in FieldsV1 */
    const struct vg_schema_type
        *type; /* VG_SCHEMA_TYPE and the three OR: of the value; else NULL */
    const struct vg_schema_more *more; /* never NULL */
    uint16_t number;                   /* in protobuf; 0: not there */
    uint8_t name_n;
    uint8_t part;   /* which part of the type holds it */
    uint8_t value;  /* enum vg_schema_value */
    uint8_t shape;  /* enum vg_schema_shape */
    uint16_t flags; /* enum vg_schema_flag */
    char head[8];   /* the first bytes of the name and of the quote after it; the rest is zero */
};

/* A message of protobuf: the type itself, or one that JSON has flattened into it. */
struct vg_schema_entry {
    uint16_t number;
    uint8_t is_part;
    uint8_t index; /* of the field, or of the part */
};
struct vg_schema_part {
    const char *go; /* "v1.VolumeSource" */
    const struct vg_schema_entry *entries;
    uint8_t n;
};

struct vg_schema_type {
    const char *name; /* "PodSpec" */
    const char *go;   /* "v1.PodSpec", as Go's messages have it */
    const struct vg_schema_field *fields;
    const struct vg_schema_part *parts;
    const uint8_t
        *by_name; /* a perfect hash: index + 1 of a field, 0: none; 1 << slots_log2 of them */
    uint8_t n, n_parts;
    uint8_t slots_log2, seed;
    bool is_atomic;    /* server-side apply owns it as a whole */
    bool is_straight;  /* protobuf has one part, and its numbers rise in the order of JSON */
    bool has_defaults; /* itself, or what it holds */
    vg_schema_default_fn *defaults; /* those that depend on other fields; NULL: none */
    uint64_t shown;  /* bit i: JSON has fields[i] even when it is nil, zero or empty */
    uint64_t always; /* bit i: protobuf has it even then */
    uint32_t about;  /* where the generated tables keep what is said of it (kinds/types.h) */
};

/* The slot of a key; the generator has the same formula. */
static inline unsigned vg_schema_slot(const struct vg_schema_type *t, const char *p, size_t n)
{
    unsigned h = (unsigned)n;
    for (size_t i = 0; i < n; i++)
        h = h * (2u * t->seed + 1u) + (unsigned char)p[i];
    return (h ^ h >> 7) & ((1u << t->slots_log2) - 1u);
}
/* The field of that JSON name; NULL: unknown. */
static inline const struct vg_schema_field *vg_schema_field(const struct vg_schema_type *t,
                                                            struct vg_slice name)
{
    if (name.n == 0 || t->n == 0)
        return NULL;
    unsigned i = t->by_name[vg_schema_slot(t, name.p, name.n)];
    if (i == 0)
        return NULL;
    const struct vg_schema_field *f = &t->fields[i - 1];
    return f->name_n == name.n && memcmp(f->name, name.p, name.n) == 0 ? f : NULL;
}
static inline bool vg_schema_is(const struct vg_schema_field *f, enum vg_schema_flag flag)
{
    return f->flags & (unsigned)flag;
}

#endif
