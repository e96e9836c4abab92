/* claims.c - see claims.h.
 *   B1 c->claims are the operations beside the object's own; made anew with each try.
 *   B2 what the store refused to us in this change is not asked for again: `refused`. */
#include "claims.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/kinds/rules/rules.h"
#include "stamp.h"
#include "status_int.h"
#include "json/write.h"

/* Of no kind, and of no other server: kube-apiserver keeps its ports in one object of its own. */
#define PORT_PREFIX "/registry/vigil/nodeports/"
/* Addresses at the start of a range are left for those who ask for one: a sixteenth of it, 16 to
 * 256, as in a stock cluster. */
#define STATIC_MIN 16u
#define STATIC_MAX 256u
/* By chance first, then one after the other. */
#define RANDOM_TRIES 16u
/* Addresses that are looked at before a range counts as full. */
#define SCAN_MAX 65536u

struct claims {
    struct vg_claims cl; /* first */
    struct vg_change *c;
    struct vg_claim_ranges *ranges;
};

static const struct vg_kind *address_kind(void)
{
    return vg_kind_find(VG_SLICE_LIT("networking.k8s.io"), VG_SLICE_LIT("v1"),
                        VG_SLICE_LIT("ipaddresses"));
}

static struct vg_rng *rng_of(const struct claims *b)
{
    return &b->c->call->loop->rng;
}

/* ---- operations ---- */

int vg_change_claim_op(struct vg_change *c, enum vg_op_type type, vg_rev expect,
                       struct vg_rec *take_rec)
{
    if (!c->claims)
        c->claims = vg_arena_array(&c->call->ask->arena, struct vg_op, VG_CHANGE_CLAIMS_MAX);
    if (!c->claims || c->n_claims == VG_CHANGE_CLAIMS_MAX) {
        vg_rec_unref(take_rec);
        return c->claims ? VIGIL_E_TOO_LARGE : -ENOMEM;
    }
    c->claims[c->n_claims++] = (struct vg_op){.type = type, .rec = take_rec, .expect = expect};
    return 0;
}

static int add_delete(struct vg_change *c, struct vg_slice key)
{
    struct vg_rec *rec = NULL;
    int r = vg_rec_new(VG_REC_DELETE, key, VG_SLICE_LIT(""), VG_SLICE_LIT(""), &rec);
    return r < 0 ? r : vg_change_claim_op(c, VG_OP_DELETE, VG_EXPECT_ANY, rec);
}

static bool is_refused(const struct vg_change *c, struct vg_slice key)
{
    for (const struct vg_claim_refusal *r = c->refused; r; r = r->next) {
        if (vg_slice_eq(r->key, key))
            return true;
    }
    return false;
}

/* Somebody in this very change has it. */
static bool is_claimed(const struct vg_change *c, struct vg_slice key)
{
    for (uint32_t i = 0; i < c->n_claims; i++) {
        if (c->claims[i].type == VG_OP_PUT && vg_slice_eq(vg_rec_key(c->claims[i].rec), key))
            return true;
    }
    return false;
}

void vg_change_claim_refused(struct vg_change *c, const struct vg_op *op)
{
    struct vg_arena *a = &c->call->ask->arena;
    struct vg_claim_refusal *r = vg_arena_new(a, struct vg_claim_refusal);
    if (!r || vg_arena_keep(a, vg_rec_key(op->rec), &r->key) < 0)
        return; /* it is tried again, and refused again */
    r->next = c->refused;
    c->refused = r;
}

/* ---- addresses ---- */

static void add_to(struct vg_ip *ip, uint64_t n)
{
    for (size_t i = 16; i-- > 0 && n;) {
        n += ip->b[i];
        ip->b[i] = (uint8_t)n;
        n >>= 8;
    }
}

