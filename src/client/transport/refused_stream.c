/* refused_stream.c - did the server say that it did not process a request (HTTP/2: REFUSED_STREAM,
 * or a stream beyond the last one of GOAWAY)? Then a write may be sent again. What libcurl logs by
 * itself is read in exchange_curl.c; here it is asked for what it does not log. A libcurl that
 * answers differently makes us repeat less, never more. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_int.h"

/* A listener on this machine and the one connection to it. */
struct probe {
    int listener, conn;
    unsigned n_opened;
    bool says_refused;
};

static curl_socket_t probe_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct probe *p = arg;
    (void)purpose;
    if (p->n_opened++)
        return CURL_SOCKET_BAD; /* libcurl would try again */
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* Connected: the other end says that nothing comes. */
static int probe_send(void *arg, char *to, char *from, int to_port, int from_port)
{
    struct probe *p = arg;
    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    p->conn = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
    if (p->conn < 0)
        return CURL_PREREQFUNC_ABORT;
    shutdown(p->conn, SHUT_WR);
    return CURL_PREREQFUNC_OK;
}

static int probe_rewind(void *arg, curl_off_t offset, int origin)
{
    (void)arg;
    (void)offset;
    (void)origin;
    return CURL_SEEKFUNC_OK;
}

static int probe_log(CURL *easy, curl_infotype type, char *text, size_t n, void *arg)
{
    struct probe *p = arg;
    (void)easy;
    if (type == CURLINFO_TEXT && memmem(text, n, "REFUSED_STREAM", 14))
        p->says_refused = true;
    return 0;
}

static int probe_listen(struct probe *p, char *url, size_t size)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    p->conn = -1;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&a, n) < 0 ||
        listen(p->listener, 1) < 0 || getsockname(p->listener, (struct sockaddr *)&a, &n) < 0)
        return -errno;
    snprintf(url, size, "http://127.0.0.1:%d/", ntohs(a.sin_port));
    return 0;
}

static void probe_set(CURL *e, struct probe *p, const char *url)
{
    curl_easy_setopt(e, CURLOPT_URL, url);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_CONNECT_TO, NULL);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, NULL); /* no credentials */
    curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, NULL);
    curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, probe_rewind);
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, probe_send);
    curl_easy_setopt(e, CURLOPT_PREREQDATA, p);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, probe_socket);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, p);
    curl_easy_setopt(e, CURLOPT_DEBUGFUNCTION, probe_log);
    curl_easy_setopt(e, CURLOPT_DEBUGDATA, p);
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, 200L); /* nothing in it waits */
}

/* On a connection that was used before, libcurl does not say that a stream was refused. It keeps it
 * in the handle, and says it when the handle's next transfer ends without an answer on a new
 * connection. So the handle is given such a transfer, on this machine, which takes well below a
 * millisecond. It carries nothing of ours. */
static bool was_refused(struct vg_exchange *x)
{
    char url[64];
    struct probe p = {0};
    vg_mux_remove(x->c->mux, x->easy);
    x->state = VG_EXCHANGE_WAITING; /* libcurl has the handle no more */
    if (probe_listen(&p, url, sizeof(url)) == 0) {
        probe_set(x->easy, &p, url);
        (void)curl_easy_perform(x->easy);
    }
    if (p.conn >= 0)
        close(p.conn);
    if (p.listener >= 0)
        close(p.listener);
    return p.says_refused;
}

bool vg_exchange_is_not_processed(struct vg_exchange *x, CURLcode result)
{
    long version = 0;
    if (x->is_not_processed)
        return true;
    curl_easy_getinfo(x->easy, CURLINFO_HTTP_VERSION, &version);
    bool is_h2 = x->stream > 0 || version == CURL_HTTP_VERSION_2;
    bool gave_up = result == CURLE_SEND_FAIL_REWIND || result == CURLE_ABORTED_BY_CALLBACK;
    return is_h2 && gave_up && was_refused(x);
}
