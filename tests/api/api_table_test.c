/* api_table_test.c - Tables over real sockets: lists of any length and look, pages, one object,
 * what comes with a row, watches; on the engine named by the first argument. */
#include <stdio.h>
#include <string.h>

#include "engine_world.h"
#include "yaml/yaml.h"
#include "json/json.h"

#define MAPS "/api/v1/namespaces/a/configmaps"
#define TABLE "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"
#define OLD_TABLE "Accept: application/json;as=Table;v=v1beta1;g=meta.k8s.io\r\n"
#define YAML_TABLE "Accept: application/yaml;as=Table;v=v1;g=meta.k8s.io\r\n"
/* Of 1 KB each: a list that leaves in many parts. */
#define MANY 700u

static struct vg_arena arena;

static int teardown(void **state)
{
    vg_arena_done(&arena);
    return close_server(state);
}

static const struct vg_json *ask(const char *target, const char *headers)
{
    struct vg_json *root;
    vg_adrv_request(&d, "GET", target, headers, NULL, &reply);
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&reply.body), NULL, &root, NULL), 0);
    return root;
}

static const struct vg_json *get(const struct vg_json *v, const char *key)
{
    return vg_json_get_str(v, key);
}

static void expect_text(const struct vg_json *v, const char *wanted)
{
    struct vg_slice s = vg_json_text(v);
    if (!vg_slice_eq(s, vg_slice_str(wanted)))
        print_error("%.*s instead of %s\n", VG_SLICE_ARG(s), wanted);
    assert_true(vg_slice_eq(s, vg_slice_str(wanted)));
}

static const struct vg_json *row(const struct vg_json *table, size_t i)
{
    return vg_json_at(get(table, "rows"), i);
}

static void expect_rows(const struct vg_json *table, size_t first, size_t n)
{
    expect_text(get(table, "kind"), "Table");
    assert_int_equal(get(table, "columnDefinitions")->n, 3);
    assert_int_equal(get(table, "rows")->n, n);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "c-%05zu", first + i);
        assert_int_equal(get(row(table, i), "cells")->n, 3);
        expect_text(vg_json_at(get(row(table, i), "cells"), 0), name);
        expect_text(vg_json_at(get(row(table, i), "cells"), 1), "1");
    }
}

static void fill(size_t n)
{
    char name[32], data[1024];
    memset(data, 'x', sizeof data);
    data[sizeof data - 1] = '\0';
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "c-%05zu", i);
        vg_adrv_config(&d, "a", name, data);
    }
}

static void a_long_list_in_every_look(void **state)
{
    (void)state;
    struct vg_json *root;
    fill(MANY);
    expect_rows(ask(MAPS, TABLE), 0, MANY);
    assert_string_equal(vg_reply_field(&reply, "Content-Type"), "application/json");
    expect_rows(ask(MAPS "?includeObject=None", TABLE), 0, MANY);
    expect_rows(ask(MAPS "?includeObject=Object", TABLE), 0, MANY);
    expect_rows(ask(MAPS "?pretty=1", TABLE), 0, MANY);
    assert_non_null(strstr(reply.body.p, "\n  \"rows\": [\n    {\n      \"cells\": ["));
    vg_adrv_request(&d, "GET", MAPS, YAML_TABLE, NULL, &reply);
    assert_int_equal(vg_yaml_parse(&arena, vg_buf_slice(&reply.body), NULL, &root, NULL), 0);
    expect_rows(root, 0, MANY);
    vg_adrv_request(&d, "GET", MAPS, TABLE "Accept-Encoding: gzip\r\n", NULL, &reply);
    assert_string_equal(vg_reply_field(&reply, "Content-Encoding"), "gzip");
}