/* Addresses of the range without its first, and without the last of IPv4, which is for all. */
static uint64_t range_size(const struct vg_cidr *n, bool is_v6)
{
    unsigned free_bits = (is_v6 ? 128 : 32) - n->bits;
    uint64_t size = free_bits >= 62 ? (uint64_t)1 << 62 : (uint64_t)1 << free_bits;
    uint64_t kept = is_v6 ? 1 : 2;
    return size > kept ? size - kept : 0;
}

struct vg_slice vg_claim_ip(const struct vg_claim_ranges *r, bool is_v6, uint64_t n,
                            char room[VG_IP_TEXT_MAX])
{
    struct vg_ip ip = vg_cidr_first(&r->ips[is_v6]);
    ip.is_v4 = !is_v6;
    add_to(&ip, n);
    return vg_ip_text(&ip, room);
}

static bool is_address_free(struct claims *b, struct vg_slice text)
{
    const struct vg_kind *kind = address_kind();
    struct vg_cache_snapshot snap;
    struct vg_obj_key key;
    if (vg_obj_key_make(vg_slice_str(kind->prefix), VG_SLICE_LIT(""), text, &key) < 0)
        return false;
    struct vg_slice k = vg_obj_key_slice(&key);
    if (is_refused(b->c, k) || is_claimed(b->c, k))
        return false;
    if (vg_cache_newest(b->c->call->loop->api->cacher, vg_kind_index(kind), &snap) < 0)
        return true; /* the store has the last word */
    bool is_free = !vg_root_get(snap.root, (struct vg_tree_key){.minor = k});
    vg_cache_snapshot_done(&snap);
    return is_free;
}

static int write_address(struct claims *b, bool is_v6, struct vg_slice text, struct vg_buf *out)
{
    struct vg_change *c = b->c;
    struct vg_slice created = {0}, uid = {0};
    struct vg_json_writer w;
    int r = vg_stamp_time(c, 0, &created);
    if (r == 0)
        r = vg_stamp_uid(c, &uid);
    if (r < 0)
        return r;
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "kind", VG_SLICE_LIT("IPAddress"));
    vg_json_put_member(&w, "apiVersion", VG_SLICE_LIT("networking.k8s.io/v1"));
    vg_json_put_key(&w, VG_SLICE_LIT("metadata"));
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "name", text);
    vg_json_put_member(&w, "uid", uid);
    vg_json_put_member(&w, "creationTimestamp", created);
    vg_json_put_key(&w, VG_SLICE_LIT("labels"));
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "ipaddress.kubernetes.io/ip-family",
                       is_v6 ? VG_SLICE_LIT("IPv6") : VG_SLICE_LIT("IPv4"));
    vg_json_put_member(&w, "ipaddress.kubernetes.io/managed-by",
                       VG_SLICE_LIT("ipallocator.k8s.io"));
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("spec"));
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("parentRef"));
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "resource", vg_slice_str(c->kind->resource));
    vg_json_put_member(&w, "namespace", c->ns);
    vg_json_put_member(&w, "name", c->name);
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

static int claim_address(struct claims *b, bool is_v6, struct vg_slice text)
{
    const struct vg_kind *kind = address_kind();
    VG_AUTO(buf) json = {0};
    VG_AUTO(obj_sealed) sealed;
    struct vg_obj_key key;
    struct vg_status why;
    struct vg_rec *rec = NULL;
    vg_obj_sealed_init(&sealed);
    int r = write_address(b, is_v6, text, &json);
    if (r == 0)
        r = vg_obj_seal_text(kind->fields, vg_buf_slice(&json), &b->c->scratch, &sealed, &why);
    if (r == 0)
        r = vg_obj_key_make(vg_slice_str(kind->prefix), VG_SLICE_LIT(""), text, &key);
    if (r == 0)
        r = vg_rec_new(VG_REC_PUT, vg_obj_key_slice(&key), vg_buf_slice(&sealed.header),
                       vg_buf_slice(&sealed.value), &rec);
    return r < 0 ? r : vg_change_claim_op(b->c, VG_OP_PUT, 0, rec);
}

