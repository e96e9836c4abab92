/* vigil/recorder.h - events about objects, as kubectl describe shows them. Never waits and never
 * fails the caller: similar events are counted together, too many are dropped. Thread: any. */
#ifndef VIGIL_RECORDER_H
#define VIGIL_RECORDER_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vigil_recorder;
/* Component: who says it, as in "kubelet". The client outlives it. */
VIGIL_API VIGIL_CHECKED int vigil_recorder_new(struct vigil_client *c, const char *component,
                                               struct vigil_recorder **ret,
                                               struct vigil_error *err);
VIGIL_API void vigil_recorder_free(struct vigil_recorder *r); /* what waits is dropped */
/* type "Normal" or "Warning"; reason in CamelCase; message as printf. */
VIGIL_API void vigil_record(struct vigil_recorder *r, const struct vigil_object *about,
                            const char *type, const char *reason, const char *message, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 5, 6)))
#endif
    ;

#ifdef __cplusplus
}
#endif

#endif
