/* cel.h - a first look at expressions of CEL. There is no compiler here: what is found are texts
 * that cannot be expressions by their first words, single words that nobody declares, and single
 * literals of the wrong type. Whatever goes on after its first operand is taken. Thread: any. */
#ifndef VG_RULES_CEL_H
#define VG_RULES_CEL_H

#include "check.h"

/* What an expression is for. */
struct vg_cel_use {
    const char *const *variables; /* that are declared; ends with NULL */
    const char *wanted;           /* the type's name; NULL: any will do */
    /* What is said of another type, which is named when this ends with a blank. NULL: must evaluate
     * to WANTED but got ... */
    const char *refusal;
};

/* "bool", for what lets requests pass; any type; an object to be applied; a patch. */
extern const struct vg_cel_use vg_cel_admission_bool, vg_cel_admission_any, vg_cel_admission_text,
    vg_cel_apply, vg_cel_json_patch;

typedef struct vg_slice vg_cel_show_fn(struct vg_check *c, const struct vg_at *at);
/* Invalid value: SHOWN: compilation failed: ERROR: ...; show NULL: the text itself is shown. */
void vg_check_cel(struct vg_check *c, const struct vg_at *at, const struct vg_cel_use *use,
                  vg_cel_show_fn *show);

#endif