/* The first free one of `n` from the offset `from` on, which wraps; as text in room. */
static bool scan(struct claims *b, bool is_v6, uint64_t low, uint64_t n, char room[VG_IP_TEXT_MAX],
                 struct vg_slice *ret)
{
    uint64_t start = n ? vg_rng_below(rng_of(b), n) : 0;
    for (uint64_t i = 0; i < VG_MIN(n, (uint64_t)SCAN_MAX); i++) {
        *ret = vg_claim_ip(b->ranges, is_v6, 1 + low + (start + i) % n, room);
        if (is_address_free(b, *ret))
            return true;
    }
    return false;
}

static bool choose_address(struct claims *b, bool is_v6, char room[VG_IP_TEXT_MAX],
                           struct vg_slice *ret)
{
    uint64_t n = range_size(&b->ranges->ips[is_v6], is_v6);
    uint64_t kept = VG_MIN(VG_MAX(n / 16, (uint64_t)STATIC_MIN), (uint64_t)STATIC_MAX);
    if (kept >= n)
        kept = 0;
    for (unsigned i = 0; i < RANDOM_TRIES && n > kept; i++) {
        *ret = vg_claim_ip(b->ranges, is_v6, 1 + kept + vg_rng_below(rng_of(b), n - kept), room);
        if (is_address_free(b, *ret))
            return true;
    }
    return scan(b, is_v6, kept, n - kept, room, ret) || scan(b, is_v6, 0, kept, room, ret);
}

static int take_ip(struct vg_claims *cl, bool is_v6, struct vg_slice wanted, struct vg_slice *ret)
{
    struct claims *b = VG_CONTAINER_OF(cl, struct claims, cl);
    char room[VG_IP_TEXT_MAX];
    struct vg_slice text;
    struct vg_ip ip;
    if (!b->ranges->has[is_v6])
        return VIGIL_E_UNSUPPORTED;
    if (wanted.n == 0) {
        if (!choose_address(b, is_v6, room, &text))
            return VIGIL_E_STORE_FULL;
    } else {
        if (!vg_ip_parse(wanted, &ip) || !vg_cidr_contains(&b->ranges->ips[is_v6], &ip))
            return VIGIL_E_NOT_FOUND;
        text = vg_ip_text(&ip, room);
        if (!is_address_free(b, text))
            return VIGIL_E_EXISTS;
    }
    int r = claim_address(b, is_v6, text);
    return r < 0 ? r : vg_arena_keep(cl->arena, text, ret);
}

static int give_ip(struct vg_claims *cl, struct vg_slice text)
{
    struct claims *b = VG_CONTAINER_OF(cl, struct claims, cl);
    const struct vg_kind *kind = address_kind();
    char room[VG_IP_TEXT_MAX];
    struct vg_obj_key key;
    struct vg_ip ip;
    if (!vg_ip_parse(text, &ip) || vg_obj_key_make(vg_slice_str(kind->prefix), VG_SLICE_LIT(""),
                                                   vg_ip_text(&ip, room), &key) < 0)
        return 0;
    return add_delete(b->c, vg_obj_key_slice(&key));
}

/* ---- ports ---- */

static struct vg_slice port_key(uint32_t port, char room[64])
{
    int n = snprintf(room, 64, PORT_PREFIX "%u", port);
    return vg_slice(room, (size_t)n);
}

static void hint_port(const struct claims *b, uint32_t port, bool is_taken)
{
    _Atomic uint64_t *word = &b->ranges->taken[port / 64];
    uint64_t bit = (uint64_t)1 << (port % 64);
    if (is_taken)
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

static bool looks_taken(const struct claims *b, uint32_t port)
{
    uint64_t word = atomic_load_explicit(&b->ranges->taken[port / 64], memory_order_relaxed);
    return word >> (port % 64) & 1;
}

/* trust: leave out those that were seen to be taken; they may have been given back elsewhere. */
static uint32_t choose_port(struct claims *b, bool trust)
{
    uint32_t first = b->ranges->port_first, n = b->ranges->port_last - first + 1u;
    uint32_t start = (uint32_t)vg_rng_below(rng_of(b), n);
    char room[64];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t port = first + (start + i) % n;
        if (trust && looks_taken(b, port))
            continue;
        struct vg_slice key = port_key(port, room);
        if (!is_refused(b->c, key) && !is_claimed(b->c, key))
            return port;
    }
    return 0;
}

