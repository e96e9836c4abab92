/* durable.c - see durable.h. Integers are little endian. */
#include "durable.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "files.h"

#define SLOTS 2u
/* A block of zeros or of somebody else's bytes then hits one of them. */
#define SLOT_SIZE ((size_t)4096)
#define DURABLE_MAGIC "vigilend"
#define DURABLE_VERSION 1u

struct slot {
    char magic[8];
    uint32_t version;
    uint32_t crc; /* of this struct, with 0 here */
    uint64_t salt;
    uint64_t seq; /* the higher one counts; slot seq % 2 */
    uint64_t last;
};

static uint32_t slot_crc(const struct slot *s)
{
    struct slot copy = *s;
    copy.crc = 0;
    return vg_crc32c(0, &copy, sizeof copy);
}

static struct slot make_slot(uint64_t salt, uint64_t seq, vg_rev last)
{
    struct slot s = {
        .magic = DURABLE_MAGIC,
        .version = htole32(DURABLE_VERSION),
        .salt = htole64(salt),
        .seq = htole64(seq),
        .last = htole64(last),
    };
    s.crc = htole32(slot_crc(&s));
    return s;
}

static off_t place_of(uint64_t seq)
{
    return (off_t)(seq % SLOTS * SLOT_SIZE);
}

static bool read_slot(int fd, unsigned which, struct slot *ret_slot)
{
    struct slot s;
    if (vg_read_at(fd, &s, sizeof s, place_of(which)) != (ssize_t)sizeof s)
        return false;
    if (memcmp(s.magic, DURABLE_MAGIC, sizeof s.magic) != 0 || slot_crc(&s) != le32toh(s.crc) ||
        le32toh(s.version) != DURABLE_VERSION || le64toh(s.seq) % SLOTS != which)
        return false;
    s.salt = le64toh(s.salt);
    s.seq = le64toh(s.seq);
    s.last = le64toh(s.last);
    *ret_slot = s;
    return true;
}

/* The newer of the two slots. How many can be read. */
static unsigned read_newest(int fd, struct slot *ret_slot)
{
    unsigned good = 0;
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot s;
        if (!read_slot(fd, i, &s))
            continue;
        if (good++ == 0 || s.seq > ret_slot->seq)
            *ret_slot = s;
    }
    return good;
}

int vg_durable_create(int dirfd, uint64_t salt, vg_rev last)
{
    char pages[SLOTS * SLOT_SIZE] = {0};
    for (uint64_t seq = 0; seq < SLOTS; seq++) {
        struct slot s = make_slot(salt, seq, last);
        memcpy(pages + place_of(seq), &s, sizeof s);
    }
    return vg_write_file(dirfd, VG_FILE_DURABLE, pages, sizeof pages);
}

int vg_durable_open(struct vg_durable *d, int dirfd, uint64_t salt)
{
    struct slot s = {0};
    int fd = openat(dirfd, VG_FILE_DURABLE, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unsigned good = read_newest(fd, &s);
    if (good == 0 || s.salt != salt) {
        close(fd);
        return VIGIL_E_STORE_DAMAGED;
    }
    *d = (struct vg_durable){
        .fd = fd, .salt = salt, .seq = s.seq, .last = s.last, .is_one_slot_bad = good < SLOTS};
    return 0;
}

int vg_durable_peek(int dirfd, uint64_t *ret_salt, vg_rev *ret_last)
{
    struct slot s = {0};
    int fd = openat(dirfd, VG_FILE_DURABLE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unsigned good = read_newest(fd, &s);
    close(fd);
    if (good == 0)
        return VIGIL_E_STORE_DAMAGED;
    *ret_salt = s.salt;
    *ret_last = s.last;
    return 0;
}

static int write_slot(struct vg_durable *d, vg_rev last)
{
    struct slot s = make_slot(d->salt, d->seq + 1, last);
    int r = vg_write_at(d->fd, &s, sizeof s, place_of(d->seq + 1));
    if (r < 0)
        return r;
    d->seq++;
    d->last = last;
    return 0;
}

void vg_durable_note(struct vg_durable *d, vg_rev last)
{
    if (d->fd >= 0 && last > d->last && write_slot(d, last) < 0)
        return; /* D1 holds all the same */
}

int vg_durable_settle(struct vg_durable *d, vg_rev last)
{
    if (d->last == last && !d->is_one_slot_bad)
        return 0;
    int r = 0;
    for (unsigned i = 0; i < SLOTS && r == 0; i++)
        r = write_slot(d, last);
    d->is_one_slot_bad = false;
    return r == 0 && fdatasync(d->fd) < 0 ? -errno : r;
}

void vg_durable_close(struct vg_durable *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}
