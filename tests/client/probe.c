/* probe.c <kubeconfig>, or <directory> of a service account - a client that does what it is told,
 * one command per line of its input, and prints what it sees; way.py talks to it. Its clock is the
 * real one until it is told to jump. get <path>    "got <body>" or "failed <http> <code>:
 * <message>" follow        an informer on all configmaps of "default": "synced <n>", "+name",
 * "~name", "-name" jump <s>      the clock goes forward; "jumped" */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/informer/informer_int.h"
#include "client/transport/config_int.h"

static struct vg_fake_clock now;
static struct vigil_client *client;
static struct vigil_informer *informer;

/* ---- what it sees ---- */

static void on_body(void *arg, const struct vigil_error *err, struct vigil_text body)
{
    (void)arg;
    char line[16384];
    int n = snprintf(line, sizeof(line), "%.*s", VIGIL_TEXT_ARG(body));
    for (int i = 0; i < n && line[i]; i++)
        line[i] = line[i] == '\n' ? ' ' : line[i];
    if (err->code < 0)
        printf("failed %d %s: %s\n", err->http, vigil_code_text(err->code), err->message);
    else
        printf("got %s\n", line);
}

static void say(char what, const struct vigil_object *o)
{
    printf("%c%.*s\n", what, VIGIL_TEXT_ARG(vigil_object_name(o)));
}
static void on_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    (void)arg;
    (void)is_initial;
    say('+', o);
}
static void on_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    (void)arg;
    (void)before;
    say('~', o);
}
static void on_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    (void)arg;
    (void)is_tombstone;
    say('-', o);
}
static void on_synced(void *arg)
{
    (void)arg;
    printf("synced %zu\n", vigil_store_count(vigil_informer_store(informer)));
}
static void on_error(void *arg, const struct vigil_error *err)
{
    (void)arg;
    printf("error %s\n", err->message);
}

/* ---- what it is told ---- */

static void must(int r, const char *what)
{
    if (r >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, vigil_code_text(r));
    exit(1);
}

static void follow(void)
{
    struct vigil_informer_opts o = VIGIL_INIT(struct vigil_informer_opts);
    struct vigil_handler h = {.size = sizeof(h),
                              .on_add = on_add,
                              .on_update = on_update,
                              .on_delete = on_delete,
                              .on_synced = on_synced};
    o.resource = &vigil_configmaps;
    o.ns = "default";
    o.on_error = on_error;
    must(vigil_informer_new(client, &o, &informer, NULL), "informer");
    must(vigil_informer_add_handler(informer, &h, NULL, NULL), "handler");
    must(vigil_informer_start(informer), "start");
}

static void obey(char *line)
{
    char *word = strchr(line, ' ');
    if (strncmp(line, "get ", 4) == 0) {
        struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
        o.path = word + 1;
        o.done = on_body;
        must(vigil_request(client, &o, NULL, NULL), "request");
    } else if (strcmp(line, "follow") == 0) {
        follow();
    } else if (strncmp(line, "jump ", 5) == 0) {
        vg_fake_clock_advance(&now, strtoull(word, NULL, 10) * VG_NS_PER_S);
        printf("jumped\n");
    } else {
        must(VIGIL_E_INVALID, line);
    }
}

/* Whole lines; false: the input has ended. */
static bool read_commands(void)
{
    static char buf[8192];
    static size_t n;
    ssize_t got = read(STDIN_FILENO, buf + n, sizeof(buf) - n);
    if (got <= 0)
        return false;
    n += (size_t)got;
    for (char *nl; (nl = memchr(buf, '\n', n));) {
        *nl = 0;
        obey(buf);
        /* What was asked for is under way before the next command, though both came at once: a jump
         * of the clock must find the request sent. */
        vigil_client_step(client);
        n -= (size_t)(nl + 1 - buf);
        memmove(buf, nl + 1, n);
    }
    return true;
}

/* ---- its life ---- */

static void live(void)
{
    struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                         {.fd = vigil_client_fd(client), .events = POLLIN}};
    uint64_t before = vg_clock_mono_ns(vg_clock_system());
    do {
        vigil_client_step(client);
        p[0].revents = 0;
        poll(p, 2, 5);
        uint64_t at = vg_clock_mono_ns(vg_clock_system());
        vg_fake_clock_advance(&now, at - before);
        before = at;
    } while (!p[0].revents || read_commands());
}

static int configure(const char *path, struct vigil_config **ret, struct vigil_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return vg_config_in_cluster(path, ret, err);
    return vigil_config_load(path, NULL, ret, err);
}

int main(int argc, char **argv)
{
    struct vigil_config *config;
    struct vigil_error err = {0};
    struct vigil_client_opts o = VIGIL_INIT(struct vigil_client_opts);
    o.mode = VIGIL_OWN_LOOP;
    const char *qps = getenv("PROBE_QPS");
    o.qps = qps ? strtod(qps, NULL) : -1;
    o.burst = 1;
    setlinebuf(stdout);
    vg_fake_clock_init(&now);
    vg_fake_clock_set_wall(&now, vg_clock_wall_ms(vg_clock_system()));
    if (argc != 2 || configure(argv[1], &config, &err) < 0 ||
        vg_client_new(config, &o, &now.clock, &client, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    vigil_config_free(config);
    live();
    vigil_informer_free(informer);
    vigil_client_free(client);
    vg_fake_clock_done(&now);
    return 0;
}
