/* advertise.c - under which address others find this server; see advertise.h. */
#include "advertise.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

/* Can others reach somebody there? */
static bool is_reachable(const char *text, int *ret_family)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, text, &v4) == 1) {
        uint32_t a = ntohl(v4.s_addr);
        *ret_family = AF_INET;
        return a != INADDR_ANY && a >> 24 != IN_LOOPBACKNET && !IN_MULTICAST(a) &&
               a >> 16 != 0xa9fe; /* 169.254: of one link */
    }
    *ret_family = inet_pton(AF_INET6, text, &v6) == 1 ? AF_INET6 : AF_UNSPEC;
    return *ret_family == AF_INET6 && !IN6_IS_ADDR_UNSPECIFIED(&v6) && !IN6_IS_ADDR_LOOPBACK(&v6) &&
           !IN6_IS_ADDR_MULTICAST(&v6) && !IN6_IS_ADDR_LINKLOCAL(&v6);
}

/* The address by which this host would speak to one far away. Nothing is sent: the kernel is asked
 * for its route. */
static bool ask_route(int family, char ret[VG_ADVERTISE_MAX])
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    bool is_v6 = family == AF_INET6;
    (void)inet_pton(AF_INET, "198.51.100.1", &v4.sin_addr);
    (void)inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);
    struct sockaddr *to = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t size = is_v6 ? sizeof v6 : sizeof v4;
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), found;
    if (fd < 0)
        return false;
    bool is = connect(fd, to, size) == 0 && getsockname(fd, to, &size) == 0 &&
              inet_ntop(family, is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr, ret,
                        VG_ADVERTISE_MAX);
    (void)close(fd);
    return is && is_reachable(ret, &found);
}

int vg_advertise_choose(const char *wanted, const char *bound, char ret[VG_ADVERTISE_MAX],
                        struct vg_status *reterr_status)
{
    int family;
    *ret = 0;
    if (wanted && !is_reachable(wanted, &family))
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--advertise-address: %s is not an address by which others could reach this "
                       "server",
                       wanted);
    if (wanted || is_reachable(bound, &family)) {
        snprintf(ret, VG_ADVERTISE_MAX, "%s", wanted ? wanted : bound);
        return 0;
    }
    bool is_every = strcmp(bound, "0.0.0.0") == 0 || strcmp(bound, "::") == 0;
    if (is_every && !ask_route(AF_INET, ret) && (family != AF_INET6 || !ask_route(AF_INET6, ret)))
        *ret = 0;
    return 0;
}
