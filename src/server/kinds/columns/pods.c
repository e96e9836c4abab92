/* pods.c - READY, STATUS and RESTARTS of pods: one word for what the kubelet says at length.
 * The rules are kubectl's of old, in their order: the pod's own reason; a gate; the first init
 * container that is not done; else the containers, from the last to the first; a deletion. */
#include "cell.h"

/* A reason is prefix, text and up to two numbers: "Init:" "Error", "Init:" 1/3, "ExitCode:" 2. */
struct reason {
    const char *prefix;
    struct vg_slice text;
    int64_t n, of;
    uint8_t n_numbers;
};

struct look {
    int64_t ready, total, restarts;
    int64_t last_restart_ms; /* 0: none is known */
    struct reason reason;
};

static struct reason plain(struct vg_slice text)
{
    return (struct reason){.prefix = "", .text = text};
}

static struct reason numbered(const char *prefix, int64_t n)
{
    return (struct reason){.prefix = prefix, .text = {"", 0}, .n = n, .n_numbers = 1};
}

static bool is_true(const struct vg_json *v, const char *dotted)
{
    return vg_json_is_true(vg_cell_at(v, dotted));
}

/* ---- init containers ---- */

/* One that runs beside the others ("sidecar"), by its name. */
static bool is_restartable(const struct vg_json *pod, struct vg_slice name)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(pod, "spec.initContainers", &n);
    for (size_t i = VG_MIN(n, VG_CELL_LOOK_MAX); i > 0; i--)
        if (vg_slice_eq(vg_cell_text(&items[i - 1], "name"), name))
            return vg_cell_is(&items[i - 1], "restartPolicy", "Always");
    return false;
}

static void count_restarts(const struct vg_json *status, int64_t *restarts, int64_t *last_ms)
{
    int64_t ms;
    *restarts += vg_cell_int(status, "restartCount");
    if (vg_cell_time(status, "lastState.terminated.finishedAt", &ms) && ms > *last_ms)
        *last_ms = ms;
}

static struct reason init_failed(const struct vg_json *terminated)
{
    struct vg_slice why = vg_cell_text(terminated, "reason");
    int64_t signal = vg_cell_int(terminated, "signal");
    if (why.n)
        return (struct reason){.prefix = "Init:", .text = why};
    return signal ? numbered("Init:Signal:", signal)
                  : numbered("Init:ExitCode:", vg_cell_int(terminated, "exitCode"));
}

/* False: it is through, or runs beside the others. */
static bool is_initializing(const struct vg_json *pod, const struct vg_json *status, size_t index,
                            bool restartable, struct look *l)
{
    const struct vg_json *terminated = vg_cell_at(status, "state.terminated");
    struct vg_slice waits = vg_cell_text(status, "state.waiting.reason");
    size_t n_init;
    if (terminated && vg_cell_int(terminated, "exitCode") == 0)
        return false;
    if (restartable && is_true(status, "started")) {
        l->ready += is_true(status, "ready");
        return false;
    }
    (void)vg_cell_items(pod, "spec.initContainers", &n_init);
    if (terminated)
        l->reason = init_failed(terminated);
    else if (waits.n && !vg_slice_eq(waits, VG_SLICE_LIT("PodInitializing")))
        l->reason = (struct reason){.prefix = "Init:", .text = waits};
    else
        l->reason = (struct reason){.prefix = "Init:",
                                    .text = {"", 0},
                                    .n = (int64_t)index,
                                    .of = (int64_t)n_init,
                                    .n_numbers = 2};
    return true;
}

/* What those that run beside the others have restarted is told of too once all are initialized. */
static bool look_at_init(const struct vg_json *pod, struct look *l, struct look *beside)
{
    size_t n, i;
    const struct vg_json *items = vg_cell_items(pod, "status.initContainerStatuses", &n);
    for (i = 0; i < n; i++) {
        bool restartable = is_restartable(pod, vg_cell_text(&items[i], "name"));
        count_restarts(&items[i], &l->restarts, &l->last_restart_ms);
        if (restartable)
            count_restarts(&items[i], &beside->restarts, &beside->last_restart_ms);
        if (is_initializing(pod, &items[i], i, restartable, l))
            return true;
    }
    return false;
}

/* ---- containers ---- */

static struct reason ended(const struct vg_json *terminated)
{
    struct vg_slice why = vg_cell_text(terminated, "reason");
    int64_t signal = vg_cell_int(terminated, "signal");
    if (why.n)
        return plain(why);
    return signal ? numbered("Signal:", signal)
                  : numbered("ExitCode:", vg_cell_int(terminated, "exitCode"));
}

static bool is_completed(const struct reason *r)
{
    return r->n_numbers == 0 && !*r->prefix && vg_slice_eq(r->text, VG_SLICE_LIT("Completed"));
}

static bool has_ready_condition(const struct vg_json *pod)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(pod, "status.conditions", &n);
    for (size_t i = 0; i < n; i++)
        if (vg_cell_is(&items[i], "type", "Ready") && vg_cell_is(&items[i], "status", "True"))
            return true;
    return false;
}

