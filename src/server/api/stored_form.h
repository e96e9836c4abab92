/* stored_form.h - how objects lie in a store that kube-apiserver reads too: as JSON, or in its
 * protobuf form. What is read there may be of either, of any version that is served, with members
 * that are left out here: it becomes what is kept everywhere else, the canonical value with its
 * header. Thread: any. */
#ifndef VG_API_STORED_FORM_H
#define VG_API_STORED_FORM_H

#include "base/log.h"
#include "server/kinds/kinds.h"
#include "server/storage/storage.h"

enum vg_stored_media { VG_STORED_JSON, VG_STORED_PROTOBUF };

/* By the name of the media type; false: it is none of these. */
bool vg_stored_media_find(const char *name, enum vg_stored_media *ret_media);

/* What could not be read: it is told by its key and counted, each time it is met. */
struct vg_stored_trouble {
    const struct vg_log *log; /* NULL = silent */
    _Atomic uint64_t unreadable;
};

/* What is written as JSON, or in protobuf where the kind has it. trouble may be NULL; it outlives
 * the form. */
void vg_stored_form(enum vg_stored_media media, struct vg_stored_trouble *trouble,
                    struct vg_stored_form *ret_form);

/* The kind whose objects lie below this key; NULL: none that is known here. */
const struct vg_kind *vg_kind_of_key(struct vg_slice key);

#endif
