/* Tests of config*.c. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "config_int.h"

#define ARGS(...) ((const char *[]){"vigild", __VA_ARGS__, NULL})

static int read_args(const char **argv, struct vg_config *c, struct vg_status *status)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    *status = (struct vg_status){0};
    return vg_config_read(argc, (char **)(uintptr_t)argv, c, status);
}

static void refused(const char **argv, const char *why)
{
    struct vg_config c;
    struct vg_status status;
    if (read_args(argv, &c, &status) != VIGIL_E_INVALID)
        fail_msg("%s is not refused", argv[1]);
    if (!strstr(status.message, why))
        fail_msg("'%s' does not say '%s'", status.message, why);
}

static void defaults_are_as_help_says(void **state)
{
    (void)state;
    struct vg_config c;
    struct vg_status status;
    assert_int_equal(read_args(ARGS(NULL), &c, &status), 0);
    assert_string_equal(c.data_dir, "vigil-data");
    assert_string_equal(c.bind_address, "127.0.0.1");
    assert_int_equal(c.secure_port, 6443);
    assert_int_equal(c.insecure_port, 0);
    assert_int_equal(c.request_timeout_ms, 60000);
    assert_int_equal(c.min_request_timeout_s, 1800);
    assert_int_equal(c.max_inflight, 400);
    assert_int_equal(c.max_mutating, 200);
    assert_int_equal(c.compaction_ms, 300000);
    assert_true(c.watch_cache);
    assert_null(c.token_auth_file);
    vg_config_done(&c);
}

/* The first of a source replaces, the next are added; the line wins over the file. */
static void lists_grow(void **state)
{
    (void)state;
    struct vg_config c;
    struct vg_status status;
    assert_int_equal(read_args(ARGS(NULL), &c, &status), 0);
    assert_string_equal(c.account_issuers, "https://kubernetes.default.svc");
    vg_config_done(&c);
    assert_int_equal(read_args(ARGS("--service-account-issuer", "a", "--api-audiences=x",
                                    "--service-account-issuer=b,c", "--service-account-key-file=k"),
                               &c, &status),
                     0);
    assert_string_equal(c.account_issuers, "a,b,c");
    assert_string_equal(c.account_audiences, "x");
    assert_string_equal(c.account_key_files, "k");
    vg_config_done(&c);
    refused(ARGS("--service-account-max-token-expiration", "30m"), "from 1h");
}

static void both_ways_of_writing_a_value(void **state)
{
    (void)state;
    struct vg_config c;
    struct vg_status status;
    const char *argv[] = {"vigild",
                          "--data-dir",
                          "/a",
                          "--secure-port=0",
                          "--watch-cache=false",
                          "--unsafe-no-fsync",
                          "--min-request-timeout",
                          "1h",
                          "--storage=mem",
                          NULL};
    assert_int_equal(read_args(argv, &c, &status), 0);
    assert_string_equal(c.data_dir, "/a");
    assert_int_equal(c.secure_port, 0);
    assert_false(c.watch_cache);
    assert_true(c.unsafe_no_fsync);
    assert_int_equal(c.min_request_timeout_s, 3600);
    assert_string_equal(c.storage, "mem");
    vg_config_done(&c);
}

