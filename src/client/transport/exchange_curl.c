/* exchange_curl.c - an exchange as libcurl sees it: options, headers, bytes, and what its failures
 * mean to a person. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "client_int.h"

/* ---- bytes ---- */

static size_t on_bytes(char *p, size_t size, size_t n, void *arg)
{
    struct vg_exchange *x = arg;
    n *= size;
    if (x->is_canceled)
        return CURL_WRITEFUNC_ERROR;
    if (x->is_paused)
        return CURL_WRITEFUNC_PAUSE;
    x->heard_ns = x->c->heard_ns = vg_clock_mono_ns(vg_loop_clock(x->c->loop));
    long http = 0;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &http);
    if (http / 100 != 2) {
        size_t fits = VG_MIN(n, VG_ERROR_BODY_MAX - x->error_body.n);
        if (fits < n) /* enough was said: the status counts, not how the body goes on */
            return CURL_WRITEFUNC_ERROR;
        return vg_buf_append(&x->error_body, p, fits) < 0 ? CURL_WRITEFUNC_ERROR : n;
    }
    int r = x->opts.on_data ? x->opts.on_data(x->opts.arg, vg_slice(p, n)) : 0;
    if (x->is_canceled)
        return CURL_WRITEFUNC_ERROR;
    if (r < 0) {
        x->data_error = r;
        return CURL_WRITEFUNC_ERROR;
    }
    if (r > 0)
        x->is_paused = true;
    return n;
}

/* Line by line; the empty one ends the head, of an interim answer too. */
static size_t on_head(char *p, size_t size, size_t n, void *arg)
{
    struct vg_exchange *x = arg;
    long http = 0;
    n *= size;
    if (x->is_canceled || n > 2 || (*p != '\r' && *p != '\n'))
        return n;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &http);
    if (http / 100 != 2)
        return n;
    x->has_head = true;
    x->heard_ns = x->c->heard_ns = vg_clock_mono_ns(vg_loop_clock(x->c->loop));
    x->opts.on_open(x->opts.arg);
    return n;
}

static size_t on_read(char *to, size_t size, size_t n, void *arg)
{
    struct vg_exchange *x = arg;
    n = VG_MIN(size * n, x->opts.body.n - x->body_at);
    if (n)
        memcpy(to, x->opts.body.p + x->body_at, n);
    x->body_at += n;
    return n;
}

/* libcurl would send a request again, by itself, when a connection that it used before dies without
 * an answer. The server may have done what was asked for: that is not ours to do twice, unless it
 * is a GET. Bodies are not rewound, and requests without one are stopped before they are sent. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    (void)arg;
    (void)offset;
    (void)origin;
    return CURL_SEEKFUNC_FAIL;
}

static int on_send(void *arg, char *to, char *from, int to_port, int from_port)
{
    struct vg_exchange *x = arg;
    (void)to;
    (void)from;
    (void)to_port;
    x->port = from_port;
    return x->n_sent++ ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* ---- what the server did not process ---- */

/* The number that follows `words` in a line of libcurl's log, or -1. */
static long number_after(struct vg_slice line, const char *words)
{
    const char *p = memmem(line.p, line.n, words, strlen(words));
    const char *end = line.p + line.n;
    long v = -1;
    for (p = p ? p + strlen(words) : end; p < end && *p >= '0' && *p <= '9' && v < INT32_MAX; p++)
        v = (v < 0 ? 0 : v) * 10 + (*p - '0');
    return v;
}

/* GOAWAY names the last stream that was or may be processed; those after it are not (RFC
 * 9113, 6.8). libcurl tells whoever reads from the connection at that moment. */
static void on_goaway(struct vigil_client *c, long port, long last)
{
    VG_LIST_FOREACH (l, &c->exchanges) {
        struct vg_exchange *x = VG_CONTAINER_OF(l, struct vg_exchange, link);
        if (x->easy && x->port == port && x->stream > last)
            x->is_not_processed = true;
    }
}

/* libcurl's log is the only place where it says which stream a request has, what GOAWAY said, and
 * that a stream was refused. A libcurl that words it differently makes us repeat less. */
