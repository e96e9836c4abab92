/* write.h - what the writing verbs share: options, bodies, and the change of one object.
 *
 *   create, update, patch, delete ... --make--> vg_change --txn--> storage
 *                                       ^           | conflict: what the key holds now
 *                                       +-----------+
 *
 * Thread: the call's loop. */
#ifndef VG_API_WRITE_H
#define VG_API_WRITE_H

#include "api_int.h"
#include "meta.h"

/* ---- options (options.c) ---- */

enum vg_fields_mode { VG_FIELDS_WARN, VG_FIELDS_IGNORE, VG_FIELDS_STRICT };

struct vg_write_opts {
    bool is_dry_run;
    enum vg_fields_mode fields;
};
/* From the query. type: "CreateOptions", as messages name them. 0, or VIGIL_E_INVALID with the 422
 * in *ret_status. */
VG_CHECK int vg_write_opts_read(struct vg_api_call *call, const char *type,
                                struct vg_write_opts *ret, struct vg_api_status *ret_status);

/* The same of an apply, which has a manager and may be forced. */
struct vg_apply_opts {
    struct vg_write_opts write;
    struct vg_slice manager;
    bool is_forced;
};
VG_CHECK int vg_apply_opts_read(struct vg_api_call *call, struct vg_apply_opts *ret,
                                struct vg_api_status *ret_status);
/* Go's unicode.IsPrint, near enough, as names of managers are checked. */
bool vg_is_printable(uint32_t code);

enum vg_propagation { VG_PROPAGATE_UNSET, VG_ORPHAN, VG_BACKGROUND, VG_FOREGROUND };
struct vg_delete_opts {
    bool is_dry_run;
    bool has_grace;
    int64_t grace_s;
    bool has_orphan, orphans; /* orphanDependents */
    enum vg_propagation propagation;
    bool has_uid, has_rev;
    struct vg_slice uid, rev; /* preconditions */
    bool takes_unreadable;    /* ignoreStoreReadErrorWithClusterBreakingPotential */
};
/* From the body, or from the query when there is none. 0, or VIGIL_E_INVALID with the Status. */
VG_CHECK int vg_delete_opts_read(struct vg_api_call *call, struct vg_delete_opts *ret,
                                 struct vg_api_status *ret_status);
/* From a tree; NULL: none are given. What is wrong with their values goes to *ret_bad (code 0:
 * nothing) for later. 0, or VIGIL_E_INVALID with the 400. */
VG_CHECK int vg_delete_opts_of(struct vg_api_call *call, const struct vg_json *root,
                               struct vg_delete_opts *ret, struct vg_api_status *ret_bad,
                               struct vg_api_status *ret_status);

/* ---- bodies (decode.c, content_type.c) ---- */

struct vg_body_type {
    const char *group, *version, *kind;
    bool is_map;               /* made by a strategic patch: refused in other words */
    const struct vg_kind *row; /* its kind; NULL: to be looked for, or none */
    const char *also;          /* another version that is taken as this one; NULL: none */
};
/* Of a kind or its subresource. */
struct vg_body_type vg_body_type_of(const struct vg_target *t);

struct vg_body {
    struct vg_json *root; /* an object: decoded and defaulted */
    struct vg_meta meta;
    bool is_managed; /* meta.managed is what shall be stored */
};
/* The request's body as an object of a type: JSON, YAML or protobuf by its Content-Type. What is
 * wrong in a harmless way is warned of, or refused, as the mode says. 0, or VIGIL_E_INVALID with
 * the Status (400, 415). */
VG_CHECK int vg_body_read(struct vg_api_call *call, const struct vg_body_type *type,
                          enum vg_fields_mode mode, struct vg_body *ret,
                          struct vg_api_status *ret_status);
/* A tree that is there already (a patched one) as such an object: types alone are checked, and
 * paths of what is not known go to `unknown`, an array, or NULL. 0; VIGIL_E_INVALID with a
 * sentence; -ENOMEM. */
VG_CHECK int vg_body_check(struct vg_arena *a, struct vg_json *root,
                           const struct vg_body_type *type, struct vg_json *unknown,
                           struct vg_body *ret, struct vg_status *reterr_status);
