/* workload.c - see workload.h. */
#include "workload.h"

#include <stdlib.h>

#include "measure.h"

#define POOL_BYTES ((size_t)1 << 20)

static const char key_form[] = "/registry/pods/namespace-00/app-0000-00000000";
_Static_assert(sizeof key_form == WL_KEY_LEN + 1, "WL_KEY_LEN");

/* The digits of n from the right end `last` on, leftwards. */
static void put_digits(char *last, unsigned count, unsigned base, uint32_t n)
{
    for (; count > 0; count--, n /= base)
        *last-- = "0123456789abcdef"[n % base];
}

/* By hand rather than by printf: this runs once per write on the thread that drives the engine. */
void wl_key(char *ret_key, uint32_t writer, uint32_t slot)
{
    uint32_t mixed = (writer * UINT32_C(2654435761)) ^ (slot * UINT32_C(2246822519));
    mixed ^= mixed >> 15;
    memcpy(ret_key, key_form, sizeof key_form);
    put_digits(ret_key + 26, 2, 10, mixed % 100);
    put_digits(ret_key + 35, 4, 16, writer);
    put_digits(ret_key + 44, 8, 16, slot);
}

char *workload_text(size_t n)
{
    struct vg_rng rng;
    vg_rng_seed(&rng, 42);
    char *text = bench_alloc(n + 8, 1);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t bits = vg_rng_u64(&rng);
        for (size_t j = 0; j < 8; j++, bits >>= 8)
            text[i + j] = (char)(' ' + (bits & 63));
    }
    return text;
}

struct workload *workload_new(uint32_t n_writers, size_t value_len, bool only_create)
{
    struct workload *load = bench_alloc(1, sizeof *load);
    load->pool = workload_text(POOL_BYTES);
    load->value_len = value_len;
    load->n_writers = n_writers;
    load->keys_first = VG_MAX(WL_KEYS_FIRST / n_writers, 1u);
    load->only_create = only_create;
    load->writers = bench_alloc(n_writers, sizeof *load->writers);
    for (uint32_t i = 0; i < n_writers; i++) {
        load->writers[i] = (struct wl_writer){.id = i, .load = load};
        vg_rng_seed(&load->writers[i].rng, i);
    }
    return load;
}

void workload_free(struct workload *load)
{
    if (!load)
        return;
    for (uint32_t i = 0; i < load->n_writers; i++)
        free(load->writers[i].revs);
    free(load->writers);
    free(load->pool);
    free(load);
}

size_t workload_bytes(const struct workload *load)
{
    return WL_KEY_LEN + WL_HEADER_LEN + load->value_len;
}

uint64_t workload_keys(const struct workload *load)
{
    uint64_t keys = 0;
    for (uint32_t i = 0; i < load->n_writers; i++)
        keys += load->writers[i].n_keys;
    return keys;
}

uint64_t workload_fill(const struct workload *load)
{
    return (uint64_t)load->keys_first * load->n_writers;
}

static void make_room(struct wl_writer *w)
{
    if (w->n_keys < w->cap)
        return;
    w->cap = w->cap ? w->cap * 2 : 64;
    w->revs = realloc(w->revs, w->cap * sizeof *w->revs);
    if (!w->revs)
        bench_die("out of memory");
}

void wl_next(struct wl_writer *w, struct wl_op *ret_op)
{
    const struct workload *load = w->load;
    uint64_t bits = vg_rng_u64(&w->rng);
    bool create = load->only_create || w->n_keys < load->keys_first || bits % WL_CREATE_ONE_IN == 0;
    ret_op->slot = create ? w->n_keys : (uint32_t)(bits >> 32) % w->n_keys;
    ret_op->expect = create ? 0 : w->revs[ret_op->slot];
    wl_key(ret_op->key, w->id, ret_op->slot);
    size_t room = POOL_BYTES - WL_HEADER_LEN - load->value_len;
    const char *p = load->pool + (size_t)((bits >> 8) & 0xffffff) % room;
    ret_op->header = vg_slice(p, WL_HEADER_LEN);
    ret_op->value = vg_slice(p + WL_HEADER_LEN, load->value_len);
}

void wl_done(struct wl_writer *w, const struct wl_op *op, uint64_t rev)
{
    if (op->expect == 0) {
        make_room(w);
        w->n_keys++;
    }
    w->revs[op->slot] = rev;
}