static int claim_port(struct claims *b, uint32_t port)
{
    char room[64];
    struct vg_rec *rec = NULL;
    VG_AUTO(buf) who = {0};
    int r = vg_buf_printf(&who, "%.*s/%.*s", VG_SLICE_ARG(b->c->ns), VG_SLICE_ARG(b->c->name));
    if (r == 0)
        r = vg_rec_new(VG_REC_PUT, port_key(port, room), VG_SLICE_LIT(""), vg_buf_slice(&who),
                       &rec);
    return r < 0 ? r : vg_change_claim_op(b->c, VG_OP_PUT, 0, rec);
}

static int take_port(struct vg_claims *cl, uint32_t wanted, uint32_t *ret)
{
    struct claims *b = VG_CONTAINER_OF(cl, struct claims, cl);
    char room[64];
    uint32_t port = wanted;
    if (wanted && (wanted < b->ranges->port_first || wanted > b->ranges->port_last))
        return VIGIL_E_NOT_FOUND;
    if (wanted && is_refused(b->c, port_key(wanted, room)))
        return VIGIL_E_EXISTS;
    if (wanted && is_claimed(b->c, port_key(wanted, room)))
        return VIGIL_E_EXISTS;
    if (!wanted)
        port = choose_port(b, true);
    if (!port)
        port = choose_port(b, false);
    if (!port)
        return VIGIL_E_STORE_FULL;
    int r = claim_port(b, port);
    if (r < 0)
        return r;
    if (!b->c->is_dry_run)
        hint_port(b, port, true);
    *ret = port;
    return 0;
}

static int give_port(struct vg_claims *cl, uint32_t port)
{
    struct claims *b = VG_CONTAINER_OF(cl, struct claims, cl);
    char room[64];
    if (!b->c->is_dry_run)
        hint_port(b, port, false);
    return add_delete(b->c, port_key(port, room));
}

static const struct vg_claims_ops ops = {
    .take_ip = take_ip, .give_ip = give_ip, .take_port = take_port, .give_port = give_port};

/* ---- the change ---- */

static struct claims claims_of(struct vg_change *c)
{
    struct vg_claim_ranges *r = c->call->loop->api->ranges;
    return (struct claims){
        .cl = {.ops = &ops,
               .arena = &c->scratch,
               .has_v4 = r->has[0],
               .has_v6 = r->has[1],
               .prefers_v6 = r->prefers_v6,
               .ranges = {vg_slice_str(r->ip_texts[0]), vg_slice_str(r->ip_texts[1])},
               .ports = vg_slice_str(r->port_text)},
        .c = c,
        .ranges = r};
}

void vg_change_forget_claims(struct vg_change *c)
{
    for (uint32_t i = 0; i < c->n_claims; i++)
        vg_rec_unref(c->claims[i].rec);
    c->n_claims = 0;
}

enum vg_verdict vg_change_claim(struct vg_change *c, struct vg_json *root,
                                const struct vg_json *old)
{
    const struct vg_rules *rules = vg_rules_of(vg_kind_stored(c->kind));
    if (!rules || !rules->claim)
        return VG_CHANGE_PUT;
    struct vg_field_errors e = {.arena = &c->call->ask->arena};
    struct vg_check check = {.errors = &e, .arena = e.arena};
    struct claims b = claims_of(c);
    int r = rules->claim(&b.cl, &check, root, old);
    if (r < 0)
        return vg_change_refuse(c, r);
    if (e.n || e.failed)
        return vg_change_invalid(c, c->name, &e);
    if (!b.cl.failure.n)
        return VG_CHANGE_PUT;
    vg_status_internal(&c->call->ask->arena, &c->status, "%.*s", VG_SLICE_ARG(b.cl.failure));
    return VG_CHANGE_FAIL;
}