static void slips_are_refused_with_advice(void **state)
{
    (void)state;
    refused(ARGS("--data-dri", "x"), "did you mean --data-dir?");
    refused(ARGS("--frobnicate"), "there is no flag --frobnicate");
    refused(ARGS("run"), "'run' is no flag");
    refused(ARGS("--"), "is no flag");
    refused(ARGS("--data-dir"), "--data-dir needs a value: --data-dir DIR");
    refused(ARGS("--data-dir="), "--data-dir is empty");
    refused(ARGS("--secure-port", "65536"), "not a number from 0 to 65535");
    refused(ARGS("--secure-port", "x"), "not a number from");
    refused(ARGS("--secure-port", "-1"), "not a number from");
    refused(ARGS("--storage", "etcd"), "--etcd-servers");
    refused(ARGS("--storage=mem", "--etcd-servers=http://x:1"), "--storage");
    refused(ARGS("--etcd-servers=http://x:1", "--etcd-certfile=x"), "--etcd-keyfile");
    refused(ARGS("--etcd-servers=http://x:1", "--etcd-prefix=registry"), "--etcd-prefix");
    refused(ARGS("--storage", "lm"), "one of lmdb|mem|etcd");
    refused(ARGS("--request-timeout", "60"), "not a duration");
    refused(ARGS("--request-timeout", "1ms"), "too short");
    refused(ARGS("--watch-cache=maybe"), "true or false");
    refused(ARGS("--tls-cert-file", "x"), "go together");
    refused(ARGS("--insecure-port=6443"), "are the same");
}

static const char *write_config(const char *dir, const char *text)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/config", dir);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void a_file_speaks_and_the_line_wins(void **state)
{
    struct vg_config c;
    struct vg_status status;
    const char *path = write_config(*state, "# vigild\n---\ndata-dir: /from/file  # here\n"
                                            "--secure-port = 7443\n\n"
                                            "log-components: \"gate,-net\"\nunsafe-no-fsync\n"
                                            "max-requests-inflight: 10\r\n");
    const char *argv[] = {"vigild", "--config", path, "--secure-port=8443", NULL};
    assert_int_equal(read_args(argv, &c, &status), 0);
    assert_string_equal(c.data_dir, "/from/file");
    assert_int_equal(c.secure_port, 8443);
    assert_string_equal(c.log_components, "gate,-net");
    assert_true(c.unsafe_no_fsync);
    assert_int_equal(c.max_inflight, 10);
    vg_config_done(&c);
}

static void mistakes_in_a_file_are_found_by_line(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"data-dir: x\nsecure-prot: 1\n", "config:2: there is no flag --secure-prot; did you mean"},
        {"secure-port: x", "config:1: --secure-port: 'x' is not a number"},
        {"secure-port", "config:1: secure-port needs a value"},
        {"config: other", "a file cannot name another"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        const char *path = write_config(*state, cases[i].text);
        refused(ARGS("--config", path), cases[i].why);
    }
    struct vg_config c;
    struct vg_status status;
    assert_true(read_args(ARGS("--config", "/no/such"), &c, &status) < 0);
    assert_non_null(strstr(status.message, "/no/such"));
}

static void every_flag_can_stand_in_a_file_and_in_help(void **state)
{
    char *help = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&help, &size);
    vg_config_help(f);
    assert_int_equal(fclose(f), 0);
    for (const struct vg_flag_group *g = vg_flag_groups; g->title; g++) {
        for (const struct vg_flag *flag = g->flags; flag->name; flag++) {
            char text[256];
            snprintf(text, sizeof text, "  --%s", flag->name);
            assert_non_null(strstr(help, text));
            if (!flag->value)
                continue;
            struct vg_config c;
            struct vg_status status;
            snprintf(text, sizeof text, "%s: %s\n", flag->name, flag->value);
            const char *path = write_config(*state, text);
            assert_int_equal(read_args(ARGS("--config", path), &c, &status), 0);
            vg_config_done(&c);
        }
    }
    for (const char *line = help; line && *line;) {
        const char *end = strchr(line, '\n');
        assert_true(end - line <= 100);
        line = end + 1;
    }
    free(help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_as_help_says),
        cmocka_unit_test(lists_grow),
        cmocka_unit_test(both_ways_of_writing_a_value),
        cmocka_unit_test(slips_are_refused_with_advice),
        cmocka_unit_test_setup_teardown(a_file_speaks_and_the_line_wins, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test_setup_teardown(mistakes_in_a_file_are_found_by_line, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test_setup_teardown(every_flag_can_stand_in_a_file_and_in_help,
                                        vg_test_tmpdir_setup, vg_test_tmpdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
