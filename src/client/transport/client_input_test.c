/* client_input_test.c - what a program or a file gives a client: option structs of older programs,
 * and texts that would become headers of their own. */
#include "place_testing.h"

#include <stddef.h>

#define EVIL "a\r\nX-Evil: 1"

static bool asked_for(struct place *p, unsigned i, const char *words)
{
    pthread_mutex_lock(&p->server->mu);
    bool has = i < p->server->n_asked && strstr(p->server->asked[i], words);
    pthread_mutex_unlock(&p->server->mu);
    return has;
}

static void fields_beyond_the_size_are_not_read(void **state)
{
    (void)state;
    const char *nowhere = (const char *)(uintptr_t)1; /* whoever reads it crashes */
    PLACE(p, {.body = OBJECT}, {.body = OBJECT}, {.body = OBJECT});
    p.config.size = offsetof(struct vigil_config_opts, namespace_);
    p.config.namespace_ = nowhere;
    place_start(&p);

    struct vigil_patch_opts po = {.size = offsetof(struct vigil_patch_opts, field_manager),
                                  .type = VIGIL_PATCH_MERGE,
                                  .field_manager = nowhere,
                                  .force = true,
                                  .dry_run = true};
    const struct vigil_object *o = NULL;
    assert_int_equal(vigil_patch(p.client, &vigil_pods, "d", "a", vigil_text("{}"), &po, &o, NULL),
                     0);
    vigil_object_unref(o);
    assert_false(asked_for(&p, 0, "force"));
    assert_false(asked_for(&p, 0, "dryRun"));

    struct vigil_delete_opts d = {.size = offsetof(struct vigil_delete_opts, uid),
                                  .grace_period_s = 0,
                                  .uid = nowhere,
                                  .resource_version = nowhere,
                                  .propagation = nowhere};
    assert_int_equal(vigil_delete(p.client, &vigil_pods, "d", "a", &d, NULL), 0);
    assert_true(has_header(&p, 1, "DELETE "));

    struct vigil_list_opts l = {.size = offsetof(struct vigil_list_opts, limit), .limit = 1};
    int r = vigil_list(p.client, &vigil_pods, "d", &l, NULL, NULL, NULL);
    assert_true(r < 0); /* the answer is no list */
    assert_false(asked_for(&p, 2, "limit=1&"));
    place_done(&p);
}

static void options_without_a_size_are_refused(void **state)
{
    (void)state;
    struct vigil_error err;
    struct vigil_config *config = NULL;
    struct vigil_client *client = NULL;
    const struct vigil_object *o = NULL;
    struct vigil_config_opts co = {.server = "http://x"};
    assert_int_equal(vigil_config_new(&co, &config, &err), VIGIL_E_INVALID);
    assert_non_null(strstr(err.message, "size"));
    PLACE(p, {.body = OBJECT});
    place_start(&p);
    struct vigil_client_opts cl = {.qps = 1};
    assert_int_equal(vigil_config_new(&p.config, &config, NULL), 0);
    assert_int_equal(vigil_client_new(config, &cl, &client, &err), VIGIL_E_INVALID);
    vigil_config_free(config);
    struct vigil_patch_opts po = {.type = VIGIL_PATCH_MERGE};
    assert_int_equal(vigil_patch(p.client, &vigil_pods, "d", "a", vigil_text("{}"), &po, &o, &err),
                     VIGIL_E_INVALID);
    struct vigil_delete_opts d = {.uid = "u"}; /* a precondition that would be dropped */
    assert_int_equal(vigil_delete(p.client, &vigil_pods, "d", "a", &d, &err), VIGIL_E_INVALID);
    struct vigil_list_opts l = {.limit = 1};
    assert_int_equal(vigil_list(p.client, &vigil_pods, "d", &l, NULL, NULL, &err), VIGIL_E_INVALID);
    struct vigil_request_opts r = {.path = "/x", .done = on_answer};
    assert_int_equal(vigil_request(p.client, &r, NULL, &err), VIGIL_E_INVALID);
    r.size = offsetof(struct vigil_request_opts, done); /* too old to have one */
    assert_int_equal(vigil_request(p.client, &r, NULL, &err), VIGIL_E_INVALID);
    assert_int_equal(script_asked(p.server), 0);
    place_done(&p);
}

