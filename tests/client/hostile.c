/* hostile.c - see hostile.h. */
#include "hostile.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
#define CHUNKED                                                                                    \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
#define POD(name, rv)                                                                              \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name                       \
    "\",\"namespace\":\"d\",\"resourceVersion\":\"" rv "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define MARK(rv, more)                                                                             \
    EVENT("BOOKMARK",                                                                              \
          "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv        \
          "\"" more "}}")
#define END_MARK(rv) MARK(rv, ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}")
#define STATUS(code, reason)                                                                       \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"hostile\","   \
    "\"reason\":\"" reason "\",\"code\":" #code "}"
#define REFUSAL(code, headers)                                                                     \
    "HTTP/1.1 " #code " No\r\nConnection: close\r\n" headers "\r\n" STATUS(code, "Hostile")
#define LIST(meta, items)                                                                          \
    HEAD "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{" meta "},\"items\":[" items   \
         "]}"
#define ITEM(name, rv) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" rv "\"}}"

const struct hostile_way hostile_ways[] = {
    /* connections */
    {"resets every connection", ASK_ALL, "", END_REFUSE, 0, false},
    {"closes without a word", ASK_ALL, "", END_CLOSE, 0, false},
    {"resets without a word", ASK_ALL, "", END_RESET, 0, false},
    {"never answers", ASK_ALL, "", END_HOLD, 0, false},
    {"never answers watches", ASK_POD_WATCH, "", END_HOLD, 0, false},
    {"cuts everywhere", ASK_ALL, "", END_CUT, 0, false},
    {"cuts watches everywhere", ASK_POD_WATCH, "", END_CUT, 0, false},
    {"answers a byte now and then", ASK_ALL, HEAD "{\"kind\":\"PodList\",", END_SLOW, 0, false},
    /* heads */
    {"half a status line", ASK_ALL, "HTTP/1.1 2", END_CLOSE, 0, false},
    {"half a head, then silence", ASK_ALL, "HTTP/1.1 200 OK\r\nContent-", END_HOLD, 0, false},
    {"no HTTP at all", ASK_ALL, "SSH-2.0-OpenSSH_9.2\r\n", END_CLOSE, 0, false},
    {"binary garbage", ASK_ALL, "\x15\x03\x01\x00\x02\x02\x28\xff\xfe", END_CLOSE, 0, false},
    {"headers without end", ASK_ALL, "HTTP/1.1 200 OK\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
     END_FLOOD, 36, false},
    {"interim answers without end", ASK_ALL, "HTTP/1.1 100 Continue\r\n\r\n", END_FLOOD, 25, false},
    {"204 for everything", ASK_ALL, "HTTP/1.1 204 No Content\r\n\r\n", END_CLOSE, 0, false},
    {"a redirect to itself", ASK_ALL,
     "HTTP/1.1 302 Found\r\nLocation: /api/v1/pods\r\nContent-Length: 0\r\n\r\n", END_CLOSE, 0,
     false},
    {"a content length that is too long", ASK_ALL,
     "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"kind\":", END_CLOSE, 0, false},
    {"a content length that is absurd", ASK_ALL,
     "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}", END_CLOSE, 0, false},
    {"chunks of no length", ASK_ALL, CHUNKED "zz\r\n{}\r\n", END_CLOSE, 0, false},
    {"a chunk that is too long", ASK_ALL, CHUNKED "fffffffffffffffff\r\n{}", END_CLOSE, 0, false},
    {"a chunk that is cut", ASK_ALL, CHUNKED "100\r\n{\"kind\"", END_RESET, 0, false},
    {"gzip that is none", ASK_ALL, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nhello",
     END_CLOSE, 0, false},
    /* refusals */
    {"401 for ever", ASK_ALL, REFUSAL(401, ""), END_CLOSE, 0, false},
    {"403 for ever", ASK_ALL, REFUSAL(403, ""), END_CLOSE, 0, false},
    {"404 for ever", ASK_ALL, REFUSAL(404, ""), END_CLOSE, 0, false},
    {"410 for ever", ASK_ALL, REFUSAL(410, ""), END_CLOSE, 0, false},
    {"410 for lists", ASK_LIST | ASK_STREAM, REFUSAL(410, ""), END_CLOSE, 0, false},
    {"410 for watches", ASK_WATCH, REFUSAL(410, ""), END_CLOSE, 0, true},
    {"422 for states", ASK_STREAM, REFUSAL(422, ""), END_CLOSE, 0, true},
    {"429 for ever", ASK_ALL, REFUSAL(429, ""), END_CLOSE, 0, false},
    {"429 for watches", ASK_POD_WATCH, REFUSAL(429, ""), END_CLOSE, 0, true},
    {"429, at once again", ASK_ALL, REFUSAL(429, "Retry-After: 0\r\n"), END_CLOSE, 0, false},
    {"429, in a second", ASK_ALL, REFUSAL(429, "Retry-After: 1\r\n"), END_CLOSE, 0, false},
    {"429, tomorrow", ASK_ALL, REFUSAL(429, "Retry-After: 86400\r\n"), END_CLOSE, 0, false},
    {"429, never", ASK_ALL, REFUSAL(429, "Retry-After: -1\r\n"), END_CLOSE, 0, false},
    {"500 for ever", ASK_ALL, REFUSAL(500, ""), END_CLOSE, 0, false},
    {"503 with a page", ASK_ALL, "HTTP/1.1 503 No\r\nContent-Type: text/html\r\n\r\n<html>\xff\xfe",
     END_CLOSE, 0, false},
    {"504, too large a version", ASK_ALL,
     "HTTP/1.1 504 No\r\n\r\n{\"kind\":\"Status\",\"reason\":\"Timeout\",\"message\":"
     "\"Too large resource version\",\"code\":504}",
     END_CLOSE, 0, false},
    {"an error page without end", ASK_ALL, "HTTP/1.1 500 No\r\n\r\naaaaaaaaaaaaaaaa", END_FLOOD, 16,
     false},
    /* bodies of lists */
    {"a page of HTML", ASK_ALL,
     "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>login</html>\n", END_CLOSE, 0, false},
    {"nothing", ASK_ALL, HEAD, END_CLOSE, 0, false},
    {"null", ASK_ALL, HEAD "null\n", END_CLOSE, 0, false},
    {"a list of numbers", ASK_ALL, LIST("\"resourceVersion\":\"1\"", "1,2,3"), END_CLOSE, 0, false},
    {"items that are no list", ASK_ALL, HEAD "{\"kind\":\"PodList\",\"items\":{\"a\":1}}\n",
     END_CLOSE, 0, false},
    {"a version that is a number", ASK_LIST | ASK_STREAM, LIST("\"resourceVersion\":7", ""),
     END_CLOSE, 0, false},
    {"items without names", ASK_LIST | ASK_STREAM,
     LIST("\"resourceVersion\":\"1\"", "{\"metadata\":{}}"), END_CLOSE, 0, false},
    {"pages without end", ASK_LIST | ASK_STREAM,
     LIST("\"resourceVersion\":\"1\",\"continue\":\"again\"", ITEM("a", "1")), END_CLOSE, 0, false},
    {"duplicate items", ASK_LIST | ASK_STREAM,
     LIST("\"resourceVersion\":\"1\"", ITEM("a", "1") "," ITEM("a", "2") "," ITEM("a", "1")),
     END_CLOSE, 0, true},
    {"items without end", ASK_LIST,
     HEAD "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},"
          "\"items\":[" ITEM("a", "1") ",",
     END_FLOOD, 50, false},
    {"a string without end", ASK_LIST,
     HEAD "{\"kind\":\"PodList\",\"items\":[{\"a\":\"aaaaaaaaaaaaaaaa", END_FLOOD, 16, false},
    {"brackets without end", ASK_ALL, HEAD "{\"kind\":\"PodList\",\"items\":[[[[[[[[[[[[[[[[[[[[",
     END_FLOOD, 16, false},
    /* bodies of watches */
    {"one event and the end", ASK_WATCH, HEAD EVENT("MODIFIED", POD("a", "2")), END_CLOSE, 0,
     false},
    {"one event and a reset", ASK_POD_WATCH, HEAD EVENT("ADDED", POD("a", "2")), END_RESET, 0,
     false},
    {"half an event", ASK_POD_WATCH, HEAD "{\"type\":\"ADDED\",\"obj", END_CLOSE, 0, false},
    {"ERROR 410 on every watch", ASK_WATCH, HEAD EVENT("ERROR", STATUS(410, "Expired")), END_CLOSE,
     0, true},
    {"ERROR 410 on every state", ASK_POD_WATCH, HEAD EVENT("ERROR", STATUS(410, "Expired")),
     END_CLOSE, 0, true},
    {"ERROR 429 on every watch", ASK_POD_WATCH, HEAD EVENT("ERROR", STATUS(429, "TooMany")),
     END_CLOSE, 0, true},
    {"ERROR 500 on every watch", ASK_POD_WATCH, HEAD EVENT("ERROR", STATUS(500, "Internal")),
     END_CLOSE, 0, true},
    {"ERROR without a Status", ASK_POD_WATCH, HEAD EVENT("ERROR", "7"), END_CLOSE, 0, true},
    {"events of no type", ASK_POD_WATCH, HEAD EVENT("WEIRD", POD("a", "2")), END_CLOSE, 0, true},
    {"events of another kind", ASK_POD_WATCH,
     HEAD EVENT("ADDED", "{\"kind\":\"Table\",\"metadata\":{}}"), END_CLOSE, 0, false},
    {"events without names", ASK_POD_WATCH,
     HEAD EVENT("ADDED", "{\"kind\":\"Pod\",\"metadata\":{}}"), END_CLOSE, 0, true},
    {"objects that are texts", ASK_POD_WATCH, HEAD EVENT("ADDED", "\"pod\""), END_CLOSE, 0, true},
    {"bookmarks without versions", ASK_POD_WATCH, HEAD EVENT("BOOKMARK", "{\"kind\":\"Pod\"}"),
     END_CLOSE, 0, true},
    {"bookmarks of the future", ASK_WATCH, HEAD MARK("999999", ""), END_CLOSE, 0, true},
    {"versions that go backwards", ASK_WATCH,
     HEAD EVENT("MODIFIED", POD("a", "9")) EVENT("MODIFIED", POD("a", "3")) MARK("1", ""),
     END_CLOSE, 0, true},
    {"deletes what nobody knows", ASK_WATCH, HEAD EVENT("DELETED", POD("zzz", "9")), END_CLOSE, 0,
     true},
    {"a state without its end", ASK_STREAM, HEAD EVENT("ADDED", POD("a", "1")), END_CLOSE, 0, true},
    {"ignores sendInitialEvents", ASK_STREAM, HEAD EVENT("ADDED", POD("a", "1")) MARK("5", ""),
     END_HOLD, 0, false},
    {"a state, and garbage", ASK_STREAM, HEAD EVENT("ADDED", POD("a", "1")) END_MARK("1") "%%%\n",
     END_CLOSE, 0, true},
    {"a state, and silence", ASK_STREAM, HEAD EVENT("ADDED", POD("a", "1")) END_MARK("1"), END_HOLD,
     0, true},
    {"a frame without end", ASK_POD_WATCH,
     HEAD "{\"type\":\"ADDED\",\"object\":{\"a\":\"aaaaaaaaaaaaaaaa", END_FLOOD, 16, true},
    {"empty lines without end", ASK_POD_WATCH, HEAD "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", END_FLOOD,
     16, false},
    {"events without end", ASK_WATCH, HEAD EVENT("MODIFIED", POD("a", "2")), END_FLOOD, 131, true},
};
const size_t hostile_n_ways = sizeof(hostile_ways) / sizeof(hostile_ways[0]);

