/* client_config_test.c - kubeconfigs: fields, merging, contradictions; service accounts. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "config_int.h"

#define HEAD                                                                                       \
    "apiVersion: v1\nkind: Config\ncurrent-context: here\n"                                        \
    "contexts:\n- name: here\n  context: {cluster: c, user: u, namespace: ns1}\n"                  \
    "- name: there\n  context: {cluster: c2, user: u}\n"                                           \
    "- name: nobody\n  context: {cluster: c}\n"
#define CLUSTERS(more)                                                                             \
    "clusters:\n- name: c\n  cluster: {server: 'https://one:6443/'" more "}\n"                     \
    "- name: c2\n  cluster: {server: two}\n"
#define USER(fields) "users:\n- name: u\n  user: {" fields "}\n"

static struct vigil_config *parse(const char *text, const char *context)
{
    struct vigil_config *c = NULL;
    struct vigil_error err = {0};
    if (vigil_config_parse(vigil_text(text), "/etc/kube", context, &c, &err) < 0)
        fail_msg("%s", err.message);
    return c;
}

static void assert_refused(const char *text, const char *context, const char *words)
{
    struct vigil_config *c = NULL;
    struct vigil_error err = {0};
    assert_true(vigil_config_parse(vigil_text(text), NULL, context, &c, &err) < 0);
    assert_null(c);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

static void all_fields_are_read(void **state)
{
    (void)state;
    struct vigil_config *c = parse(
        HEAD CLUSTERS(", certificate-authority: ca.pem, tls-server-name: api, proxy-url: "
                      "'socks5://p:1', disable-compression: true")
            USER("client-certificate: c.pem, client-key-data: a2V5, token: t, tokenFile: tok, "
                 "as: bob, as-uid: '7', as-groups: [a, b], as-user-extra: {k: [x, y], l: [z]}"),
        NULL);
    assert_string_equal(vigil_config_server(c), "https://one:6443");
    assert_string_equal(vigil_config_namespace(c), "ns1");
    assert_string_equal(c->ca.path, "/etc/kube/ca.pem");
    assert_string_equal(c->tls_server_name, "api");
    assert_string_equal(c->proxy_url, "socks5://p:1");
    assert_true(c->no_compression);
    assert_string_equal(c->cert.path, "/etc/kube/c.pem");
    vg_assert_slice_equal(c->key.data, VG_SLICE_LIT("key"));
    assert_string_equal(c->token, "t");
    assert_string_equal(c->token_file, "/etc/kube/tok");
    assert_string_equal(c->as_user, "bob");
    assert_string_equal(c->as_uid, "7");
    assert_int_equal(c->n_as_groups, 2);
    assert_string_equal(c->as_groups[1], "b");
    assert_int_equal(c->n_as_extra, 3);
    assert_string_equal(c->as_extra[2].name, "l");
    assert_string_equal(c->as_extra[2].value, "z");
    vigil_config_free(c);
}

static void data_beats_files(void **state)
{
    (void)state;
    struct vigil_config *c =
        parse(HEAD CLUSTERS(", certificate-authority: ca.pem, certificate-authority-data: Y2E=")
                  USER("token: t"),
              NULL);
    vg_assert_slice_equal(c->ca.data, VG_SLICE_LIT("ca"));
    assert_null(c->ca.path);
    vigil_config_free(c);
}

static void contexts_are_chosen_by_name(void **state)
{
    (void)state;
    struct vigil_config *c = parse(HEAD CLUSTERS("") USER("token: t"), "there");
    assert_string_equal(vigil_config_server(c), "http://two");
    assert_string_equal(vigil_config_namespace(c), "default");
    assert_null(c->token); /* it would travel in the open */
    vigil_config_free(c);
    c = parse(HEAD CLUSTERS("") USER("token: t"), "nobody");
    assert_null(c->token);
    vigil_config_free(c);
}

static void exec_is_read(void **state)
{
    (void)state;
    struct vigil_config *c = parse(
        HEAD CLUSTERS(", extensions: [{name: client.authentication.k8s.io/exec, extension: {a: "
                      "1}}]")
            USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: ./get, args: [x, "
                 "why],"
                 " env: [{name: A, value: b}], installHint: go get it, provideClusterInfo: true,"
                 " interactiveMode: Never}"),
        NULL);
    assert_string_equal(c->exec.command, "/etc/kube/./get");
    assert_string_equal(c->exec.args[0], c->exec.command);
    assert_string_equal(c->exec.args[2], "why");
    assert_null(c->exec.args[3]);
    assert_string_equal(c->exec.env[0].value, "b");
    assert_string_equal(c->exec.install_hint, "go get it");
    assert_string_equal(c->exec.cluster_config, "{\"a\":1}");
    assert_true(c->exec.gives_cluster);
    vigil_config_free(c);
    c = parse(HEAD CLUSTERS("") USER("token: t, exec: {command: none}"), NULL);
    assert_null(c->exec.command); /* other credentials are there */
    vigil_config_free(c);
}