enum vg_body_format { VG_BODY_JSON, VG_BODY_YAML, VG_BODY_PROTOBUF };
/* By the Content-Type; missing is JSON. 0; VIGIL_E_INVALID with the 415. */
VG_CHECK int vg_body_format(struct vg_api_call *call, enum vg_body_format *ret,
                            struct vg_api_status *ret_status);
/* JSON or YAML as a tree. 0; VIGIL_E_INVALID with a sentence as the original has it; -ENOMEM. dups
 * may be NULL: the last wins. */
VG_CHECK int vg_body_parse(struct vg_api_loop *l, struct vg_arena *a, struct vg_slice text,
                           enum vg_body_format format, struct vg_json_dups *dups,
                           struct vg_json **ret, struct vg_status *reterr_status);
/* A message as a tree, which borrows from the body. 0; VIGIL_E_INVALID with a sentence; -ENOMEM. */
struct vg_proto_envelope;
struct vg_schema_type;
VG_CHECK int vg_body_of_protobuf(struct vg_api_loop *l, struct vg_arena *a,
                                 const struct vg_proto_envelope *x,
                                 const struct vg_schema_type *type, struct vg_json **ret,
                                 struct vg_status *reterr_status);
/* Cut off what stands before the first c, which is dropped; *rest is what follows, or empty. */
struct vg_slice vg_cut(struct vg_slice *rest, char c);
/* Without blanks and tabs around it. */
struct vg_slice vg_trim(struct vg_slice s);
/* The type and subtype of a Content-Type without parameters, lower case, in buf. False: malformed.
 */
#define VG_MEDIA_TYPE_MAX 128u
bool vg_media_type_parse(struct vg_slice text, char buf[VG_MEDIA_TYPE_MAX], struct vg_slice *ret);
/* kind and apiVersion of a tree. 0; VIGIL_E_INVALID with a sentence. */
VG_CHECK int vg_body_type_meta(const struct vg_json *root, struct vg_slice *ret_kind,
                               struct vg_slice *ret_api_version, struct vg_status *reterr_status);

/* ---- one change (commit.c) ---- */

enum vg_verdict {
    VG_CHANGE_FAIL,  /* status says why */
    VG_CHANGE_NONE,  /* nothing to write: the answer is what is there */
    VG_CHANGE_PUT,   /* the new object is in the loop's sealed buffers */
    VG_CHANGE_DELETE /* the key goes */
};

/* Conflicts that a change survives. Each means that another write of the same object was faster. */
#define VG_CHANGE_TRIES_MAX 100u

/* Operations beside the object's own: what it takes and gives back (claims.h). */
#define VG_CHANGE_CLAIMS_MAX (VG_STORAGE_TXN_OPS_MAX - 1u)
struct vg_claim_refusal {
    struct vg_claim_refusal *next;
    struct vg_slice key;
};

struct vg_change;
typedef enum vg_verdict vg_change_make_fn(struct vg_change *c);

/* One object and what is to become of it. Zeroed, then filled by its maker; lives in the arena of
 * the call. `make` sees what the key holds and says what to do; it is called again when that was
 * not the newest. Invariants:
 *   W1 a refusal, or "nothing to do", is final only if `cur` was what storage held.
 *   W2 nothing of the request is touched when the exchange is gone: then `done` comes at once. */
struct vg_change {
    struct vg_api_call *call;
    const struct vg_kind *kind;
    struct vg_slice ns, name;
    bool is_dry_run;
    bool is_create; /* nothing is loaded first: the key should be absent */
    /* `cur` may be what others wrote and nobody can read: without a header. */
    bool is_deletion; /* part of one: it is made although the disk is full */
    bool takes_unreadable;
    /* Not NULL: the server writes by itself, to that subresource of an object that the request is
     * not about. */
    const struct vg_kind_sub *own_sub;
    uint32_t tries_max; /* 0 = VG_CHANGE_TRIES_MAX */
    vg_change_make_fn *make;
    void (*done)(struct vg_change *c);

