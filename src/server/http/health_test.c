/* Tests of health.c: the words are those that probes and people read. */
#include "test_support.h"

#include "health.h"

static const char *say(void *arg)
{
    return arg;
}

static struct vg_health make(const char *store)
{
    struct vg_health h;
    vg_health_init(&h);
    const struct vg_health_check store_check = {"etcd", VG_LIVEZ | VG_READYZ | VG_HEALTHZ, say,
                                                (void *)(uintptr_t)store, false};
    const struct vg_health_check ready_check = {"hook/ready", VG_READYZ, say, NULL, false};
    assert_true(vg_health_add(&h, &store_check));
    assert_true(vg_health_add(&h, &ready_check));
    return h;
}

static void answers(const struct vg_health *h, const char *path, int code, bool sniff,
                    const char *want)
{
    char decoded[256];
    struct vg_target t;
    struct vg_health_answer a;
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_target_parse(VG_HTTP_GET, vg_slice_str(path), decoded, &t, NULL), 0);
    int r = vg_health_answer(h, &t, &out, &a);
    if (code == 404) {
        assert_int_equal(r, VIGIL_E_NOT_FOUND);
        return;
    }
    assert_int_equal(r, 0);
    assert_int_equal(a.code, code);
    assert_int_equal(a.is_sniffable, sniff);
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(want));
}

static void the_well_say_ok(void **state)
{
    (void)state;
    struct vg_health h = make(NULL);
    answers(&h, "/livez", 200, false, "ok");
    answers(&h, "/readyz", 200, false, "ok");
    answers(&h, "/healthz", 200, false, "ok");
    answers(&h, "/livez/ping", 200, true, "ok");
    answers(&h, "/readyz/hook/ready", 200, true, "ok");
    answers(&h, "/livez/hook/ready", 404, false, NULL);
    answers(&h, "/livez/", 404, false, NULL);
    answers(&h, "/livezz", 404, false, NULL);
}

static void verbose_lists_the_checks(void **state)
{
    (void)state;
    struct vg_health h = make(NULL);
    answers(&h, "/livez?verbose", 200, false,
            "[+]ping ok\n[+]log ok\n[+]etcd ok\nlivez check passed\n");
    answers(&h, "/readyz?verbose=1", 200, false,
            "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]hook/ready ok\nreadyz check passed\n");
    answers(&h, "/livez?verbose&exclude=etcd", 200, false,
            "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\nlivez check passed\n");
    answers(&h, "/livez?verbose&exclude=nosuch&exclude=also&exclude=nosuch", 200, false,
            "[+]ping ok\n[+]log ok\n[+]etcd ok\n"
            "warn: some health checks cannot be excluded: no matches for \"also\",\"nosuch\"\n"
            "livez check passed\n");
}

static void the_ill_say_which_but_not_why(void **state)
{
    (void)state;
    struct vg_health h = make("disk on fire");
    answers(&h, "/livez", 500, false,
            "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\nlivez check failed\n");
    answers(&h, "/livez?exclude=etcd", 200, false, "ok");
    answers(&h, "/livez/etcd", 500, false, "internal server error: disk on fire\n");
    answers(&h, "/livez/ping", 200, true, "ok");
}

static void a_notice_says_why_and_fails_nothing(void **state)
{
    (void)state;
    struct vg_health h = make(NULL);
    const struct vg_health_check notice = {"space", VG_READYZ, say, (void *)(uintptr_t) "no room",
                                           true};
    assert_true(vg_health_add(&h, &notice));
    answers(&h, "/readyz", 200, false, "ok");
    answers(&h, "/readyz?verbose", 200, false,
            "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]hook/ready ok\n[!]space: no room\n"
            "readyz check passed\n");
    answers(&h, "/readyz/space", 500, false, "internal server error: no room\n");
}

static int count_path(void *arg, const char *path)
{
    int *n = arg;
    assert_int_equal(path[0], '/');
    ++*n;
    return 0;
}

static void every_check_has_a_path(void **state)
{
    (void)state;
    struct vg_health h = make(NULL);
    int n = 0;
    assert_int_equal(vg_health_paths(&h, count_path, &n), 0);
    assert_int_equal(n, 3 + 3 * 3 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_well_say_ok),
        cmocka_unit_test(verbose_lists_the_checks),
        cmocka_unit_test(the_ill_say_which_but_not_why),
        cmocka_unit_test(a_notice_says_why_and_fails_nothing),
        cmocka_unit_test(every_check_has_a_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