static void what_contradicts_or_misses_is_said(void **state)
{
    (void)state;
    assert_refused(HEAD CLUSTERS("") USER("token: t"), "mars", "no context \"mars\"");
    assert_refused(HEAD CLUSTERS("") USER("token: t"), "mars", "here, there, nobody");
    assert_refused("{}", NULL, "no current-context");
    assert_refused("[]", NULL, "holds a array");
    assert_refused("a: b: c", NULL, "yaml");
    assert_refused(HEAD, NULL, "no cluster \"c\"");
    assert_refused(HEAD CLUSTERS(""), NULL, "no user \"u\"");
    assert_refused(HEAD CLUSTERS(", insecure-skip-tls-verify: true, certificate-authority: x")
                       USER(""),
                   NULL, "contradict");
    assert_refused(HEAD CLUSTERS("") USER("token: t, username: n, password: p"), NULL,
                   "token and a password");
    assert_refused(HEAD CLUSTERS("") USER("client-certificate: x"), NULL, "the key is missing");
    assert_refused(HEAD CLUSTERS("") USER("client-key-data: '?'"), NULL, "not base64");
    assert_refused(HEAD CLUSTERS(", proxy-url: 'ftp://x'") USER(""), NULL, "must begin with");
    assert_refused(HEAD CLUSTERS("") USER("auth-provider: {name: gcp}"), NULL, "exec entry");
    assert_refused(HEAD CLUSTERS("") USER("as-uid: '7'"), NULL, "need `as`");
    assert_refused(HEAD CLUSTERS("") USER("exec: {apiVersion: v9, command: x}"), NULL,
                   "apiVersion \"v9\"");
    assert_refused(HEAD CLUSTERS("")
                       USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: x}"),
                   NULL, "interactiveMode");
    assert_refused("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
                   "clusters: [{name: c, cluster: {}}]",
                   NULL, "names no server");
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void files_are_merged_first_wins(void **state)
{
    const char *dir = *state;
    char list[1600];
    put_file(dir, "a",
             "current-context: k\nclusters: [{name: c, cluster: {server: 'https://a', "
             "certificate-authority: ca}}]\n");
    put_file(dir, "b",
             "current-context: other\nclusters: [{name: c, cluster: {server: "
             "'https://b'}}]\ncontexts: [{name: k, context: {cluster: c, user: u}}]\n"
             "users: [{name: u, user: {tokenFile: t}}]");
    snprintf(list, sizeof(list), "%s/missing:%s/a:%s/b", dir, dir, dir);
    setenv("KUBECONFIG", list, 1);
    struct vigil_config *c = NULL;
    assert_int_equal(vigil_config_load(NULL, NULL, &c, NULL), 0);
    assert_string_equal(c->server, "https://a");
    snprintf(list, sizeof(list), "%s/t", dir);
    assert_string_equal(c->token_file, list); /* from its own file's folder */
    vigil_config_free(c);

    struct vigil_error err = {0};
    snprintf(list, sizeof(list), "%s/missing", dir);
    assert_int_equal(vigil_config_load(list, NULL, &c, &err), VIGIL_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "missing"));
    setenv("KUBECONFIG", list, 1);
    assert_int_equal(vigil_config_load(NULL, NULL, &c, &err), VIGIL_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "set KUBECONFIG"));
    unsetenv("KUBECONFIG");
    setenv("HOME", dir, 1);
    assert_int_equal(vigil_config_load(NULL, NULL, &c, &err), VIGIL_E_NOT_FOUND);
}

static void pods_find_their_service_account(void **state)
{
    const char *dir = *state;
    struct vigil_config *c = NULL;
    struct vigil_error err = {0};
    unsetenv("KUBERNETES_SERVICE_HOST");
    assert_int_equal(vg_config_in_cluster(dir, &c, &err), VIGIL_E_NOT_FOUND);
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_int_equal(vg_config_in_cluster(dir, &c, &err), VIGIL_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "mount"));
    put_file(dir, "token", "tok");
    put_file(dir, "ca.crt", "ca");
    put_file(dir, "namespace", "mine");
    assert_int_equal(vg_config_in_cluster(dir, &c, &err), 0);
    assert_string_equal(c->server, "https://[fd00::1]:443");
    assert_string_equal(vigil_config_namespace(c), "mine");
    assert_non_null(strstr(c->ca.path, "/ca.crt"));
    vigil_config_free(c);
    unsetenv("KUBERNETES_SERVICE_HOST");
}

static void by_hand(void **state)
{
    (void)state;
    struct vigil_config_opts o = VIGIL_INIT(struct vigil_config_opts);
    struct vigil_config *c = NULL;
    struct vigil_error err = {0};
    assert_int_equal(vigil_config_new(&o, &c, &err), VIGIL_E_INVALID);
    o.server = "ftp://x";
    assert_int_equal(vigil_config_new(&o, &c, &err), VIGIL_E_INVALID);
    o.server = "https:///";
    assert_int_equal(vigil_config_new(&o, &c, &err), VIGIL_E_INVALID);
    assert_non_null(strstr(err.message, "no host"));
    o.server = "https://x";
    o.token = "t";
    assert_int_equal(vigil_config_new(&o, &c, &err), 0);
    assert_string_equal(vigil_config_namespace(c), "default");
    vigil_config_free(c);
    vigil_config_free(NULL);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char TEXT[] =
        HEAD CLUSTERS(", certificate-authority-data: Y2E=, proxy-url: 'http://p'")
            USER("as: bob, as-groups: [a], as-user-extra: {k: [x]}, exec: {apiVersion: "
                 "client.authentication.k8s.io/v1, command: x, args: [a], env: [{name: A, value: "
                 "b}], interactiveMode: Never}");
    VG_ALLOC_FAIL_LOOP (n) {
        struct vigil_config *c = NULL;
        int r = vigil_config_parse(vigil_text(TEXT), NULL, NULL, &c, NULL);
        if (vg_test_alloc_failed())
            assert_int_equal(r, VIGIL_E_MEMORY);
        else
            assert_int_equal(r, 0);
        vigil_config_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields_are_read),
        cmocka_unit_test(data_beats_files),
        cmocka_unit_test(contexts_are_chosen_by_name),
        cmocka_unit_test(exec_is_read),
        cmocka_unit_test(what_contradicts_or_misses_is_said),
        cmocka_unit_test_setup_teardown(files_are_merged_first_wins, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test_setup_teardown(pods_find_their_service_account, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
