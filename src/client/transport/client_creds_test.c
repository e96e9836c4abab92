/* client_creds_test.c - tokens in files, programs that give credentials. */
#include "place_testing.h"

#include <sys/stat.h>

static void put_file(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* The clock stands: a slow server makes nothing expire. */
static void await(struct fake_place *f, const struct answer *a)
{
    while (!a->is_done)
        step(f, 0);
}

static void token_files_are_read_again(void **state)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/token", (const char *)*state);
    put_file(path, "one\n", 0600);
    struct fake_place f;
    const struct step steps[] = {
        {.body = "1"}, {.body = "2"}, {.status = 401}, {.body = "4"}, {.body = "5"}};
    place_init(&f.p, steps, 5);
    f.p.config.token_file = path;
    fake_start(&f);
    struct answer a;
    ask(f.p.client, "GET", &a);
    await(&f, &a);
    put_file(path, "two", 0600);
    ask(f.p.client, "GET", &a); /* within 50 s: the old one */
    await(&f, &a);
    ask(f.p.client, "GET", &a); /* 401: not tried again ... */
    await(&f, &a);
    assert_int_equal(a.err.code, VIGIL_E_UNAUTHORIZED);
    ask(f.p.client, "GET", &a); /* ... but read for the next one */
    await(&f, &a);
    assert_int_equal(unlink(path), 0);
    vg_fake_clock_advance(&f.clock, 60 * VG_NS_PER_S);
    ask(f.p.client, "GET", &a); /* better the old one than none */
    await(&f, &a);
    assert_true(has_header(&f.p, 0, "Authorization: Bearer one\r\n"));
    assert_true(has_header(&f.p, 1, "Authorization: Bearer one\r\n"));
    assert_true(has_header(&f.p, 3, "Authorization: Bearer two\r\n"));
    assert_true(has_header(&f.p, 4, "Authorization: Bearer two\r\n"));
    fake_done(&f);
}

#define EXEC_USER                                                                                  \
    "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "       \
    "./creds, args: [hello], env: [{name: GREETING, value: hi}], installHint: 'get it',"           \
    " interactiveMode: Never, provideClusterInfo: true}}}]\n"

/* A configuration with exec whose server is plain HTTP: such credentials are dropped when read, so
 * they are put back for the test. */
static struct vigil_config *exec_config(struct place *p, const char *dir)
{
    char text[2048];
    snprintf(text, sizeof(text),
             "current-context: k\ncontexts: [{name: k, context: {cluster: c, user: u}}]\n"
             "clusters: [{name: c, cluster: {server: 'https://x'}}]\n" EXEC_USER);
    struct vigil_config *c = NULL;
    struct vigil_error err = {0};
    if (vigil_config_parse(vigil_text(text), dir, NULL, &c, &err) < 0)
        fail_msg("%s", err.message);
    c->server = p->url;
    c->is_https = false;
    return c;
}

static void start_exec(struct fake_place *f, const char *dir)
{
    vg_fake_clock_init(&f->clock);
    f->p.opts.mode = VIGIL_OWN_LOOP;
    struct vigil_config *config = exec_config(&f->p, dir);
    assert_int_equal(vg_client_new(config, &f->p.opts, &f->clock.clock, &f->p.client, NULL), 0);
    vigil_config_free(config);
}