static int on_log(CURL *easy, curl_infotype type, char *text, size_t n, void *arg)
{
    struct vg_exchange *x = arg;
    struct vg_slice line = vg_slice(text, n);
    (void)easy;
    if (type != CURLINFO_TEXT)
        return 0;
    long stream = number_after(line, "Using Stream ID: ");
    long last = memmem(text, n, "GOAWAY", 6) ? number_after(line, "last_stream=") : -1;
    if (stream > 0)
        x->stream = stream;
    if (last >= 0 && x->port)
        on_goaway(x->c, x->port, last);
    if (memmem(text, n, "REFUSED_STREAM", 14))
        x->is_not_processed = true;
    return 0;
}

/* ---- options ---- */

/* A program that is started meanwhile, one for credentials among them, does not inherit
 * connections: it would hold them open when we have closed them. libcurl itself does not see to
 * that. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    (void)arg;
    (void)purpose;
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    (void)arg;
    (void)purpose;
    unsigned ms = VG_USER_TIMEOUT_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)); /* best effort */
    return CURL_SOCKOPT_OK;
}

/* With TLS a request waits until it is known whether it can share a connection that is being made.
 * Without it there is no HTTP/2 and nothing to wait for; libcurl would wait all the same, for the
 * end of a watch. */
static void set_connection(CURL *e, bool is_https)
{
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(e, CURLOPT_PIPEWAIT, is_https ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, VG_CONNECT_MS);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPIDLE, VG_KEEPALIVE_IDLE_S);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPINTVL, VG_KEEPALIVE_EVERY_S);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, VG_READ_BYTES);
}

static CURLcode set_blob(CURL *e, CURLoption option, const struct vg_buf *b)
{
    struct curl_blob blob = {.data = b->p, .len = b->n, .flags = CURL_BLOB_COPY};
    return b->n ? curl_easy_setopt(e, option, &blob) : CURLE_OK;
}