static void pages_have_tokens(void **state)
{
    (void)state;
    char target[2048];
    fill(10);
    const struct vg_json *t = ask(MAPS "?limit=4", TABLE);
    expect_rows(t, 0, 4);
    expect_text(get(get(t, "metadata"), "remainingItemCount"), "6");
    struct vg_slice token = vg_json_text(get(get(t, "metadata"), "continue"));
    assert_true(token.n > 0);
    snprintf(target, sizeof target, MAPS "?limit=10&continue=%.*s", VG_SLICE_ARG(token));
    t = ask(target, TABLE);
    expect_rows(t, 4, 6);
    assert_null(get(get(t, "metadata"), "continue"));
    expect_rows(ask(MAPS "?fieldSelector=metadata.name%3Dc-00003", TABLE), 3, 1);
    expect_rows(ask("/api/v1/namespaces/none/configmaps", TABLE), 0, 0);
    assert_non_null(strstr(reply.body.p, "\"rows\":[]}\n"));
}

static void what_comes_with_a_row(void **state)
{
    (void)state;
    fill(1);
    const struct vg_json *t = ask(MAPS "/c-00000", TABLE);
    expect_rows(t, 0, 1);
    expect_text(get(t, "apiVersion"), "meta.k8s.io/v1");
    const struct vg_json *object = get(row(t, 0), "object");
    expect_text(get(object, "kind"), "PartialObjectMetadata");
    expect_text(get(object, "apiVersion"), "meta.k8s.io/v1");
    assert_null(get(object, "data"));
    struct vg_slice rev = vg_json_text(get(get(object, "metadata"), "resourceVersion"));
    assert_true(vg_slice_eq(rev, vg_json_text(get(get(t, "metadata"), "resourceVersion"))));
    t = ask(MAPS "/c-00000?includeObject=None", TABLE);
    assert_int_equal(get(row(t, 0), "object")->type, VG_JSON_NULL);
    t = ask(MAPS "/c-00000?includeObject=Object", OLD_TABLE);
    expect_text(get(t, "apiVersion"), "meta.k8s.io/v1beta1");
    expect_text(get(get(row(t, 0), "object"), "kind"), "ConfigMap");
    assert_non_null(get(get(row(t, 0), "object"), "data"));
    t = ask(MAPS "/c-00000?includeObject=Metadata", OLD_TABLE);
    expect_text(get(get(row(t, 0), "object"), "apiVersion"), "meta.k8s.io/v1beta1");
    (void)ask(MAPS "/c-00000?includeObject=All", TABLE);
    assert_int_equal(reply.status, 400);
    (void)ask(MAPS "?includeObject=All", TABLE);
    assert_int_equal(reply.status, 400);
    (void)ask(MAPS "?watch=1&includeObject=All", TABLE);
    assert_int_equal(reply.status, 400);
    t = ask(MAPS "/none", TABLE);
    assert_int_equal(reply.status, 404);
    expect_text(get(t, "kind"), "Status");
}

/* kubectl sends three clauses; the first that can be used is taken. */
static void the_first_clause_that_works(void **state)
{
    (void)state;
    fill(1);
    const struct vg_json *t = ask(MAPS, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,"
                                        "application/json;as=Table;v=v1beta1;g=meta.k8s.io,"
                                        "application/json\r\n");
    expect_text(get(t, "apiVersion"), "meta.k8s.io/v1");
    t = ask(MAPS, "Accept: application/json;as=Table;v=v9;g=meta.k8s.io,"
                  "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json\r\n");
    expect_text(get(t, "apiVersion"), "meta.k8s.io/v1beta1");
    t = ask(MAPS, "Accept: application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,"
                  "application/json\r\n");
    expect_text(get(t, "kind"), "ConfigMapList");
    (void)ask(MAPS, "Accept: application/json;as=Table\r\n");
    assert_int_equal(reply.status, 406);
}