static void look_at_containers(const struct vg_json *pod, struct look *l)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(pod, "status.containerStatuses", &n);
    struct reason error = plain(vg_slice("", 0));
    bool has_running = false, has_error = false;
    while (n-- > 0) {
        const struct vg_json *status = &items[n];
        const struct vg_json *terminated = vg_cell_at(status, "state.terminated");
        struct vg_slice waits = vg_cell_text(status, "state.waiting.reason");
        count_restarts(status, &l->restarts, &l->last_restart_ms);
        if (waits.n) {
            l->reason = plain(waits);
        } else if (terminated) {
            l->reason = ended(terminated);
            if (vg_cell_int(terminated, "exitCode") != 0) {
                error = l->reason;
                has_error = true;
            }
        } else if (is_true(status, "ready") && vg_cell_is_set(status, "state.running")) {
            has_running = true;
            l->ready++;
        }
    }
    if (!is_completed(&l->reason))
        return;
    if (has_running && has_ready_condition(pod))
        l->reason = plain(VG_SLICE_LIT("Running"));
    else if (has_error)
        l->reason = error;
    else if (has_running)
        l->reason = plain(VG_SLICE_LIT("NotReady"));
}

/* ---- the pod ---- */

static void count_containers(const struct vg_json *pod, struct look *l)
{
    size_t n;
    (void)vg_cell_items(pod, "spec.containers", &n);
    l->total = (int64_t)n;
    const struct vg_json *items = vg_cell_items(pod, "spec.initContainers", &n);
    for (size_t i = 0; i < n; i++)
        l->total += vg_cell_is(&items[i], "restartPolicy", "Always");
}

static void begin(const struct vg_json *pod, struct look *l)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(pod, "status.conditions", &n);
    struct vg_slice own = vg_cell_text(pod, "status.reason");
    l->reason = plain(own.n ? own : vg_cell_text(pod, "status.phase"));
    for (size_t i = 0; i < n; i++)
        if (vg_cell_is(&items[i], "type", "PodScheduled") &&
            vg_cell_is(&items[i], "reason", "SchedulingGated"))
            l->reason = plain(VG_SLICE_LIT("SchedulingGated"));
}

static void look_at(const struct vg_json *pod, struct look *l)
{
    struct look beside = {.restarts = 0};
    *l = (struct look){.restarts = 0};
    begin(pod, l);
    count_containers(pod, l);
    bool is_initial = look_at_init(pod, l, &beside);
    const struct vg_json *initialized = vg_cell_condition(pod, "Initialized");
    if (!is_initial || (initialized && vg_cell_is(initialized, "status", "True"))) {
        l->restarts = beside.restarts;
        l->last_restart_ms = beside.last_restart_ms;
        look_at_containers(pod, l);
    }
    if (!vg_cell_is_set(pod, "metadata.deletionTimestamp"))
        return;
    if (vg_cell_is(pod, "status.reason", "NodeLost"))
        l->reason = plain(VG_SLICE_LIT("Unknown"));
    else if (!vg_cell_is(pod, "status.phase", "Failed") &&
             !vg_cell_is(pod, "status.phase", "Succeeded"))
        l->reason = plain(VG_SLICE_LIT("Terminating"));
}

void vg_cell_pod_ready(struct vg_cell *c)
{
    struct look l;
    look_at(c->v, &l);
    vg_cell_printf(c, "%lld/%lld", (long long)l.ready, (long long)l.total);
}

void vg_cell_pod_status(struct vg_cell *c)
{
    struct look l;
    look_at(c->v, &l);
    vg_cell_puts(c, l.reason.prefix);
    vg_cell_put(c, l.reason.text);
    if (l.reason.n_numbers)
        vg_cell_printf(c, "%lld", (long long)l.reason.n);
    if (l.reason.n_numbers == 2)
        vg_cell_printf(c, "/%lld", (long long)l.reason.of);
}

void vg_cell_pod_restarts(struct vg_cell *c)
{
    struct look l;
    look_at(c->v, &l);
    vg_cell_printf(c, "%lld", (long long)l.restarts);
    if (l.restarts && l.last_restart_ms) {
        vg_cell_puts(c, " (");
        vg_cell_put_age(c, l.last_restart_ms);
        vg_cell_puts(c, " ago)");
    }
}

void vg_cell_pod_gates(struct vg_cell *c)
{
    size_t n, n_true = 0;
    const struct vg_json *gates = vg_cell_items(c->v, "spec.readinessGates", &n);
    for (size_t i = 0; i < n; i++) {
        struct vg_slice type = vg_cell_text(&gates[i], "conditionType");
        size_t n_conditions;
        const struct vg_json *have = vg_cell_items(c->v, "status.conditions", &n_conditions);
        for (size_t k = 0; k < VG_MIN(n_conditions, VG_CELL_LOOK_MAX); k++) {
            if (!vg_slice_eq(vg_cell_text(&have[k], "type"), type))
                continue;
            n_true += vg_cell_is(&have[k], "status", "True");
            break;
        }
    }
    if (n)
        vg_cell_printf(c, "%zu/%zu", n_true, n);
    else
        vg_cell_puts(c, "<none>");
}
