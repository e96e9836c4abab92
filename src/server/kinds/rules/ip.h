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
/* Means IPv4, however it is written. */
static inline bool vg_ip_means_v4(const struct vg_ip *ip)
{
    return ip->is_v4 || vg_ip_is_mapped(ip);
}
/* A field that was always checked loosely: any form, but no leading zeros and no mapped ones. */
bool vg_check_ip(struct vg_check *c, const struct vg_at *at);
/* The same, but what is among the addresses of `before` (NULL: none) is taken as it is. */
bool vg_check_ip_or_old(struct vg_check *c, const struct vg_at *at, const struct vg_json *before);
/* The one text of an address. */
bool vg_check_ip_canonical(struct vg_check *c, const struct vg_at *at);
/* Where traffic can be sent to. */
bool vg_check_endpoint_ip(struct vg_check *c, const struct vg_at *at);
/* Warn of an address that is not in its canonical form. */
void vg_caution_ip(struct vg_check *c, const struct vg_at *at);
/* As Go prints it (RFC 5952); at most VG_IP_TEXT_MAX bytes. */
#define VG_IP_TEXT_MAX 46u
struct vg_slice vg_ip_text(const struct vg_ip *ip, char room[VG_IP_TEXT_MAX]);

/* ---- ranges (cidr.c) ---- */

struct vg_cidr {
    struct vg_ip ip;
    unsigned bits;  /* that all of its addresses share; up to 32 or 128 */
    bool is_strict; /* the address is, and the number has no leading zeros */
};

bool vg_cidr_parse(struct vg_slice text, struct vg_cidr *ret);
/* Its lowest address. */
struct vg_ip vg_cidr_first(const struct vg_cidr *n);
bool vg_cidr_contains(const struct vg_cidr *n, const struct vg_ip *ip);
/* As vg_check_ip, vg_check_ip_or_old and the others check addresses. */
bool vg_check_cidr(struct vg_check *c, const struct vg_at *at);
bool vg_check_cidr_or_old(struct vg_check *c, const struct vg_at *at, const struct vg_json *before);
bool vg_check_cidr_canonical(struct vg_check *c, const struct vg_at *at);
void vg_caution_cidr(struct vg_check *c, const struct vg_at *at);
/* Is the text among the strings of a list (NULL: of none)? */
bool vg_text_is_among(struct vg_slice text, const struct vg_json *list);

#endif