/* ---- the truth ---- */

unsigned hostile_truth(unsigned version, unsigned i)
{
    if (version == 100)
        return i < 6 ? 90 + i : 0;
    return i == 0 ? 0 : i == 1 ? 195 : i < 6 ? 90 + i : 190 + i; /* gone, changed, as it was, new */
}

static int put_pod(struct vg_buf *out, unsigned version, unsigned i)
{
    return vg_buf_printf(out,
                         "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p%u\","
                         "\"namespace\":\"d\",\"resourceVersion\":\"%u\"}}",
                         i, hostile_truth(version, i));
}

static int put_list(struct vg_buf *out, unsigned version)
{
    struct vg_buf body = {0};
    int r = vg_buf_printf(&body,
                          "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                          "\"resourceVersion\":\"%u\"},\"items\":[",
                          version);
    const char *comma = "";
    for (unsigned i = 0; i < HOSTILE_PODS; i++) {
        if (!hostile_truth(version, i))
            continue;
        r |= vg_buf_printf(&body, "%s", comma) | put_pod(&body, version, i);
        comma = ",";
    }
    r |= vg_buf_printf(&body, "]}");
    r |= vg_buf_printf(out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%.*s", body.n,
                       (int)body.n, body.p);
    vg_buf_done(&body);
    return r;
}