static void programs_give_credentials(void **state)
{
    const char *dir = *state;
    char path[512];
    snprintf(path, sizeof(path), "%s/creds", dir);
    /* A token with the number of the run; it expires a minute into the fake clock's day. */
    put_file(
        path,
        "#!/bin/sh\ncd $(dirname $0)\necho $KUBERNETES_EXEC_INFO $1 $GREETING >> runs\n"
        "n=$(wc -l < runs)\n"
        "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
        "\"status\":{\"token\":\"t'$n'\",\"expirationTimestamp\":\"2024-01-01T00:01:00Z\"}}'\n",
        0700);
    struct fake_place f;
    const struct step steps[] = {
        {.body = "1"}, {.body = "2"}, {.status = 401}, {.body = "4"}, {.body = "5"}};
    place_init(&f.p, steps, 5);
    start_exec(&f, dir);
    struct answer a;
    for (int i = 0; i < 5; i++) {
        if (i == 4)
            vg_fake_clock_advance(&f.clock, 70 * VG_NS_PER_S); /* expired */
        ask(f.p.client, "GET", &a);
        await(&f, &a);
    }
    assert_true(has_header(&f.p, 0, "Authorization: Bearer t1\r\n"));
    assert_true(has_header(&f.p, 1, "Authorization: Bearer t1\r\n")); /* kept */
    assert_true(has_header(&f.p, 2, "Authorization: Bearer t1\r\n"));
    assert_true(has_header(&f.p, 3, "Authorization: Bearer t2\r\n")); /* after the 401 */
    assert_true(has_header(&f.p, 4, "Authorization: Bearer t3\r\n"));
    VG_AUTO(arena) arena = {0};
    struct vg_slice runs;
    snprintf(path, sizeof(path), "%s/runs", dir);
    assert_int_equal(vg_config_read_file(&arena, path, &runs), 0);
    assert_non_null(strstr(runs.p, "\"kind\":\"ExecCredential\""));
    assert_non_null(strstr(runs.p, "\"interactive\":false"));
    assert_non_null(strstr(runs.p, "\"cluster\":{\"server\":\"http://127.0.0.1:"));
    assert_non_null(strstr(runs.p, " hello hi\n"));
    fake_done(&f);
}

