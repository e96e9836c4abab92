/* notes.h - what one handler is to be told and was not told yet: a ring that grows.
 * A ring that merges holds, from its limit on, one note for each object at most: what happened
 * since is folded into the one that waits. Invariants: N1 a note holds references of its objects.
 * N2 `latest` names, for a ring that merges, the newest note of a key; it may lack some.
 * Thread: its owner's lock. */
#ifndef VG_CLIENT_INFORMER_NOTES_H
#define VG_CLIENT_INFORMER_NOTES_H

#include "base/err.h"
#include "base/map.h"
#include "client/object/object_int.h"

enum vg_note_kind {
    VG_NOTE_NONE, /* folded away */
    VG_NOTE_ADD,
    VG_NOTE_UPDATE,
    VG_NOTE_DELETE,
    VG_NOTE_SYNCED, /* all of the first list came before */
};

struct vg_note {
    uint8_t kind;                      /* enum vg_note_kind */
    bool flag;                         /* ADD: is_initial; DELETE: is_tombstone */
    const struct vigil_object *before; /* UPDATE */
    const struct vigil_object *o;      /* but for NONE and SYNCED */
};

struct vg_notes {
    struct vg_note *v;
    size_t cap, head, n;
    uint64_t first;       /* number of the note at head; they are counted from 1 */
    size_t promised;      /* room that must stay for a batch under way */
    size_t merge_at;      /* merges when so many wait; 0: never */
    struct vg_map latest; /* key -> number */
};

void vg_notes_init(struct vg_notes *q, size_t merge_at);
void vg_notes_done(struct vg_notes *q);
/* So that `more` can be pushed, until settled: a batch is told as a whole or not at all. 0 or
 * -ENOMEM. */
VG_CHECK int vg_notes_reserve(struct vg_notes *q, size_t more);
void vg_notes_settle(struct vg_notes *q);
/* Takes references of its own. Within what was reserved. */
void vg_notes_push(struct vg_notes *q, const struct vg_note *note);
/* The oldest, at most max of them; the caller calls vg_note_done on each. */
size_t vg_notes_take(struct vg_notes *q, struct vg_note *ret, size_t max);
void vg_note_done(struct vg_note *note);

#endif
