/* hello_informer.c - lists and watches all pods of the cluster that kubectl talks to. */
#include <stdio.h>
#include <unistd.h>
#include <vigil/vigil.h>

static void say(void *out, const char *what, const struct vigil_object *pod)
{
    struct vigil_text key = vigil_object_key(pod), phase = vigil_get_string(pod, "status.phase");
    fprintf(out, "%s %.*s %.*s\n", what, VIGIL_TEXT_ARG(key), VIGIL_TEXT_ARG(phase));
}
static void on_add(void *out, const struct vigil_object *pod, bool is_initial)
{
    say(out, is_initial ? "found" : "added", pod);
}
static void on_update(void *out, const struct vigil_object *before, const struct vigil_object *pod)
{
    say(out, before == pod ? "still" : "changed", pod);
}
static void on_delete(void *out, const struct vigil_object *pod, bool is_tombstone)
{
    say(out, is_tombstone ? "vanished" : "deleted", pod);
}
int main(void)
{
    struct vigil_error err;
    struct vigil_config *config;
    struct vigil_client *client;
    struct vigil_informer *pods;
    struct vigil_informer_opts opts = {.size = sizeof(opts), .resource = &vigil_pods};
    struct vigil_handler h = {sizeof(h), on_add, on_update, on_delete, .arg = stdout};
    setlinebuf(stdout);
    if (vigil_config_load(NULL, NULL, &config, &err) < 0 ||
        vigil_client_new(config, NULL, &client, &err) < 0 ||
        vigil_informer_new(client, &opts, &pods, &err) < 0 ||
        vigil_informer_add_handler(pods, &h, NULL, &err) < 0)
        return fprintf(stderr, "%s\n", err.message), 1;
    if (vigil_informer_start(pods) == 0 && vigil_informer_wait_sync(pods, 0) == 0)
        printf("%zu pods\n", vigil_store_count(vigil_informer_store(pods)));
    pause();
}
