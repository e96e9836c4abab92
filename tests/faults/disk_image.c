/* disk_image.c - one possible outcome of a power cut, written into a directory (disk_shadow.h).
 * Each cut draws a mood first, so that the extremes (nothing of the un-synced writes is there, all
 * of it is, it stops at one point) come as often as the mixtures. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk_shadow_int.h"

enum mood { NOTHING, EVERYTHING, UP_TO_A_POINT, ANY_IN_ORDER, ANY_SHUFFLED, MOODS };

static void die(const char *what, const char *path)
{
    fprintf(stderr, "disk image: %s %s: %s\n", what, path, strerrordesc_np(errno));
    exit(2);
}

/* Which sectors of a torn write made it: a head, a tail, or each for itself. */
static bool sector_is_there(struct vg_rng *rng, int kind, size_t i, size_t cut)
{
    if (kind == 0)
        return i < cut;
    if (kind == 1)
        return i >= cut;
    return vg_rng_below(rng, 2) == 0;
}

static void apply_torn(struct shadow_bytes *b, const struct shadow_change *c, struct vg_rng *rng)
{
    int kind = (int)vg_rng_below(rng, 3);
    uint64_t end = c->off + c->n;
    size_t sectors = (size_t)((end - 1) / SHADOW_SECTOR - c->off / SHADOW_SECTOR + 1);
    size_t cut = (size_t)vg_rng_below(rng, sectors + 1);
    if (vg_rng_below(rng, 2) == 0 && end > b->size)
        vg_shadow_bytes_resize(b, end); /* the size is metadata and may come first (K4) */
    uint64_t at = c->off;
    for (size_t i = 0; at < end; i++) {
        uint64_t next = VG_MIN(end, (at / SHADOW_SECTOR + 1) * SHADOW_SECTOR);
        if (sector_is_there(rng, kind, i, cut))
            vg_shadow_bytes_write(b, at, c->bytes + (at - c->off), (size_t)(next - at));
        at = next;
    }
}

void vg_shadow_bytes_apply_maybe(struct shadow_bytes *b, const struct shadow_change *c,
                                 struct vg_rng *rng)
{
    uint64_t dice = vg_rng_below(rng, 3);
    if (dice == 0)
        vg_shadow_bytes_apply(b, c);
    else if (dice == 1 && c->bytes)
        apply_torn(b, c, rng);
}

static struct shadow_bytes clone(const struct shadow_bytes *from)
{
    struct shadow_bytes to = {0};
    vg_shadow_bytes_resize(&to, from->size);
    for (size_t i = 0; i < from->n_pages; i++) {
        if (!from->pages[i])
            continue;
        to.pages[i] = vg_shadow_alloc(NULL, SHADOW_PAGE);
        memcpy(to.pages[i], from->pages[i], SHADOW_PAGE);
    }
    return to;
}

static size_t list_changes(const struct vg_shadow_file *f, struct shadow_change ***ret_list)
{
    size_t n = 0;
    for (struct shadow_change *c = f->first; c; c = c->next)
        n++;
    *ret_list = vg_shadow_alloc(NULL, n * sizeof **ret_list);
    size_t i = 0;
    for (struct shadow_change *c = f->first; c; c = c->next)
        (*ret_list)[i++] = c;
    return n;
}

static void shuffle(struct shadow_change **list, size_t n, struct vg_rng *rng)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)vg_rng_below(rng, i);
        struct shadow_change *c = list[i - 1];
        list[i - 1] = list[j];
        list[j] = c;
    }
}