static CURLcode set_tls(CURL *e, const struct vigil_config *config, const struct vg_creds *creds)
{
    curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (config->is_insecure) {
        curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (creds->ca.n)
        curl_easy_setopt(e, CURLOPT_CAPATH, NULL); /* ours is the only authority */
    CURLcode r = set_blob(e, CURLOPT_CAINFO_BLOB, &creds->ca);
    if (r == CURLE_OK)
        r = set_blob(e, CURLOPT_SSLCERT_BLOB, &creds->cert);
    return r == CURLE_OK ? set_blob(e, CURLOPT_SSLKEY_BLOB, &creds->key) : r;
}

/* host[:port] of the server, and what follows it. */
static struct vg_slice authority(const char *server, const char **ret_rest)
{
    const char *host = strstr(server, "://") + 3;
    size_t n = strcspn(host, "/");
    *ret_rest = host + n;
    return vg_slice(host, n);
}

static bool is_loopback(const char *server)
{
    static const char *const NAMES[] = {"localhost", "127.", "[::1]"};
    const char *rest;
    struct vg_slice host = authority(server, &rest);
    for (size_t i = 0; i < VG_ARRAY_LEN(NAMES); i++)
        if (vg_slice_has_prefix(host, vg_slice_str(NAMES[i])))
            return true;
    return false;
}

/* A proxy that is named is used for everything; the environment's is not used for this machine. */
static void set_proxy(CURL *e, const struct vigil_config *c)
{
    if (c->proxy_url) {
        curl_easy_setopt(e, CURLOPT_PROXY, c->proxy_url);
        curl_easy_setopt(e, CURLOPT_NOPROXY, "");
    } else if (is_loopback(c->server)) {
        curl_easy_setopt(e, CURLOPT_PROXY, "");
    }
}

static struct vg_slice port_of(struct vg_slice host)
{
    for (size_t i = host.n; i-- > 0 && host.p[i] != ']';)
        if (host.p[i] == ':')
            return vg_slice(host.p + i + 1, host.n - i - 1);
    return VG_SLICE_LIT("443");
}

static int add_header(struct vg_exchange *x, const char *text)
{
    struct curl_slist *l = curl_slist_append(x->headers, text);
    if (!l)
        return -ENOMEM;
    x->headers = l;
    return 0;
}

static int add_pair(struct vg_exchange *x, const char *name, const char *value)
{
    VG_AUTO(buf) line = {0};
    if (!value)
        return 0;
    int r = vg_buf_printf(&line, "%s: %s", name, value);
    if (r == 0)
        r = vg_buf_append_byte(&line, 0);
    return r < 0 ? r : add_header(x, line.p);
}

/* With tls-server-name the URL has that name, so that TLS asks for it and checks it, while the
 * connection goes to the server and the request names the server. */
static int set_url(struct vg_exchange *x)
{
    const struct vigil_config *c = x->c->config;
    VG_AUTO(buf) url = {0};
    if (!c->tls_server_name || !c->is_https) {
        int r = vg_buf_printf(&url, "%s%s", c->server, x->opts.path);
        if (r == 0)
            r = vg_buf_append_byte(&url, 0);
        return r < 0 || curl_easy_setopt(x->easy, CURLOPT_URL, url.p) != CURLE_OK ? -ENOMEM : 0;
    }
    const char *rest = NULL;
    struct vg_slice host = authority(c->server, &rest), port = port_of(host);
    VG_AUTO(buf) to = {0};
    VG_AUTO(buf) name = {0};
    bool has_port = port.p > host.p && port.p < host.p + host.n;
    int r = vg_buf_printf(&url, "https://%s:%.*s%s%s", c->tls_server_name, VG_SLICE_ARG(port), rest,
                          x->opts.path);
    if (r == 0)
        r = vg_buf_append_byte(&url, 0);
    if (r == 0)
        r = vg_buf_printf(&to, "::%.*s%s", VG_SLICE_ARG(host), has_port ? "" : ":443");
    if (r == 0)
        r = vg_buf_append_byte(&to, 0);
    if (r == 0)
        r = vg_buf_append_slice(&name, host);
    if (r == 0)
        r = vg_buf_append_byte(&name, 0);
    if (r == 0)
        r = add_pair(x, "Host", name.p);
    if (r < 0)
        return r;
    struct curl_slist *list = curl_slist_append(NULL, to.p);
    if (!list || curl_easy_setopt(x->easy, CURLOPT_URL, url.p) != CURLE_OK) {
        curl_slist_free_all(list);
        return -ENOMEM;
    }
    curl_easy_setopt(x->easy, CURLOPT_CONNECT_TO, list);
    x->connect_to = list;
    return 0;
}

static int add_impersonation(struct vg_exchange *x)
{
    const struct vigil_config *c = x->c->config;
    int r = add_pair(x, "Impersonate-User", c->as_user);
    if (r == 0)
        r = add_pair(x, "Impersonate-Uid", c->as_uid);
    for (size_t i = 0; r == 0 && i < c->n_as_groups; i++)
        r = add_pair(x, "Impersonate-Group", c->as_groups[i]);
    for (size_t i = 0; r == 0 && i < c->n_as_extra; i++) {
        VG_AUTO(buf) name = {0};
        r = vg_buf_printf(&name, "Impersonate-Extra-");
        if (r == 0)
            r = vg_path_escape(&name, vg_slice_str(c->as_extra[i].name));
        if (r == 0)
            r = vg_buf_append_byte(&name, 0);
        if (r == 0)
            r = add_pair(x, name.p, c->as_extra[i].value);
    }
    return r;
}

static int set_headers(struct vg_exchange *x)
{
    VG_AUTO(buf) auth = {0};
    int r = vg_creds_header(&x->c->creds, &auth);
    if (r == 0 && auth.n)
        r = add_header(x, auth.p);
    if (r == 0)
        r = add_pair(x, "Accept", x->opts.accept);
    if (r == 0)
        r = add_pair(x, "Content-Type", x->opts.content_type);
    if (r == 0)
        r = add_header(x, "Expect:"); /* no asking before a body is sent */
    if (r == 0)
        r = add_impersonation(x);
    if (r == 0)
        curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
    return r;
}

static CURLcode set_method(struct vg_exchange *x)
{
    CURL *e = x->easy;
    if (strcmp(x->opts.method, "GET") == 0)
        return CURLE_OK;
    if (strcmp(x->opts.method, "HEAD") == 0)
        return curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    if (x->opts.body.n || strcmp(x->opts.method, "DELETE") != 0) {
        x->body_at = 0;
        curl_easy_setopt(e, CURLOPT_POST, 1L);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->opts.body.n);
        curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(e, CURLOPT_READDATA, x);
        curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, on_seek);
    }
    return curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, x->opts.method);
}

