/* defaults.h - functions of types that set what was not given and depends on other fields. The
 * notation names them: `type PodSpec defaults(pod_spec)` is vg_default_pod_spec. Thread: one owner.
 */
#ifndef VG_RULES_DEFAULTS_H
#define VG_RULES_DEFAULTS_H

#include "server/schema/default.h"

#endif