int vg_change_unclaim(struct vg_change *c)
{
    const struct vg_rules *rules = vg_rules_of(vg_kind_stored(c->kind));
    VG_AUTO(arena) arena = {0};
    struct vg_json *old;
    vg_change_forget_claims(c);
    if (!rules || !rules->claim || !c->cur || c->cur->header_len == 0)
        return 0;
    struct vg_json_opts opts = {.max_depth = VG_JSON_DEPTH_MAX};
    if (vg_json_parse(&arena, vg_rec_value(c->cur), &opts, &old, NULL) < 0)
        return VIGIL_E_STORE_DAMAGED;
    struct claims b = claims_of(c);
    b.cl.arena = &arena;
    return rules->claim(&b.cl, NULL, NULL, old);
}

/* ---- ranges ---- */

static int read_range(struct vg_slice text, struct vg_claim_ranges *ret,
                      struct vg_status *reterr_status)
{
    struct vg_cidr n;
    if (!vg_cidr_parse(text, &n))
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%.*s is not a range like 10.0.0.0/24",
                       VG_SLICE_ARG(text));
    bool is_v6 = !vg_ip_means_v4(&n.ip);
    if (ret->has[is_v6])
        return vg_fail(reterr_status, VIGIL_E_INVALID, "two ranges of one family");
    if (range_size(&n, is_v6) == 0)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%.*s has no room", VG_SLICE_ARG(text));
    if (text.n >= sizeof ret->ip_texts[0])
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%.*s is too long", VG_SLICE_ARG(text));
    ret->prefers_v6 = is_v6 && !ret->has[0];
    ret->has[is_v6] = true;
    ret->ips[is_v6] = n;
    snprintf(ret->ip_texts[is_v6], sizeof ret->ip_texts[0], "%.*s", VG_SLICE_ARG(text));
    return 0;
}

static int read_ports(const char *text, struct vg_claim_ranges *ret,
                      struct vg_status *reterr_status)
{
    unsigned first, last;
    char end;
    if (sscanf(text, "%5u-%5u%c", &first, &last, &end) != 2 || first == 0 || last > 65535 ||
        first > last)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "%s is not a range like 30000-32767", text);
    ret->port_first = (uint16_t)first;
    ret->port_last = (uint16_t)last;
    snprintf(ret->port_text, sizeof ret->port_text, "%u-%u", first, last);
    return 0;
}

int vg_claim_ranges_parse(const char *ips, const char *ports, struct vg_claim_ranges *ret,
                          struct vg_status *reterr_status)
{
    struct vg_slice rest = vg_slice_str(ips ? ips : VG_IP_RANGE_DEFAULT);
    memset(ret, 0, sizeof *ret);
    int r = 0;
    for (int i = 0; r == 0 && (rest.n || i == 0); i++)
        r = read_range(vg_cut(&rest, ','), ret, reterr_status);
    return r < 0 ? r : read_ports(ports ? ports : VG_PORT_RANGE_DEFAULT, ret, reterr_status);
}

void vg_claim_ranges_of(const struct vg_api *api, const char *ret_ranges[2],
                        char ret_first[VG_IP_TEXT_MAX])
{
    const struct vg_claim_ranges *r = api->ranges;
    size_t n = 0;
    ret_ranges[1] = NULL;
    for (int i = 0; i < 2; i++) {
        bool is_v6 = (i == 1) != r->prefers_v6;
        if (r->has[is_v6])
            ret_ranges[n++] = r->ip_texts[is_v6];
    }
    struct vg_slice first = vg_claim_ip(r, r->prefers_v6, 1, ret_first);
    ret_first[first.n] = 0;
}