static void programs_that_fail_are_named(void **state)
{
    const char *dir = *state;
    static const struct {
        const char *script, *words;
    } v[] = {
        {NULL, "get it"},
        {"#!/bin/sh\nexit 3\n", "failed with 3"},
        {"#!/bin/sh\necho hello\n", "not JSON"},
        {"#!/bin/sh\necho '{}'\n", "something else"},
        {"#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v2\"}'\n", "apiVersion"},
        {"#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":"
         "\"client.authentication.k8s.io/v1\",\"status\":{}}'\n",
         "neither token nor"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(v); i++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/creds", dir);
        if (v[i].script)
            put_file(path, v[i].script, 0700);
        struct fake_place f;
        place_init(&f.p, NULL, 0);
        start_exec(&f, dir);
        struct answer a;
        ask(f.p.client, "GET", &a);
        await(&f, &a);
        assert_int_equal(a.err.code, VIGIL_E_UNAUTHORIZED);
        if (!strstr(a.err.message, v[i].words))
            fail_msg("\"%s\" does not say \"%s\"", a.err.message, v[i].words);
        fake_done(&f);
    }
}

static void a_client_may_go_while_a_program_runs(void **state)
{
    const char *dir = *state;
    char path[512];
    snprintf(path, sizeof(path), "%s/creds", dir);
    put_file(path, "#!/bin/sh\nsleep 5 2>/dev/null & wait\n", 0700);
    struct fake_place f;
    place_init(&f.p, NULL, 0);
    start_exec(&f, dir);
    struct answer a;
    ask(f.p.client, "GET", &a);
    for (int i = 0; i < 30; i++)
        step(&f, 0);
    fake_done(&f);
    assert_int_equal(a.err.code, VIGIL_E_CANCELED);
}

/* Its child keeps the output open. What the child is, the script leaves in a file. */
#define HANGS                                                                                      \
    "#!/bin/sh\ncd $(dirname $0)\nsleep 1000 &\necho $! > child.tmp\nmv child.tmp child\nwait\n"

static pid_t child_of(const char *dir, struct fake_place *f)
{
    char path[512];
    int pid = 0;
    snprintf(path, sizeof(path), "%s/child", dir);
    for (FILE *in = NULL; !in;) {
        step(f, 0);
        in = fopen(path, "r");
        if (in) {
            assert_int_equal(fscanf(in, "%d", &pid), 1);
            fclose(in);
        }
    }
    unlink(path);
    return pid;
}

static void await_gone(pid_t pid)
{
    for (int i = 0; i < 5000; i++) {
        char path[64], line[512] = "";
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        FILE *in = fopen(path, "r");
        if (!in)
            return;
        bool is_dead = fgets(line, sizeof(line), in) && strstr(line, ") Z");
        fclose(in);
        if (is_dead)
            return; /* and nobody has reaped it yet */
        poll(NULL, 0, 1);
    }
    fail_msg("process %d lives on", (int)pid);
}

static void a_program_that_hangs_is_named_and_ends_with_its_children(void **state)
{
    const char *dir = *state;
    char path[512];
    snprintf(path, sizeof(path), "%s/creds", dir);
    put_file(path, HANGS, 0700);
    struct fake_place f;
    place_init(&f.p, NULL, 0);
    f.p.opts.timeout_ms = 5000;
    start_exec(&f, dir);
    struct answer a, b = {0};
    ask(f.p.client, "GET", &a);
    pid_t child = child_of(dir, &f);
    vg_fake_clock_advance(&f.clock, 6 * VG_NS_PER_S);
    await(&f, &a); /* the request's time is over: the program is named, not the server */
    assert_int_equal(a.err.code, VIGIL_E_TIMEOUT);
    if (!strstr(a.err.message, "creds"))
        fail_msg("\"%s\" does not name the program", a.err.message);
    assert_null(strstr(a.err.message, f.p.url));

    struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
    o.path = "/x";
    o.timeout_ms = 3600000;
    o.done = on_answer;
    o.arg = &b;
    assert_int_equal(vigil_request(f.p.client, &o, NULL, NULL), 0);
    for (int i = 0; i < 10; i++)
        step(&f, 0);
    vg_fake_clock_advance(&f.clock, 61 * VG_NS_PER_S); /* a program has a minute */
    await(&f, &b);
    assert_int_equal(b.err.code, VIGIL_E_TIMEOUT);
    assert_non_null(strstr(b.err.message, "creds"));
    await_gone(child);
    assert_int_equal(script_asked(f.p.server), 0);

    ask(f.p.client, "GET", &a); /* it is run again, and the client goes meanwhile */
    child = child_of(dir, &f);
    fake_done(&f);
    await_gone(child);
}

static void a_token_of_two_lines_from_a_program_is_refused(void **state)
{
    const char *dir = *state;
    char path[512];
    snprintf(path, sizeof(path), "%s/creds", dir);
    put_file(path,
             "#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":"
             "\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"a\\r\\nX-Evil: 1\"}}'\n",
             0700);
    struct fake_place f;
    place_init(&f.p, NULL, 0);
    start_exec(&f, dir);
    struct answer a;
    ask(f.p.client, "GET", &a);
    for (int i = 0; i < 3000 && !a.is_done && script_asked(f.p.server) == 0; i++)
        step(&f, 0);
    assert_int_equal(script_asked(f.p.server), 0);
    assert_int_equal(a.err.code, VIGIL_E_UNAUTHORIZED);
    assert_non_null(strstr(a.err.message, "creds"));
    fake_done(&f);
}

static void times_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms; /* 0: refused */
    } v[] = {{"2024-01-01T00:01:00Z", 1704067260000},
             {"2024-01-01T01:01:00+01:00", 1704067260000},
             {"2023-12-31T23:31:00.5-00:30", 1704067260000},
             {"2024-01-01", 0},
             {"", 0},
             {"2024-13-01T00:01:00Z", 0},
             {"2024-01-01T00:01:00", 0},
             {"2024-01-01T00:01:00+1:00", 0}};
    for (size_t i = 0; i < VG_ARRAY_LEN(v); i++) {
        int64_t ms = 0;
        int r = vg_exec_time(vg_slice_str(v[i].text), &ms);
        assert_int_equal(r, v[i].ms ? 0 : VIGIL_E_INVALID);
        assert_int_equal(ms, v[i].ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(token_files_are_read_again, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test_setup_teardown(programs_give_credentials, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test_setup_teardown(programs_that_fail_are_named, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test_setup_teardown(a_client_may_go_while_a_program_runs, vg_test_tmpdir_setup,
                                        vg_test_tmpdir_teardown),
        cmocka_unit_test_setup_teardown(a_program_that_hangs_is_named_and_ends_with_its_children,
                                        vg_test_tmpdir_setup, vg_test_tmpdir_teardown),
        cmocka_unit_test_setup_teardown(a_token_of_two_lines_from_a_program_is_refused,
                                        vg_test_tmpdir_setup, vg_test_tmpdir_teardown),
        cmocka_unit_test(times_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
