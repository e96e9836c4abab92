/* The kubelet's source of pods: a reflector on the pods of one node, into a store that hands over
 * the whole set after each change; against a real vigild, which is killed once. */
#include "world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *binary;

struct receiver {
    struct vg_mutex mu;
    struct vg_cond pushed;
    char set[256]; /* "a b c": the names of the last push */
};

static void on_push(void *arg, const struct vigil_object *const *objects, size_t n)
{
    struct receiver *r = arg;
    size_t at = 0;
    vg_mutex_lock(&r->mu);
    r->set[0] = 0;
    for (size_t i = 0; i < n; i++) {
        struct vigil_text name = vigil_object_name(objects[i]);
        at += (size_t)snprintf(r->set + at, sizeof(r->set) - at, "%s%.*s", i ? " " : "",
                               VIGIL_TEXT_ARG(name));
    }
    vg_cond_broadcast(&r->pushed);
    vg_mutex_unlock(&r->mu);
}

/* A set that never comes ends the test by its time limit. */
static void await(struct receiver *r, const char *set)
{
    vg_mutex_lock(&r->mu);
    while (strcmp(r->set, set) != 0)
        vg_cond_wait(&r->pushed, &r->mu);
    vg_mutex_unlock(&r->mu);
}

static void create(struct vigil_client *c, const char *name, const char *node)
{
    char json[512];
    const struct vigil_object *o;
    struct vigil_error err;
    snprintf(json, sizeof(json),
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
             "\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
             name, node);
    if (vigil_create(c, &vigil_pods, "default", vigil_text(json), &o, &err) < 0)
        fail_msg("%s", err.message);
    vigil_object_unref(o);
}

static void each_change_hands_over_the_pods_of_the_node(void **state)
{
    (void)state;
    struct server s = {.binary = binary, .dir = vg_test_tmpdir()};
    struct receiver r = {.set = "nothing yet"};
    struct vigil_undelta *u;
    struct vigil_reflector *f;
    struct vigil_informer_opts o = VIGIL_INIT(struct vigil_informer_opts);
    struct vigil_delete_opts d = {.size = sizeof(d), .grace_period_s = 0};
    server_start(&s);
    struct vigil_client *c = server_client(&s, s.port, VIGIL_OWN_THREAD);
    vg_mutex_init(&r.mu, VG_RANK_CLIENT_WORK);
    vg_cond_init(&r.pushed);
    create(c, "b", "mine");
    create(c, "x", "other");
    assert_int_equal(vigil_undelta_new(on_push, &r, &u), 0);
    struct vigil_sink sink = vigil_undelta_sink(u);
    o.resource = &vigil_pods;
    o.field_selector = "spec.nodeName=mine";
    assert_int_equal(vigil_reflector_new(c, &o, &sink, &f, NULL), 0);
    assert_int_equal(vigil_reflector_start(f), 0);
    await(&r, "b");
    create(c, "a", "mine");
    await(&r, "a b");
    create(c, "y", "other");
    server_kill(&s);
    server_start(&s);
    struct vigil_client *late = server_client(&s, s.port, VIGIL_OWN_THREAD);
    create(late, "c", "mine");
    await(&r, "a b c");
    assert_int_equal(vigil_delete(late, &vigil_pods, "default", "b", &d, NULL), 0);
    await(&r, "a c");
    vigil_reflector_free(f);
    vigil_undelta_free(u);
    vigil_client_free(late);
    vigil_client_free(c);
    vg_cond_done(&r.pushed);
    vg_mutex_done(&r.mu);
    server_end(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_hands_over_the_pods_of_the_node),
    };
    if (argc != 2)
        return 2;
    binary = argv[1];
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
