/* options.h - the options of lists and watches, and of GET. Contract section 2.
 * Order: parse (400), default, validate (422), the kind's field labels (400). What the storage
 * checks of a list's revision and token comes after these and is told by list.c. Thread: any. */
#ifndef VG_API_OPTIONS_H
#define VG_API_OPTIONS_H

#include "object/predicate.h"
#include "status.h"
#include "target.h"

enum vg_rev_match { VG_MATCH_UNSET, VG_MATCH_EXACT, VG_MATCH_NOT_OLDER_THAN, VG_MATCH_OTHER };
enum vg_tri { VG_TRI_UNSET, VG_TRI_FALSE, VG_TRI_TRUE };

struct vg_list_options {
    struct vg_slice label_selector, field_selector; /* as written */
    struct vg_slice rev;                            /* as written: "" and "0" are special */
    struct vg_slice match_text;
    enum vg_rev_match match;
    int64_t timeout_s; /* 0: the default */
    int64_t limit;     /* 0 or less: none */
    struct vg_slice continue_token;
    enum vg_tri send_initial;
    bool allow_bookmarks;
    bool is_watch;                      /* ?watch, or a watch verb of a list's path */
    bool has_selector;                  /* labels or fields restrict */
    bool is_name_pinned;                /* by the URL of a legacy watch, or metadata.name= */
    struct vg_obj_predicate *predicate; /* one reference; the caller's */
};

/* 0, or negative with *ret_status. */
VG_CHECK int vg_list_options_parse(const struct vg_target *t, struct vg_arena *a,
                                   struct vg_list_options *ret, struct vg_api_status *ret_status);
void vg_list_options_done(struct vg_list_options *o);

static inline bool vg_rev_is_unset(struct vg_slice rev)
{
    return rev.n == 0;
}
static inline bool vg_rev_is_zero(struct vg_slice rev)
{
    return rev.n == 1 && rev.p[0] == '0';
}
/* A revision that is not "". 0; VIGIL_E_INVALID with what kube-apiserver says of it in *reterr_why:
 * resourceVersion: Invalid value: "x": strconv.ParseUint: ...; -ENOMEM. */
VG_CHECK int vg_rev_parse(struct vg_arena *a, struct vg_slice text, uint64_t *ret,
                          struct vg_slice *reterr_why);

#endif
