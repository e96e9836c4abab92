/* read_world.h - what the tests of the reading verbs share: reading, and looks at the answer.
 * Thread: the test's. */
#ifndef VG_TESTS_API_READ_WORLD_H
#define VG_TESTS_API_READ_WORLD_H

#include <stdio.h>
#include <string.h>

#include "engine_world.h"

#define MAPS "/api/v1/namespaces/a/configmaps"

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
