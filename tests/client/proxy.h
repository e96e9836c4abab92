/* proxy.h - a TCP proxy on 127.0.0.1 that can break what goes through it. What it cannot do ends
 * the process. Thread: one owner; it has threads of its own. */
#ifndef VG_TESTS_CLIENT_PROXY_H
#define VG_TESTS_CLIENT_PROXY_H

#include <stdint.h>

struct proxy;
struct proxy *proxy_new(const char *to_host, uint16_t to_port);
void proxy_free(struct proxy *p);
uint16_t proxy_port(const struct proxy *p);
/* Every connection ends by a reset; new ones are accepted. */
void proxy_cut(struct proxy *p);
/* The same, and connections are reset as soon as they come, until opened. */
void proxy_close(struct proxy *p);
void proxy_open(struct proxy *p);

#endif
