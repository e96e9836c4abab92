/* ip.h - addresses as Kubernetes reads them, and how it complains. Thread: any. */
#ifndef VG_RULES_IP_H
#define VG_RULES_IP_H

#include "check.h"

struct vg_ip {
    uint8_t b[16];  /* of IPv4 the last four, after ::ffff: */
    bool is_v4;     /* written with dots alone */
    bool is_strict; /* no leading zeros that other readers take for octal, or refuse */
};

/* As netutils.ParseIPSloppy reads it: leading zeros are taken, zones are not. */
bool vg_ip_parse(struct vg_slice text, struct vg_ip *ret);
/* ::ffff:1.2.3.4 or the same in hex: IPv6 that means IPv4. */
bool vg_ip_is_mapped(const struct vg_ip *ip);
/* A field that was always checked loosely: any form, but no leading zeros and no mapped ones. */
bool vg_check_ip(struct vg_check *c, const struct vg_at *at);
/* As Go prints it (RFC 5952); at most VG_IP_TEXT_MAX bytes. */
#define VG_IP_TEXT_MAX 46u
struct vg_slice vg_ip_text(const struct vg_ip *ip, char room[VG_IP_TEXT_MAX]);

#endif
