/* place_testing.h - a scripted server and a client of it; on the real clock, or on a fake one with
 * the test turning the client's loop. */
#ifndef VG_CLIENT_TRANSPORT_PLACE_TESTING_H
#define VG_CLIENT_TRANSPORT_PLACE_TESTING_H

#include "script_server_testing.h"

#include "client_int.h"

#define OBJECT                                                                                     \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"d\","    \
    "\"resourceVersion\":\"5\"}}"
#define STATUS(code, reason)                                                                       \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"says why\",\"reason\":\"" reason    \
    "\",\"code\":" #code "}"

struct place {
    struct script_server *server;
    struct vigil_client *client;
    struct vigil_config_opts config;
    struct vigil_client_opts opts;
    char url[64];
};

static inline void place_init(struct place *p, const struct step *steps, unsigned n)
{
    *p = (struct place){.config.size = sizeof(p->config), .opts.size = sizeof(p->opts)};
    p->server = script_start(steps, n);
    snprintf(p->url, sizeof(p->url), "http://127.0.0.1:%d", p->server->port);
    p->config.server = p->url;
    p->opts.qps = -1;
}

static inline void place_start(struct place *p)
{
    struct vigil_config *config = NULL;
    assert_int_equal(vigil_config_new(&p->config, &config, NULL), 0);
    assert_int_equal(vigil_client_new(config, &p->opts, &p->client, NULL), 0);
    vigil_config_free(config);
}

static inline void place_done(struct place *p)
{
    vigil_client_free(p->client);
    script_stop(p->server);
}

#define PLACE(p, ...)                                                                              \
    struct place p;                                                                                \
    const struct step p##_steps[] = {__VA_ARGS__};                                                 \
    place_init(&p, p##_steps, VG_ARRAY_LEN(p##_steps))

static inline bool has_header(struct place *p, unsigned i, const char *line)
{
    pthread_mutex_lock(&p->server->mu);
    bool has = i < p->server->n_asked && strcasestr(p->server->heads[i], line);
    pthread_mutex_unlock(&p->server->mu);
    return has;
}

/* ---- on a fake clock ---- */

struct answer {
    bool is_done;
    struct vigil_error err;
    char body[256];
};

static inline void on_answer(void *arg, const struct vigil_error *err, struct vigil_text body)
{
    struct answer *a = arg;
    a->is_done = true;
    a->err = *err;
    snprintf(a->body, sizeof(a->body), "%.*s", VIGIL_TEXT_ARG(body));
}

struct fake_place {
    struct place p;
    struct vg_fake_clock clock;
};

static inline void fake_start(struct fake_place *f)
{
    struct vigil_config *config = NULL;
    vg_fake_clock_init(&f->clock);
    f->p.opts.mode = VIGIL_OWN_LOOP;
    assert_int_equal(vigil_config_new(&f->p.config, &config, NULL), 0);
    assert_int_equal(vg_client_new(config, &f->p.opts, &f->clock.clock, &f->p.client, NULL), 0);
    vigil_config_free(config);
}

static inline void fake_done(struct fake_place *f)
{
    place_done(&f->p);
    vg_fake_clock_done(&f->clock);
}

static inline void ask(struct vigil_client *c, const char *method, struct answer *a)
{
    struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
    *a = (struct answer){0};
    o.method = method;
    o.path = "/x";
    o.body = vigil_text(strcmp(method, "POST") == 0 ? "{}" : "");
    o.done = on_answer;
    o.arg = a;
    assert_int_equal(vigil_request(c, &o, NULL, NULL), 0);
}

static inline void step(struct fake_place *f, uint64_t drift_ns)
{
    vigil_client_step(f->p.client);
    struct pollfd p = {.fd = vigil_client_fd(f->p.client), .events = POLLIN};
    poll(&p, 1, 1);
    if (drift_ns)
        vg_fake_clock_advance(&f->clock, drift_ns);
}

/* Steps until it is answered, the clock moving by 10 ms each time; how far it moved. */
static inline uint64_t settle(struct fake_place *f, const struct answer *a)
{
    uint64_t start = vg_clock_mono_ns(&f->clock.clock);
    for (int i = 0; i < 30000 && !a->is_done; i++)
        step(f, 10 * VG_NS_PER_MS);
    assert_true(a->is_done);
    return vg_clock_mono_ns(&f->clock.clock) - start;
}

#endif
