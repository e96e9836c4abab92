/* walk.c - reading many keys: pages of one revision, so that memory stays small however many keys
 * there are, and what is read is consistent however long it takes. */
#include "session.h"

/* Records in a page, and so in memory: with the largest values a gigabyte, with usual ones 1 MB. */
#define PAGE_MAX 128

int vg_prefix_keys(struct vg_slice prefix, char end[VG_PREFIX_END_MAX], struct vg_keys *ret_keys,
                   struct vg_status *reterr_status)
{
    if (prefix.n > VG_STORAGE_KEY_MAX)
        return vg_fail(reterr_status, VIGIL_E_KEY_INVALID,
                       "the prefix has %zu bytes; keys have at most %d", prefix.n,
                       VG_STORAGE_KEY_MAX);
    size_t n = prefix.n;
    if (n)
        memcpy(end, prefix.p, n);
    while (n && (unsigned char)end[n - 1] == 0xff)
        n--;
    if (n)
        end[n - 1] = (char)((unsigned char)end[n - 1] + 1);
    *ret_keys = (struct vg_keys){
        .kind = n ? VG_KEYS_SPAN : VG_KEYS_FROM,
        .start = prefix,
        .end = vg_slice(end, n),
    };
    return 0;
}

/* The next page begins just after this record. */
static void start_after(struct vg_keys *keys, char start[VG_PREFIX_END_MAX],
                        const struct vg_rec *rec)
{
    struct vg_slice key = vg_rec_key(rec);
    memcpy(start, key.p, key.n);
    start[key.n] = '\0';
    keys->start = vg_slice(start, key.n + 1);
}

static int hand_out(const struct vg_each *each, const struct vg_range *range,
                    struct vg_status *reterr_status)
{
    int r = 0;
    for (size_t i = 0; i < range->n_recs && r == 0; i++)
        r = each->fn(each->arg, range->recs[i], reterr_status);
    return r;
}

int vg_session_each(struct vg_session *s, struct vg_each *each, struct vg_status *reterr_status)
{
    char start[VG_PREFIX_END_MAX], end[VG_PREFIX_END_MAX];
    struct vg_range range = {.flags = each->is_keys_only ? VG_RANGE_KEYS_ONLY : 0};
    uint64_t left = each->limit ? each->limit : UINT64_MAX;
    int r = vg_prefix_keys(each->prefix, end, &range.keys, reterr_status);
    range.at = each->at;
    for (bool more = true; r == 0 && more && left > 0;) {
        range.limit = (size_t)VG_MIN(left, (uint64_t)PAGE_MAX);
        r = vg_session_range(s, &range, reterr_status);
        if (r < 0)
            break;
        each->at = range.at = range.req.rev;
        each->has_more = more = range.more;
        left -= range.n_recs;
        r = hand_out(each, &range, reterr_status);
        if (range.n_recs)
            start_after(&range.keys, start, range.recs[range.n_recs - 1]);
        vg_range_done(&range);
    }
    return r;
}
