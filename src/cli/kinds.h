/* kinds.h - the kinds of a server, asked for once in a run and no more of them than needed.
 * Thread: main, which also turns the client. */
#ifndef VG_CLI_KINDS_H
#define VG_CLI_KINDS_H

#include "base/arena.h"
#include "base/buf.h"
#include "vigil/client.h"

struct vg_cli;

struct vg_kind {
    struct vigil_resource r;
    const char *singular;
    const char *shorts; /* parted by commas, "" when there are none */
    bool can_list, can_watch;
    struct vg_kind *next; /* in the order of the server, core first */
};

/* 16 MiB of names: a server with thousands of kinds has less than one. */
#define VG_KINDS_BYTES_MAX ((size_t)16 << 20)

struct vg_kinds {
    struct vg_arena arena;
    struct vg_kind *first, **last;
    bool has_core, has_groups;
    char **groups; /* "group/version", preferred ones, NULL behind */
    size_t next_group;
    unsigned failed_groups; /* that the server names but does not answer for */
};
void vg_kinds_init(struct vg_kinds *k);
void vg_kinds_done(struct vg_kinds *k);

/* By plural, singular, short name or kind, with or without .group. 0; VIGIL_E_NOT_FOUND, err has a
 * sentence with what is near; what requests fail with. */
VG_CHECK int vg_kinds_find(struct vg_cli *cli, const char *name, const struct vg_kind **ret,
                           struct vigil_error *err);
/* Ask for all. */
VG_CHECK int vg_kinds_all(struct vg_cli *cli, struct vigil_error *err);

/* Take in an APIResourceList. 0 or -ENOMEM; what is no such list adds nothing. */
VG_CHECK int vg_kinds_add(struct vg_kinds *k, struct vigil_text json, const char *group_version);
/* Among those known. NULL: none. */
const struct vg_kind *vg_kinds_match(const struct vg_kinds *k, const char *name);
/* A known name that is spelled nearly so. NULL: none. */
const char *vg_kinds_near(const struct vg_kinds *k, const char *name);

#endif