/* Does a connection live that is not to be used again? */
static bool has_distrusted(const struct vigil_client *c)
{
    VG_LIST_FOREACH (l, &c->exchanges) {
        const struct vg_exchange *x = VG_CONTAINER_OF(l, struct vg_exchange, link);
        if (x->easy && x->epoch != c->epoch)
            return true;
    }
    return false;
}

int vg_exchange_open(struct vg_exchange *x)
{
    CURL *e = x->easy = curl_easy_init();
    if (!e)
        return -ENOMEM;
    const struct vigil_config *config = x->c->config;
    set_connection(e, x->c->config->is_https);
    set_proxy(e, config);
    if (has_distrusted(x->c))
        curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
    x->n_sent = 0;
    x->stream = x->port = 0;
    x->is_not_processed = false;
    if (config->is_https) { /* HTTP/2 */
        curl_easy_setopt(e, CURLOPT_VERBOSE, 1L);
        curl_easy_setopt(e, CURLOPT_DEBUGFUNCTION, on_log);
        curl_easy_setopt(e, CURLOPT_DEBUGDATA, x);
    }
    if (strcmp(x->opts.method, "GET") != 0) {
        curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_send);
        curl_easy_setopt(e, CURLOPT_PREREQDATA, x);
    }
    curl_easy_setopt(e, CURLOPT_PRIVATE, x);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
    if (x->opts.on_open) {
        curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_head);
        curl_easy_setopt(e, CURLOPT_HEADERDATA, x);
    }
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->curl_error);
    x->curl_error[0] = 0;
    /* On one machine copying is cheaper than packing and unpacking. */
    if (!config->no_compression && !x->opts.is_watch && !is_loopback(config->server))
        curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
    if (curl_easy_setopt(e, CURLOPT_USERAGENT, x->c->user_agent) != CURLE_OK ||
        set_tls(e, config, &x->c->creds) != CURLE_OK || set_method(x) != CURLE_OK ||
        set_url(x) < 0 || set_headers(x) < 0)
        return -ENOMEM;
    return 0;
}

void vg_exchange_close(struct vg_exchange *x)
{
    if (x->easy) {
        if (x->state == VG_EXCHANGE_ACTIVE)
            vg_mux_remove(x->c->mux, x->easy);
        curl_easy_cleanup(x->easy);
        x->easy = NULL;
    }
    curl_slist_free_all(x->headers);
    curl_slist_free_all(x->connect_to);
    x->headers = x->connect_to = NULL;
}

/* ---- failures ---- */

static bool is_broken(CURLcode result)
{
    switch ((int)result) {
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_ABORTED_BY_CALLBACK: /* on_send: the connection died before an answer */
        return true;
    default:
        return false;
    }
}

/* No connection came about, so that nothing was asked. */
static bool is_unreached(CURLcode result)
{
    switch ((int)result) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PROXY:
        return true;
    default:
        return false;
    }
}

static const char *advice(CURLcode result)
{
    switch ((int)result) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return "its name is not known; check `server` in the kubeconfig";
    case CURLE_COULDNT_RESOLVE_PROXY:
        return "its proxy's name is not known; check proxy-url or the proxy variables";
    case CURLE_COULDNT_CONNECT:
        return "nothing can be reached there; does the server run, and is the address right?";
    case CURLE_PEER_FAILED_VERIFICATION:
        return "its certificate is not trusted; check certificate-authority and tls-server-name";
    case CURLE_SSL_CERTPROBLEM:
        return "the client certificate or its key cannot be used";
    case CURLE_SSL_CACERT_BADFILE:
        return "the certificate authority cannot be used; it must be PEM";
    default:
        return curl_easy_strerror(result);
    }
}

void vg_exchange_explain(struct vg_exchange *x, CURLcode result, struct vg_exchange_end *end)
{
    end->is_unreached = is_unreached(result);
    end->is_lost = is_broken(result);
    int code = result == CURLE_OPERATION_TIMEDOUT ? VIGIL_E_TIMEOUT
               : result == CURLE_OUT_OF_MEMORY    ? VIGIL_E_MEMORY
                                                  : VIGIL_E_NETWORK;
    vg_error_set(&end->err, code, "%s: %s (%s)", x->c->config->server, advice(result),
                 x->curl_error[0] ? x->curl_error : curl_easy_strerror(result));
}
