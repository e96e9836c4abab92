/* tls_gather_test.c - records of a batch leave in one piece or in two, in order, and none is lost.
 */
#include "test_support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tls_gather.h"

#define RECORD 16000
#define ROOM ((size_t)4 * RECORD)

struct line {
    int here, there;
    struct vg_tls_gather *g;
    BIO *bio;
    char room[ROOM];
    char record[RECORD];
    size_t written, seen; /* bytes; byte k of the line is pattern(k) */
};

static char pattern(size_t k)
{
    return (char)(k * 7 + k / 251);
}

static int set_up(void **state)
{
    int fds[2], small = 4096;
    struct line *l = calloc(1, sizeof *l);
    assert_non_null(l);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    l->here = fds[0];
    l->there = fds[1];
    setsockopt(l->here, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    assert_int_equal(vg_tls_gather_new(l->here, &l->g, &l->bio), 0);
    *state = l;
    return 0;
}

static int tear_down(void **state)
{
    struct line *l = *state;
    BIO_free(l->bio);
    close(l->here);
    close(l->there);
    free(l);
    return 0;
}

static int write_record(struct line *l)
{
    for (size_t i = 0; i < RECORD; i++)
        l->record[i] = pattern(l->written + i);
    int n = BIO_write(l->bio, l->record, RECORD);
    l->written += n > 0 ? (size_t)n : 0;
    return n;
}

static void read_all(struct line *l)
{
    char buf[4096];
    ssize_t n;
    while ((n = recv(l->there, buf, sizeof buf, 0)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(buf[i], pattern(l->seen++));
    }
}

static void what_the_socket_does_not_take_goes_first_the_next_time(void **state)
{
    struct line *l = *state;
    vg_tls_gather_begin(l->g, l->room, ROOM);
    for (int i = 0; i < 4; i++)
        assert_int_equal(write_record(l), RECORD);
    assert_int_equal(vg_tls_gather_end(l->g), 0);
    memset(l->room, 0, ROOM); /* no longer borrowed */
    assert_true(write_record(l) < 0);
    assert_true(BIO_should_write(l->bio));
    assert_int_equal(vg_tls_gather_resume(l->g), 0);
    int r = 0;
    while (r == 0) {
        read_all(l);
        r = vg_tls_gather_resume(l->g);
    }
    assert_int_equal(r, 1);
    read_all(l);
    assert_int_equal(l->seen, 4 * RECORD);
    assert_true(write_record(l) > 0); /* without a batch it is the socket */
    read_all(l);
    assert_int_equal(l->seen, l->written);
}

static void a_full_room_asks_to_come_again(void **state)
{
    struct line *l = *state;
    vg_tls_gather_begin(l->g, l->room, RECORD + 1);
    assert_int_equal(write_record(l), RECORD);
    assert_true(write_record(l) < 0);
    assert_true(BIO_should_retry(l->bio));
    int r = vg_tls_gather_end(l->g);
    while (r == 0) {
        read_all(l);
        r = vg_tls_gather_resume(l->g);
    }
    read_all(l);
    assert_int_equal(l->seen, RECORD);
}

static void a_broken_socket_is_an_error(void **state)
{
    struct line *l = *state;
    shutdown(l->there, SHUT_RDWR);
    vg_tls_gather_begin(l->g, l->room, ROOM);
    assert_int_equal(write_record(l), RECORD);
    assert_true(vg_tls_gather_end(l->g) < 0);
    assert_true(write_record(l) < 0);
    assert_false(BIO_should_retry(l->bio));
}

static void without_memory_for_the_rest_it_is_broken(void **state)
{
    struct line *l = *state;
    vg_tls_gather_begin(l->g, l->room, ROOM);
    assert_int_equal(write_record(l), RECORD);
    vg_alloc_fail_at(1, 0);
    assert_int_equal(vg_tls_gather_end(l->g), -ENOMEM);
    vg_alloc_fail_at(0, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_the_socket_does_not_take_goes_first_the_next_time),
        TEST(a_full_room_asks_to_come_again),
        TEST(a_broken_socket_is_an_error),
        TEST(without_memory_for_the_rest_it_is_broken),
    };
    return cmocka_run_group_tests_name("tls_gather", tests, NULL, NULL);
}
