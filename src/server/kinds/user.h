/* user.h - what is known of a user beside name and groups. Thread: any. */
#ifndef VG_KINDS_USER_H
#define VG_KINDS_USER_H

#include "base/slice.h"

/* By which credential it came, for instance; lists of these are sorted by key, each is there once.
 */
struct vg_user_extra {
    struct vg_slice key, value;
};

#endif
