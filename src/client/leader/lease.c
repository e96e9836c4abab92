/* lease.c - the Lease object: what it says, and what we write. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "leader_int.h"
#include "json/write.h"

static uint64_t now_ns(const struct vigil_leader *l)
{
    return vg_clock_mono_ns(vg_loop_clock(l->loop));
}

/* Identities are host names and the like; a longer one is held by somebody who is not us. */
struct identity {
    char text[1024];
    bool is_empty;
};

static struct identity holder(const struct vigil_object *lease)
{
    struct identity who = {.text = ""};
    struct vigil_value v = vigil_get(lease, "spec.holderIdentity");
    who.is_empty = vigil_value_copy(v, who.text, sizeof(who.text)) <= 0;
    return who;
}

bool vg_lease_is_ours(const struct vigil_leader *l)
{
    return l->seen && vigil_text_is(vigil_text(holder(l->seen).text), l->opts.identity);
}

bool vg_lease_is_held(const struct vigil_leader *l)
{
    int64_t s = l->seen ? vigil_get_int(l->seen, "spec.leaseDurationSeconds", 0) : 0;
    if (s <= 0 || holder(l->seen).is_empty)
        return false;
    return now_ns(l) - l->seen_ns < (uint64_t)VG_MIN(s, INT32_MAX) * VG_NS_PER_S;
}

/* Tell who leads, when that is somebody new. */
static void tell_leader(struct vigil_leader *l)
{
    struct identity who = holder(l->seen);
    if (l->state >= VG_LEADER_RELEASING)
        return; /* on_stopped was the last word */
    if (who.is_empty || (l->told.n && strcmp(who.text, l->told.p) == 0))
        return;
    vg_buf_clear(&l->told);
    if (vg_buf_append(&l->told, who.text, strlen(who.text) + 1) < 0)
        vg_buf_clear(&l->told); /* then the next look tells */
    else if (l->opts.on_new_leader)
        l->opts.on_new_leader(l->opts.arg, l->told.p);
}

void vg_lease_see(struct vigil_leader *l, const struct vigil_object *take_o)
{
    struct vigil_value before = {0}, after = vigil_get(take_o, "spec");
    if (l->seen)
        before = vigil_get(l->seen, "spec");
    if (!l->seen || !vg_slice_eq(vg_slice_of(before.raw), vg_slice_of(after.raw)))
        l->seen_ns = now_ns(l);
    vigil_object_unref(l->seen);
    l->seen = take_o;
    tell_leader(l);
}

static void format_now(const struct vigil_leader *l, char *buf, size_t size)
{
    int64_t ms = vg_clock_wall_ms(vg_loop_clock(l->loop));
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buf + n, size - n, ".%03d000Z", (int)(ms % 1000));
}

static int write_head(const struct vigil_leader *l, const struct vigil_object *base,
                      struct vg_buf *out)
{
    if (base) { /* whoever wrote in between makes this fail */
        int r = vg_buf_printf(out, "{\"metadata\":{\"resourceVersion\":");
        r = r < 0 ? r : vg_json_write_string(out, vg_object_version(base), 0);
        return r < 0 ? r : vg_buf_printf(out, "},");
    }
    int r = vg_buf_printf(out, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                               "\"metadata\":{\"name\":");
    r = r < 0 ? r : vg_json_write_string(out, vg_slice_str(l->opts.name), 0);
    return r < 0 ? r : vg_buf_printf(out, "},");
}

int vg_lease_write(struct vigil_leader *l, const struct vigil_object *base, bool releases,
                   struct vg_buf *out)
{
    char now[48];
    bool renews = base && vg_lease_is_ours(l) && !releases;
    int64_t n = base ? vigil_get_int(base, "spec.leaseTransitions", 0) : 0;
    if (base && !vg_lease_is_ours(l))
        n++;
    uint64_t s = releases ? 1 : (l->opts.lease_ms + 999) / 1000;
    format_now(l, now, sizeof(now));
    int r = write_head(l, base, out);
    r = r < 0 ? r : vg_buf_printf(out, "\"spec\":{\"holderIdentity\":");
    r = r < 0 ? r : vg_json_write_string(out, vg_slice_str(releases ? "" : l->opts.identity), 0);
    r = r < 0 ? r
              : vg_buf_printf(out,
                              ",\"leaseDurationSeconds\":%llu,\"leaseTransitions\":%lld,"
                              "\"renewTime\":\"%s\"",
                              (unsigned long long)s, (long long)n, now);
    if (r == 0 && !renews)
        r = vg_buf_printf(out, ",\"acquireTime\":\"%s\"", now);
    return r < 0 ? r : vg_buf_printf(out, "}}");
}