static void a_write_answers_with_a_table(void **state)
{
    (void)state;
    struct vg_json *root;
    vg_adrv_request(&d, "POST", "/api/v1/namespaces", "Content-Type: application/json\r\n",
                    "{\"metadata\":{\"name\":\"a\"}}", &reply);
    fill(1);
    vg_adrv_request(&d, "POST", MAPS, TABLE "Content-Type: application/json\r\n",
                    "{\"metadata\":{\"name\":\"c-00001\"},\"data\":{\"a\":\"b\"}}", &reply);
    assert_int_equal(reply.status, 201);
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&reply.body), NULL, &root, NULL), 0);
    expect_rows(root, 1, 1);
    vg_adrv_request(&d, "POST", MAPS "?dryRun=All", TABLE "Content-Type: application/json\r\n",
                    "{\"metadata\":{\"name\":\"c-00002\"},\"data\":{\"a\":\"b\"}}", &reply);
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&reply.body), NULL, &root, NULL), 0);
    expect_rows(root, 2, 1);
    assert_null(get(get(root, "metadata"), "resourceVersion"));
    vg_adrv_request(&d, "DELETE", MAPS "/c-00001", TABLE, NULL, &reply);
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&reply.body), NULL, &root, NULL), 0);
    expect_text(get(root, "kind"), "Status");
    vg_adrv_request(&d, "DELETE", MAPS, TABLE, NULL, &reply);
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&reply.body), NULL, &root, NULL), 0);
    expect_rows(root, 0, 1);
}

static const struct vg_json *next(struct vg_stream *s, const char *type)
{
    struct vg_json *root;
    const char *line = vg_stream_line(s);
    assert_non_null(line);
    char *kept = vg_arena_copy(&arena, line, strlen(line) + 1);
    assert_int_equal(vg_json_parse(&arena, vg_slice_str(kept), NULL, &root, NULL), 0);
    expect_text(get(root, "type"), type);
    return get(root, "object");
}

/* A watch of a kind that is stored as another shows the cells of that one, and objects of its own.
 */
static void watches(void **state)
{
    (void)state;
    struct vg_stream s = {0};
    fill(1);
    vg_stream_open(&d, MAPS "?watch=1&includeObject=None&allowWatchBookmarks=1", TABLE, &s);
    const struct vg_json *t = next(&s, "ADDED");
    expect_rows(t, 0, 1);
    assert_int_equal(get(row(t, 0), "object")->type, VG_JSON_NULL);
    t = next(&s, "BOOKMARK");
    assert_int_equal(get(t, "columnDefinitions")->type, VG_JSON_NULL);
    assert_non_null(get(get(get(row(t, 0), "object"), "metadata"), "annotations"));
    vg_adrv_config(&d, "a", "c-00001", "y");
    t = next(&s, "ADDED");
    expect_text(vg_json_at(get(row(t, 0), "cells"), 0), "c-00001");
    vg_adrv_delete(&d, "", "configmaps", "a", "c-00001");
    t = next(&s, "DELETED");
    assert_int_equal(get(t, "columnDefinitions")->type, VG_JSON_NULL);
    vg_stream_close(&s);
    vg_adrv_put(&d, "", "events", "a", "e",
                "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"e\","
                "\"namespace\":\"a\",\"uid\":\"u\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                "\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\"},\"message\":\"m\"}");
    vg_stream_open(&d, "/apis/events.k8s.io/v1/events?watch=1&includeObject=Object", TABLE, &s);
    t = next(&s, "ADDED");
    assert_int_equal(get(t, "columnDefinitions")->n, 10);
    expect_text(vg_json_at(get(row(t, 0), "cells"), 3), "pod/p");
    expect_text(get(get(row(t, 0), "object"), "apiVersion"), "events.k8s.io/v1");
    expect_text(get(get(row(t, 0), "object"), "note"), "m");
    vg_stream_close(&s);
    t = ask("/apis/events.k8s.io/v1/events", TABLE);
    expect_text(vg_json_at(get(row(t, 0), "cells"), 3), "pod/p");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_long_list_in_every_look, open_server, teardown),
        cmocka_unit_test_setup_teardown(pages_have_tokens, open_server, teardown),
        cmocka_unit_test_setup_teardown(what_comes_with_a_row, open_server, teardown),
        cmocka_unit_test_setup_teardown(the_first_clause_that_works, open_server, teardown),
        cmocka_unit_test_setup_teardown(a_write_answers_with_a_table, open_server, teardown),
        cmocka_unit_test_setup_teardown(watches, open_server, teardown),
    };
    return RUN_ON_ENGINE(argc, argv, tests);
}
