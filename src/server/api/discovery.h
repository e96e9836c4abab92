/* discovery.h - what the documents' handlers share. */
#ifndef VG_API_DISCOVERY_H
#define VG_API_DISCOVERY_H

#include "api.h"

struct vg_discovery;
struct vg_openapi;

/* May it be answered? Only GET and HEAD; to all else 405 has been said. */
bool vg_discovery_admit(struct vg_api_call *call);
struct vg_openapi *vg_discovery_openapi(const struct vg_discovery *d);

#endif
