/* Events that a recorder writes, as a real vigild keeps them. */
#include "world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vigil/recorder.h"

struct tally {
    size_t n;      /* events with the reason */
    int64_t count; /* all of them together */
    size_t n_combined;
    const char *reason;
};

static bool count_event(void *arg, const struct vigil_object *o)
{
    struct tally *t = arg;
    if (!vigil_text_is(vigil_get_string(o, "reason"), t->reason))
        return true;
    struct vigil_text m = vigil_get_string(o, "message");
    t->n++;
    t->count += vigil_get_int(o, "count", 0);
    t->n_combined += m.n > 9 && memcmp(m.p, "(combined", 9) == 0;
    assert_true(vigil_text_is(vigil_get_string(o, "involvedObject.name"), "p"));
    assert_true(vigil_text_is(vigil_get_string(o, "source.component"), "tester"));
    return true;
}

static struct tally look(struct vigil_client *c, const char *reason)
{
    struct tally t = {.reason = reason};
    assert_int_equal(vigil_list(c, &vigil_events, "default", NULL, count_event, &t, NULL), 0);
    return t;
}

/* Waits until the counts of a reason add up. */
static struct tally await(struct vigil_client *c, const char *reason, int64_t count)
{
    struct tally t = look(c, reason);
    while (t.count < count) {
        usleep(2000);
        t = look(c, reason);
    }
    return t;
}

static const struct vigil_object *pod(const char *uid)
{
    char json[256];
    snprintf(json, sizeof(json),
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":"
             "\"default\",\"uid\":\"%s\"}}",
             uid);
    return vigil_object_parse(vigil_text(json), NULL);
}

static void equal_events_are_counted_and_similar_ones_combined(void **state)
{
    struct vigil_recorder *r;
    struct server *s = *state;
    struct vigil_client *c = server_client(s, s->port, VIGIL_OWN_THREAD);
    const struct vigil_object *p = pod("1"), *q = pod("2"), *x = pod("3");
    assert_int_equal(vigil_recorder_new(c, "tester", &r, NULL), 0);
    for (int i = 0; i < 5; i++)
        vigil_record(r, p, "Normal", "Pulled", "image \"%s\"", "i");
    struct tally t = await(c, "Pulled", 5);
    assert_int_equal(t.n, 1);
    for (int i = 0; i < 14; i++)
        vigil_record(r, q, "Warning", "Failed", "try %d", i);
    t = await(c, "Failed", 14);
    assert_int_equal(t.n, 11);
    assert_int_equal(t.n_combined, 1);
    for (int i = 0; i < 40; i++)
        vigil_record(r, x, "Normal", "Much", "same");
    vigil_record(r, p, "Normal", "Last", "end"); /* comes after those that were dropped */
    await(c, "Last", 1);
    t = look(c, "Much");
    assert_int_equal(t.count, 25);
    for (int i = 0; i < 10; i++)
        vigil_record(r, p, "Normal", "Never", "%d", i);
    vigil_recorder_free(r); /* with some on their way */
    vigil_object_unref(p);
    vigil_object_unref(q);
    vigil_object_unref(x);
    vigil_client_free(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_events_are_counted_and_similar_ones_combined),
    };
    if (argc != 2)
        return 2;
    server_binary = argv[1];
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, server_set_up, server_tear_down);
}
