/* pod_probes.c - probes of containers, and what happens at their start and end. A
 * stopSignal is dropped before (pod_prepare.c). */
#include <inttypes.h>

#include "pod_int.h"

static void check_http(struct vg_check *c, const struct vg_at *at)
{
    static const char *const schemes[] = {"HTTP", "HTTPS", NULL};
    struct vg_at path = vg_at(at, "path"), port = vg_at(at, "port"), scheme = vg_at(at, "scheme");
    struct vg_at headers = vg_at(at, "httpHeaders");
    (void)vg_check_given(c, &path);
    (void)vg_check_port_or_name(c, &port);
    (void)vg_check_one_of(c, &scheme, schemes);
    VG_CHECK_EACH (c, h, &headers) {
        struct vg_slice name = vg_json_text(vg_json_get_str(h.v, "name"));
        bool is_plain = name.n > 0;
        for (size_t i = 0; i < name.n; i++) {
            char ch = name.p[i], low = (char)(ch | 32);
            is_plain =
                is_plain && ((low >= 'a' && low <= 'z') || (ch >= '0' && ch <= '9') || ch == '-');
        }
        if (!is_plain)
            vg_bad_value(c, &headers, vg_json_quoted(c, name),
                         "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
                         "'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')");
    }
}

static void check_exec(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at command = vg_at(at, "command");
    (void)vg_check_given(c, &command);
}

static void check_tcp(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at port = vg_at(at, "port");
    (void)vg_check_port_or_name(c, &port);
}

static void check_sleep(struct vg_pod *p, const struct vg_at *at)
{
    struct vg_at grace = vg_at(p->spec, "terminationGracePeriodSeconds");
    struct vg_at seconds = vg_at(at, "seconds");
    struct vg_at shown = *at; /* the seconds are blamed on sleep itself */
    static const struct vg_json zero = {.type = VG_JSON_NUMBER, .n = 1, .text = "0"};
    if (!vg_at_is_set(&grace) ||
        (vg_at_int(&seconds) >= 0 && vg_at_int(&seconds) <= vg_at_int(&grace)))
        return;
    shown.v = seconds.v ? seconds.v : &zero;
    vg_bad_int(p->c, &shown,
               "must be non-negative and less than terminationGracePeriodSeconds (%" PRId64 ")",
               vg_at_int(&grace));
}

/* One of several ways to ask or tell a container something. */
static void check_handler(struct vg_pod *p, const struct vg_at *at)
{
    static const char *const kinds[] = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"};
    bool has_one = false;
    for (size_t i = 0; i < VG_ARRAY_LEN(kinds); i++) {
        struct vg_at handler = vg_at(at, kinds[i]);
        if (!vg_at_is_set(&handler))
            continue;
        if (has_one) {
            vg_forbidden(p->c, &handler, "may not specify more than 1 handler type");
            continue;
        }
        has_one = true;
        if (i == 0)
            check_exec(p->c, &handler);
        else if (i == 1)
            check_http(p->c, &handler);
        else if (i < 4)
            check_tcp(p->c, &handler);
        else
            check_sleep(p, &handler);
    }
    if (!has_one)
        vg_required(p->c, at, "must specify a handler type");
}

static void check_probe(struct vg_pod *p, const struct vg_at *at, bool is_readiness)
{
    static const char *const counts[] = {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                         "successThreshold", "failureThreshold"};
    struct vg_at grace = vg_at(at, "terminationGracePeriodSeconds");
    struct vg_at success = vg_at(at, "successThreshold");
    if (!vg_at_is_set(at))
        return;
    check_handler(p, at);
    for (size_t i = 0; i < VG_ARRAY_LEN(counts); i++) {
        struct vg_at count = vg_at(at, counts[i]);
        (void)vg_check_not_negative(p->c, &count);
    }
    if (vg_at_is_set(&grace) && vg_at_int(&grace) <= 0)
        vg_bad_int(p->c, &grace, "must be greater than 0");
    if (is_readiness && vg_at_is_set(&grace))
        vg_bad_int(p->c, &grace, "must not be set for readinessProbes");
    if (!is_readiness && vg_at_int(&success) != 1)
        vg_bad_int(p->c, &success, "must be 1");
}

void vg_pod_check_probes(struct vg_pod *p, const struct vg_at *container)
{
    struct vg_at lifecycle = vg_at(container, "lifecycle");
    struct vg_at start = vg_at(&lifecycle, "postStart"), stop = vg_at(&lifecycle, "preStop");
    struct vg_at live = vg_at(container, "livenessProbe");
    struct vg_at ready = vg_at(container, "readinessProbe");
    struct vg_at startup = vg_at(container, "startupProbe");
    if (vg_at_is_set(&start))
        check_handler(p, &start);
    if (vg_at_is_set(&stop))
        check_handler(p, &stop);
    check_probe(p, &live, false);
    check_probe(p, &ready, true);
    check_probe(p, &startup, false);
}
