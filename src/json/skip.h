/* skip.h - jumping over strings and containers, shared within the folder. Safe on any bytes. */
#ifndef VG_JSON_SKIP_H
#define VG_JSON_SKIP_H

#include "bytes.h"

/* p is at the opening quote. Past the closing one, or NULL: the text ends first. Sets *ret_escaped
 * when there is a backslash inside. */
const char *vg_json_skip_string(const char *p, const char *end, bool *ret_escaped);
/* p is at an opening bracket. Past the bracket that closes it, or NULL. Kinds of brackets are not
 * told apart. */
const char *vg_json_skip_container(const char *p, const char *end);
/* p is inside of a container and of no string. Past the bracket that closes it, or NULL. */
const char *vg_json_skip_rest(const char *p, const char *end);

/* The same in one particular way, so that tests reach those this machine would not choose. A way
 * that it does not have is answered by the plain one. */
enum vg_json_skip_way { VG_JSON_SKIP_PLAIN, VG_JSON_SKIP_SSE2, VG_JSON_SKIP_AVX2 };
const char *vg_json_skip_container_by(enum vg_json_skip_way way, const char *p, const char *end);

#endif