static int put_state(struct vg_buf *out, unsigned version)
{
    int r = vg_buf_printf(out, "%s", HEAD);
    for (unsigned i = 0; i < HOSTILE_PODS; i++) {
        if (!hostile_truth(version, i))
            continue;
        r |= vg_buf_printf(out, "{\"type\":\"ADDED\",\"object\":") | put_pod(out, version, i);
        r |= vg_buf_printf(out, "}\n");
    }
    return r | vg_buf_printf(out,
                             "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{"
                             "\"resourceVersion\":\"%u\",\"annotations\":{"
                             "\"k8s.io/initial-events-end\":\"true\"}}}}\n",
                             version);
}

/* A watch from another version than the present one has expired. */
static int put_watch(struct vg_buf *out, unsigned version, const char *head)
{
    char want[32];
    snprintf(want, sizeof(want), "resourceVersion=%u&", version);
    return vg_buf_printf(out, "%s%s", HEAD,
                         strstr(head, want) ? "\n" : EVENT("ERROR", STATUS(410, "Expired")));
}

static enum hostile_ask ask_of(const char *head)
{
    if (strncmp(head, "GET /api/v1/pods?", 17) != 0)
        return ASK_OTHER;
    bool is_watch = strstr(head, "watch=true");
    return strstr(head, "sendInitialEvents=true") ? ASK_STREAM : is_watch ? ASK_WATCH : ASK_LIST;
}

