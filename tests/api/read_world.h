/* read_world.h - what the tests of the reading verbs share: a server on `engine` and its last
 * answer. */
#ifndef VG_TESTS_API_READ_WORLD_H
#define VG_TESTS_API_READ_WORLD_H

#include <stdio.h>
#include <string.h>

#include "driver.h"

#define MAPS "/api/v1/namespaces/a/configmaps"

static const char *engine;
static struct vg_adrv d;
static struct vg_reply reply;

static inline int setup(void **state)
{
    (void)state;
    vg_adrv_open_quick(&d, engine, false);
    return 0;
}

static inline int setup_hasty(void **state)
{
    (void)state;
    vg_adrv_open_quick(&d, engine, true);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    vg_reply_done(&reply);
    vg_adrv_close(&d);
    return 0;
}

static inline void get(const char *target)
{
    vg_adrv_get(&d, target, &reply);
}

static inline void expect_body(int status, const char *wanted)
{
    assert_string_equal(reply.body.p, wanted);
    assert_int_equal(reply.status, status);
}

static inline void expect_message(int status, const char *wanted)
{
    char text[2048];
    const char *at = strstr(reply.body.p, "\"message\":");
    assert_non_null(at);
    at += 10 + strspn(at + 10, " ");
    snprintf(text, sizeof text, "\"%s\"", wanted);
    if (strncmp(at, text, strlen(text)) != 0)
        assert_string_equal(reply.body.p, wanted);
    assert_int_equal(reply.status, status);
}

#endif