static void apply_changes(struct shadow_bytes *b, struct shadow_change **list, size_t n,
                          enum mood mood, struct vg_rng *rng)
{
    size_t whole = 0, end = n; /* that many for certain, then perhaps up to end */
    if (mood == ANY_SHUFFLED)
        shuffle(list, n, rng);
    if (mood == EVERYTHING)
        whole = n;
    if (mood == NOTHING)
        end = 0;
    if (mood == UP_TO_A_POINT) {
        whole = (size_t)vg_rng_below(rng, n + 1);
        end = VG_MIN(whole + 1, n);
    }
    for (size_t i = 0; i < whole; i++)
        vg_shadow_bytes_apply(b, list[i]);
    for (size_t i = whole; i < end; i++)
        vg_shadow_bytes_apply_maybe(b, list[i], rng);
}

static void write_page(int fd, const char *page, uint64_t off, size_t n, const char *name)
{
    if (pwrite(fd, page, n, (off_t)off) != (ssize_t)n)
        die("write", name);
}

static void write_bytes(int dir_fd, const char *name, const struct shadow_bytes *b)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)b->size) < 0)
        die("make", name);
    for (size_t i = 0; i < b->n_pages; i++) {
        uint64_t off = (uint64_t)i * SHADOW_PAGE;
        if (b->pages[i])
            write_page(fd, b->pages[i], off, (size_t)VG_MIN(SHADOW_PAGE, b->size - off), name);
    }
    close(fd);
}

/* LMDB writes its lock file through a mapping, which no shim sees: now and then an image gets it as
 * it is in memory. */
static void load_mapped(const struct vg_shadow *s, const char *name, struct shadow_bytes *b)
{
    char path[4096], page[SHADOW_PAGE];
    ssize_t n;
    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    vg_shadow_bytes_resize(b, 0);
    while (fd >= 0 && (n = pread(fd, page, sizeof page, (off_t)b->size)) > 0)
        vg_shadow_bytes_write(b, b->size, page, (size_t)n);
    if (fd >= 0)
        close(fd);
}

static bool is_mapped(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, "-lock") == 0;
}

static void write_file(struct vg_shadow *s, const struct shadow_name *name, enum mood mood,
                       struct vg_rng *rng, int dir_fd)
{
    struct shadow_change **list;
    size_t n = list_changes(name->file, &list);
    struct shadow_bytes b = clone(&name->file->durable);
    apply_changes(&b, list, n, mood, rng);
    if (is_mapped(name->name) && vg_rng_below(rng, 2) == 0)
        load_mapped(s, name->name, &b);
    write_bytes(dir_fd, name->name, &b);
    vg_shadow_bytes_done(&b);
    free(list);
}

/* Journalled file systems keep the order of names, others promise less: half of each. */
static struct shadow_names draw_names(const struct vg_shadow *s, struct vg_rng *rng)
{
    struct shadow_names names = {.n = s->durable.n};
    names.at = vg_shadow_alloc(NULL, names.n * sizeof *names.at);
    if (names.n)
        memcpy(names.at, s->durable.at, names.n * sizeof *names.at);
    bool in_order = vg_rng_below(rng, 2) == 0;
    size_t point = (size_t)vg_rng_below(rng, s->n_changes + 1);
    for (size_t i = 0; i < s->n_changes; i++)
        if (in_order ? i < point : vg_rng_below(rng, 2) == 0)
            vg_shadow_names_apply(&names, &s->changes[i]);
    return names;
}

void vg_shadow_image(struct vg_shadow *s, struct vg_rng *rng, const char *to)
{
    if (!s->is_there || (!s->is_durable && vg_rng_below(rng, 2) == 0))
        return;
    if (mkdir(to, 0700) < 0)
        die("mkdir", to);
    int dir_fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        die("open", to);
    struct shadow_names names = draw_names(s, rng);
    bool same_mood = vg_rng_below(rng, 2) == 0;
    enum mood mood = (enum mood)vg_rng_below(rng, MOODS);
    for (size_t i = 0; i < names.n; i++) {
        if (!same_mood)
            mood = (enum mood)vg_rng_below(rng, MOODS);
        write_file(s, &names.at[i], mood, rng, dir_fd);
    }
    free(names.at);
    close(dir_fd);
}