/* ---- connections ---- */

static void wait_gone(int fd)
{
    char c;
    while (recv(fd, &c, 1, 0) > 0)
        ;
}

/* True: the connection goes on. */
static bool serve_truth(struct hostile *s, int fd, const char *head, size_t limit)
{
    struct vg_buf out = {0};
    enum hostile_ask ask = ask_of(head);
    pthread_mutex_lock(&s->mu);
    unsigned version = s->version;
    pthread_mutex_unlock(&s->mu);
    int r = ask == ASK_LIST     ? put_list(&out, version)
            : ask == ASK_STREAM ? put_state(&out, version)
            : ask == ASK_WATCH
                ? put_watch(&out, version, head)
                : vg_buf_printf(&out, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
    bool is_whole = out.n <= limit;
    bool ok = r == 0 && script_write(fd, out.p, is_whole ? out.n : limit) && is_whole;
    vg_buf_done(&out);
    if (ok && (ask & ASK_POD_WATCH))
        wait_gone(fd);
    return ok && !(ask & ASK_POD_WATCH);
}

static void flood(int fd, const struct hostile_way *w, size_t n)
{
    struct vg_buf block = {0};
    int r = 0;
    while (r == 0 && block.n < 65536)
        r = vg_buf_append(&block, w->bytes + n - w->tail, w->tail);
    for (size_t sent = 0; r == 0 && sent < HOSTILE_FLOOD_MAX; sent += block.n)
        if (!script_write(fd, block.p, block.n))
            break;
    vg_buf_done(&block);
}

static void drip(struct hostile *s, int fd, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pthread_mutex_lock(&s->mu);
        bool is_over = s->is_healed || s->is_stopping;
        pthread_mutex_unlock(&s->mu);
        if (is_over || !script_write(fd, p + i, 1))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    wait_gone(fd);
}

static void reset_on_close(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
}

/* True: the connection goes on. */
static bool be_hostile(struct hostile *s, int fd, const char *head)
{
    const struct hostile_way *w = s->way;
    size_t n = strlen(w->bytes);
    if (strncmp(w->name, "binary", 6) == 0)
        n = 9;
    if (w->end == END_CUT) {
        pthread_mutex_lock(&s->mu);
        size_t limit = (size_t)s->n_cut++ * 13;
        pthread_mutex_unlock(&s->mu);
        return serve_truth(s, fd, head, limit);
    }
    if (w->end == END_SLOW) {
        drip(s, fd, w->bytes, n);
        return false;
    }
    if (!script_write(fd, w->bytes, n))
        return false;
    if (w->end == END_FLOOD)
        flood(fd, w, n);
    if (w->end == END_HOLD)
        wait_gone(fd);
    if (w->end == END_RESET)
        reset_on_close(fd);
    return false;
}

static bool serve(struct hostile *s, int fd, const char *head)
{
    pthread_mutex_lock(&s->mu);
    bool is_hostile = !s->is_healed && (s->way->asks & ask_of(head));
    s->n_asked++;
    pthread_mutex_unlock(&s->mu);
    return is_hostile ? be_hostile(s, fd, head) : serve_truth(s, fd, head, SIZE_MAX);
}

struct hostile_conn {
    struct hostile *s;
    int fd;
};

static void *conn_thread(void *arg)
{
    struct hostile_conn c = *(struct hostile_conn *)arg;
    free(arg);
    char *head = malloc(65536);
    pthread_mutex_lock(&c.s->mu);
    bool is_refused = !c.s->is_healed && c.s->way->end == END_REFUSE;
    c.s->n_asked += is_refused;
    pthread_mutex_unlock(&c.s->mu);
    if (is_refused)
        reset_on_close(c.fd);
    while (!is_refused && head && script_read(c.fd, head, 65536) && serve(c.s, c.fd, head))
        continue;
    free(head);
    pthread_mutex_lock(&c.s->mu);
    for (unsigned i = 0; i < c.s->n_conns; i++)
        if (c.s->conns[i] == c.fd)
            c.s->conns[i] = -1;
    close(c.fd);
    pthread_mutex_unlock(&c.s->mu);
    return NULL;
}

static void *accept_thread(void *arg)
{
    struct hostile *s = arg;
    for (int fd; (fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        struct hostile_conn *c = malloc(sizeof(*c));
        *c = (struct hostile_conn){s, fd};
        pthread_mutex_lock(&s->mu);
        bool ok = s->n_conns < HOSTILE_CONNS_MAX && !s->is_stopping;
        if (ok) {
            s->conns[s->n_conns] = fd;
            pthread_create(&s->threads[s->n_conns++], NULL, conn_thread, c);
        }
        pthread_mutex_unlock(&s->mu);
        if (!ok) {
            close(fd);
            free(c);
        }
    }
    return NULL;
}

void hostile_start(struct hostile *s, const struct hostile_way *way)
{
    *s = (struct hostile){.way = way, .version = 100};
    pthread_mutex_init(&s->mu, NULL);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(listen(s->fd, 256), 0);
    pthread_create(&s->thread, NULL, accept_thread, s);
}

static void cut_all_locked(struct hostile *s)
{
    for (unsigned i = 0; i < s->n_conns; i++)
        if (s->conns[i] >= 0)
            shutdown(s->conns[i], SHUT_RDWR);
}

void hostile_heal(struct hostile *s)
{
    pthread_mutex_lock(&s->mu);
    s->is_healed = true;
    s->version = 200;
    cut_all_locked(s);
    pthread_mutex_unlock(&s->mu);
}

void hostile_stop(struct hostile *s)
{
    pthread_mutex_lock(&s->mu);
    s->is_stopping = true;
    cut_all_locked(s);
    pthread_mutex_unlock(&s->mu);
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    for (unsigned i = 0; i < s->n_conns; i++)
        pthread_join(s->threads[i], NULL);
    close(s->fd);
    pthread_mutex_destroy(&s->mu);
}