static void tokens_that_are_two_lines_are_refused(void **state)
{
    static const char *const BAD[] = {EVIL, "a\nb", "a\rb", "\x01", "a\x7f"};
    const char *dir = *state;
    char path[512];
    struct vigil_error err;
    snprintf(path, sizeof(path), "%s/token", dir);
    for (size_t i = 0; i < VG_ARRAY_LEN(BAD); i++) {
        struct vigil_config *config = NULL;
        struct vigil_config_opts co = VIGIL_INIT(struct vigil_config_opts);
        co.server = "https://x";
        co.token = BAD[i];
        assert_int_equal(vigil_config_new(&co, &config, &err), VIGIL_E_INVALID);
        assert_non_null(strstr(err.message, "token"));
        assert_null(strstr(err.message, "a\r")); /* it is a secret */

        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(BAD[i], f) >= 0 && fclose(f) == 0);
        PLACE(p, {.body = OBJECT});
        p.config.token_file = path;
        place_start(&p);
        const struct vigil_object *o = NULL;
        assert_int_equal(vigil_read(p.client, &vigil_pods, "d", "a", &o, &err),
                         VIGIL_E_UNAUTHORIZED);
        assert_non_null(strstr(err.message, path));
        assert_int_equal(script_asked(p.server), 0);
        place_done(&p);
    }
}

#define KUBECONFIG(user)                                                                           \
    "current-context: k\ncontexts: [{name: k, context: {cluster: c, user: u}}]\n"                  \
    "clusters: [{name: c, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: {" user        \
    "}}]\n"

static void a_kubeconfig_cannot_add_headers(void **state)
{
    static const char *const BAD[] = {
        KUBECONFIG("token: \"a\\r\\nX-Evil: 1\""),
        KUBECONFIG("token: t, as: \"a\\nX-Evil: 1\""),
        KUBECONFIG("token: t, as: a, as-uid: \"a\\nX-Evil: 1\""),
        KUBECONFIG("token: t, as: a, as-groups: [b, \"a\\nX-Evil: 1\"]"),
        KUBECONFIG("token: t, as: a, as-user-extra: {k: [\"a\\nX-Evil: 1\"]}"),
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(BAD); i++) {
        struct vigil_config *c = NULL;
        struct vigil_error err = {0};
        assert_int_equal(vigil_config_parse(vigil_text(BAD[i]), NULL, NULL, &c, &err),
                         VIGIL_E_INVALID);
        assert_true(strlen(err.message) > 10);
    }
}

static void a_request_cannot_add_headers(void **state)
{
    (void)state;
    PLACE(p, {.body = OBJECT});
    place_start(&p);
    struct answer a = {0};
    struct vigil_request_opts good = VIGIL_INIT(struct vigil_request_opts);
    good.path = "/x";
    good.done = on_answer;
    good.arg = &a;
    struct vigil_request_opts o[6] = {good, good, good, good, good, good};
    o[0].accept = EVIL;
    o[1].content_type = EVIL;
    o[2].method = "GET /y HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET";
    o[3].path = "/x HTTP/1.1\r\nX-Evil: 1";
    o[4].path = "/x y";
    o[5].method = "";
    for (size_t i = 0; i < VG_ARRAY_LEN(o); i++) {
        struct vigil_error err;
        assert_int_equal(vigil_request(p.client, &o[i], NULL, &err), VIGIL_E_INVALID);
        assert_true(strlen(err.message) > 10);
    }
    struct vigil_config *config = NULL;
    struct vigil_client *client = NULL;
    assert_int_equal(vigil_config_new(&p.config, &config, NULL), 0);
    p.opts.user_agent = EVIL;
    assert_int_equal(vigil_client_new(config, &p.opts, &client, NULL), VIGIL_E_INVALID);
    vigil_config_free(config);
    place_done(&p);
    assert_false(a.is_done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_beyond_the_size_are_not_read),
        cmocka_unit_test(options_without_a_size_are_refused),
        cmocka_unit_test_setup_teardown(tokens_that_are_two_lines_are_refused, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test(a_kubeconfig_cannot_add_headers),
        cmocka_unit_test(a_request_cannot_add_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