    /* While it runs. */
    struct vg_obj_key key;
    struct vg_rec *cur; /* what the key holds, with a reference; NULL: nothing */
    bool is_current;    /* cur is what storage held since the change began */
    bool is_in_flight;  /* storage has something of ours */
    uint64_t asked_ns;  /* since then */
    uint32_t tries;
    struct vg_arena scratch; /* of one try: while make runs, or until a refusal is told */
    struct vg_json given;    /* the object as asked for, before it was arranged; in scratch */
    struct vg_op op;
    struct vg_op *claims; /* what it takes and gives back with it, in the call's arena; or NULL */
    uint32_t n_claims;
    struct vg_claim_refusal *refused; /* of what it would have taken */
    struct vg_quota_seen *quotas;     /* that moved while it ran: newer than the cache's */
    uint32_t quota_moves;
    struct vg_txn txn;
    struct vg_range range;

    /* Results, when done is called. */
    enum vg_verdict verdict;
    struct vg_api_status status; /* FAIL */
    const struct vg_rec *out;    /* the object as stored, or as it was before a delete; dry run of
                                  * a put: NULL, it is in the sealed buffers */
    vg_rev rev;                  /* to show with it */
};
void vg_change_start(struct vg_change *c);
/* After a put: remove what it left, whether or not anybody waits. For a delete in two steps; make
 * is asked only if another write came between. */
void vg_change_drop(struct vg_change *c);
/* Drops references and scratch. Answers are given before. */
void vg_change_release(struct vg_change *c);
/* The usual done: answer with the object (or the refusal), release. */
void vg_change_answer(struct vg_change *c, int code);
/* For calls whose state begins with a vg_change. */
extern const struct vg_api_op vg_change_op;

/* ---- stamping (stamp.c) ---- */

/* The object with this metadata, sealed; PUT or FAIL. cur: what is stored, as a tree; NULL:
 * nothing. */
enum vg_verdict vg_change_seal(struct vg_change *c, struct vg_json *root, const struct vg_meta *m,
                               const struct vg_json *cur);
/* What is stored, as a tree in scratch; 0, or negative with the status set. */
VG_CHECK int vg_change_load(struct vg_change *c, struct vg_body *ret_cur);
/* The sets of its managers are closed (fields/set.h). */
VG_CHECK int vg_change_load_closed(struct vg_change *c, struct vg_body *ret_cur);
/* A new object: stamps, checks and seals it. Its name is in c->name afterwards. */
enum vg_verdict vg_stamp_new(struct vg_change *c, const struct vg_body *body);

/* ---- small parts (create.c) ---- */

/* What makes a name that is made up another than those before. */
#define VG_NAME_SUFFIX 5u
void vg_name_suffix(struct vg_rng *rng, char ret[VG_NAME_SUFFIX]);

/* 0, or VIGIL_E_INVALID with the 400. */
VG_CHECK int vg_body_match_namespace(struct vg_api_call *call, const struct vg_meta *m,
                                     struct vg_api_status *ret_status);
/* The options and the body of a POST, which is for the namespace of the request. 0, or negative
 * with the status set. */
VG_CHECK int vg_body_read_new(struct vg_api_call *call, const struct vg_body_type *type,
                              struct vg_write_opts *ret_opts, struct vg_body *ret_body,
                              struct vg_api_status *ret_status);
/* Drop owners that are there twice, and warn. is_late: after a patch. -ENOMEM. */
VG_CHECK int vg_meta_tell_owners(struct vg_api_call *call, struct vg_meta *m, bool is_late);
/* Answer with the Scale of a stored object (scale.c). */
void vg_scale_respond(struct vg_api_call *call, int code, const struct vg_rec *rec, vg_rev rev);
/* POST of a subresource, or of what is not stored (subresource.c). */
void vg_api_create_sub(struct vg_api_call *call);
void vg_api_evict(struct vg_api_call *call);        /* evict.c */
void vg_api_create_token(struct vg_api_call *call); /* token.c */

/* ---- namespaces (admit.c) ---- */

/* May something be made in a namespace? */
struct vg_admit {
    struct vg_api_call *call;
    struct vg_slice ns;
    struct vg_range range;
    struct vg_obj_key key;
    bool is_in_flight;
    void (*done)(struct vg_admit *a);
    bool exists, is_terminating;
    int err; /* of storage; 0: the two above hold */
};
/* done may be called from within. */
void vg_admit_start(struct vg_admit *a);
/* 0, or VIGIL_E_INVALID with the refusal for an object of that kind and name. */
VG_CHECK int vg_admit_verdict(const struct vg_admit *a, const struct vg_kind *kind,
                              struct vg_slice name, struct vg_api_status *ret_status);

#endif
