/* notify.c - see notify.h. */
#include "notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* systemd's SD_LISTEN_FDS_START. */
#define SOCKETS_FIRST 3
/* One for the secure port, and what is refused. */
#define SOCKETS_MAX 64

void vg_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@')
        to.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* Nobody to tell is no reason to fail. */
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    close(fd);
}

/* A number of the environment that is meant for this process; 0: none. */
static unsigned long own_number(const char *name, const char *pid_name)
{
    const char *text = getenv(name), *pid = getenv(pid_name);
    if (!text || (pid && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    return strtoul(text, NULL, 10);
}

uint64_t vg_notify_watchdog_ms(void)
{
    return own_number("WATCHDOG_USEC", "WATCHDOG_PID") / 1000;
}

int vg_notify_sockets(int *ret_first)
{
    unsigned long n = getenv("LISTEN_PID") ? own_number("LISTEN_FDS", "LISTEN_PID") : 0;
    *ret_first = SOCKETS_FIRST;
    return n > SOCKETS_MAX ? SOCKETS_MAX : (int)n;
}
