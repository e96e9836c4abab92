/* config_int.h - a row of the table of flags, and how its values are read. Thread: main. */
#ifndef VG_MAIN_CONFIG_INT_H
#define VG_MAIN_CONFIG_INT_H

#include "config.h"

enum vg_flag_type {
    VG_FLAG_TEXT,     /* const char *; may be empty */
    VG_FLAG_CHOICE,   /* const char *: one of the words in `arg`, parted by '|' */
    VG_FLAG_NUMBER,   /* uint64_t, from min to max */
    VG_FLAG_DURATION, /* uint64_t, milliseconds: 500ms, 30s, 5m, 1h30m, 0 */
    VG_FLAG_SECONDS,  /* uint64_t: a bare number of seconds, or a duration of whole ones */
    VG_FLAG_BOOL,     /* bool; alone it means true */
    VG_FLAG_LIST,     /* const char *: names parted by commas; given again, it grows */
};

struct vg_flag {
    const char *name;
    const char *arg; /* as --help shows it; NULL: a bool */
    enum vg_flag_type type;
    size_t offset;     /* in struct vg_config */
    const char *value; /* the default; NULL: none, the field stays 0 or NULL */
    uint64_t min, max; /* of numbers; max 0: no limit */
    const char *help;  /* further lines after \n */
};
struct vg_flag_group {
    const char *title;
    const struct vg_flag *flags; /* ends with name NULL */
};
extern const struct vg_flag_group vg_flag_groups[]; /* ends with title NULL */

const struct vg_flag *vg_flag_find(struct vg_slice name);
/* "there is no flag --x", and what may have been meant. */
int vg_flag_unknown(struct vg_slice name, struct vg_status *reterr_status);
/* Put a value into the config. `text` is borrowed by text flags. VIGIL_E_INVALID. */
VG_CHECK int vg_flag_set(const struct vg_flag *f, const char *text, struct vg_config *c,
                         struct vg_status *reterr_status);

#endif
