/* args_test.c - command lines, right and wrong. */
#include "test_support.h"

#include <string.h>

#include "args.h"

/* A command line parted by spaces. */
static bool parse(const char *line, struct vg_args *ret, char *why)
{
    static char text[512];
    static char program[] = "vigil";
    char *argv[32] = {program}, *rest = NULL;
    int argc = 1;
    assert_true(strlen(line) < sizeof text);
    memcpy(text, line, strlen(line) + 1);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return vg_args_parse(argc, argv, ret, why);
}

static struct vg_args good(const char *line)
{
    char why[VG_ARGS_WHY_SIZE] = "";
    struct vg_args a;
    bool ok = parse(line, &a, why);
    assert_string_equal(why, "");
    assert_true(ok);
    return a;
}

static void flags_are_written_in_each_of_their_ways(void **state)
{
    (void)state;
    static const char *const lines[] = {"get pods -n kube -l a=b", "-nkube get -l=a=b pods",
                                        "get --namespace kube --selector=a=b pods",
                                        "--namespace=kube get pods --selector a=b"};
    for (size_t i = 0; i < VG_ARRAY_LEN(lines); i++) {
        struct vg_args a = good(lines[i]);
        assert_int_equal(a.command, VG_CMD_GET);
        assert_string_equal(a.kind, "pods");
        assert_string_equal(a.ns, "kube");
        assert_string_equal(a.labels, "a=b");
    }
    struct vg_args a = good("events -Aw");
    assert_true(a.all_namespaces && a.follow);
    assert_int_equal(good("get pods -w").command, VG_CMD_WATCH);
    assert_int_equal(good("get pods -o yaml").output, VG_OUT_YAML);
}

static void operands_may_follow_two_dashes(void **state)
{
    (void)state;
    struct vg_args a = good("watch -o json -- pods -x");
    assert_int_equal(a.command, VG_CMD_WATCH);
    assert_int_equal(a.output, VG_OUT_JSON);
    assert_string_equal(a.name, "-x");
}

static void help_and_version_win_over_the_rest(void **state)
{
    (void)state;
    assert_int_equal(good("get -h").command, VG_CMD_HELP);
    assert_int_equal(good("--help nonsense").command, VG_CMD_HELP);
    assert_int_equal(good("help").command, VG_CMD_HELP);
    assert_int_equal(good("--version").command, VG_CMD_VERSION);
    static const char *const of_get[] = {"help get", "get -h", "--help get pods"};
    struct vg_args a = good("help");
    assert_ptr_equal(vg_help_of(&a), vg_help);
    for (size_t i = 0; i < VG_ARRAY_LEN(of_get); i++) {
        a = good(of_get[i]);
        assert_memory_equal(vg_help_of(&a), "vigil get ", 10);
    }
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *line, *why;
    } rows[] = {
        {"", "a command is missing"},
        {"gte pods", "no command \"gte\""},
        {"get", "Name a kind"},
        {"get a b c", "too many"},
        {"top x", "too many"},
        {"get pods --bogus", "no flag --bogus"},
        {"get pods -x", "no flag -x"},
        {"get pods -n", "needs a value"},
        {"get pods --all-namespaces=1", "takes no value"},
        {"top -w", "top has no flag --watch"},
        {"top -l a=b", "top has no flag --selector"},
        {"get pods -o xml", "table, wide, name, json or yaml"},
        {"get pods -n a -A", "leave out one"},
        {"get pods x -A", "in one namespace"},
        {"get pods --token t", "goes with --server"},
        {"get pods --server http://x --context c", "in place of a kubeconfig"},
        {"get pods -s http://x --client-key k", "go together"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        char why[VG_ARGS_WHY_SIZE] = "";
        struct vg_args a;
        assert_false(parse(rows[i].line, &a, why));
        if (!strstr(why, rows[i].why))
            fail_msg("%s: \"%s\" does not have \"%s\"", rows[i].line, why, rows[i].why);
    }
}

static void every_flag_is_in_the_help(void **state)
{
    (void)state;
    static const char *const flags[] = {"--namespace",
                                        "--all-namespaces",
                                        "--selector",
                                        "--field-selector",
                                        "--output",
                                        "--watch",
                                        "--kubeconfig",
                                        "--context",
                                        "--server",
                                        "--token",
                                        "--certificate-authority",
                                        "--client-certificate",
                                        "--client-key",
                                        "--insecure-skip-tls-verify",
                                        "--help",
                                        "--version"};
    for (size_t i = 0; i < VG_ARRAY_LEN(flags); i++)
        assert_non_null(strstr(vg_help, flags[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_written_in_each_of_their_ways),
        cmocka_unit_test(operands_may_follow_two_dashes),
        cmocka_unit_test(help_and_version_win_over_the_rest),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(every_flag_is_in_the_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
