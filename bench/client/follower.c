/* follower.c - bench_client_follower <kubeconfig> <informers>: libvigil's side of bench_client, as
 * a program of its own. Informers of pods, of all of them or one per node, that count what their
 * handlers are told. It is led by lines on its input and answers on its output:
 *   (begins)  ready
 *   start     synced <objects>, when the handlers have been told all
 *   until N   waiting; seen, after N further updates
 *   rest      rested, having given back what memory it can */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vigil/vigil.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long updates, target, synced;

static void on_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    (void)arg, (void)before, (void)o;
    pthread_mutex_lock(&mu);
    if (++updates == target)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mu);
}

static void on_synced(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&mu);
    synced++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mu);
}

static void must(int r, const struct vigil_error *err)
{
    if (r < 0) {
        fprintf(stderr, "follower: %s\n", err->message);
        exit(1);
    }
}

static struct vigil_informer *follow(struct vigil_client *client, const char *field_selector)
{
    struct vigil_error err = {.message = "no memory"};
    struct vigil_informer_opts opts = VIGIL_INIT(struct vigil_informer_opts);
    struct vigil_handler handler = VIGIL_INIT(struct vigil_handler);
    struct vigil_informer *informer;
    opts.resource = &vigil_pods;
    opts.field_selector = field_selector;
    handler.on_update = on_update;
    handler.on_synced = on_synced;
    must(vigil_informer_new(client, &opts, &informer, &err), &err);
    must(vigil_informer_add_handler(informer, &handler, NULL, &err), &err);
    must(vigil_informer_start(informer), &err);
    return informer;
}

static void start(struct vigil_client *client, struct vigil_informer **informers, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        char node[64];
        snprintf(node, sizeof node, "spec.nodeName=bench-node-%lu", i);
        informers[i] = follow(client, n > 1 ? node : NULL);
    }
    pthread_mutex_lock(&mu);
    while (synced < n)
        pthread_cond_wait(&changed, &mu);
    pthread_mutex_unlock(&mu);
    size_t objects = 0;
    for (unsigned long i = 0; i < n; i++)
        objects += vigil_store_count(vigil_informer_store(informers[i]));
    printf("synced %zu\n", objects);
}

static void until(unsigned long more)
{
    pthread_mutex_lock(&mu);
    target = updates + more;
    printf("waiting\n");
    while (updates < target)
        pthread_cond_wait(&changed, &mu);
    pthread_mutex_unlock(&mu);
    printf("seen\n");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct vigil_error err;
    struct vigil_config *config;
    struct vigil_client *client;
    struct vigil_client_opts opts = VIGIL_INIT(struct vigil_client_opts);
    opts.qps = -1;
    unsigned long n = strtoul(argv[2], NULL, 10);
    struct vigil_informer **informers = calloc(n, sizeof(struct vigil_informer *));
    must(vigil_config_load(argv[1], NULL, &config, &err), &err);
    must(vigil_client_new(config, &opts, &client, &err), &err);
    vigil_config_free(config);
    setlinebuf(stdout);
    printf("ready\n");
    char line[64];
    while (informers && fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "start\n") == 0)
            start(client, informers, n);
        else if (strncmp(line, "until ", 6) == 0)
            until(strtoul(line + 6, NULL, 10));
        else if (strcmp(line, "rest\n") == 0)
            malloc_trim(0), printf("rested\n");
    }
    for (unsigned long i = 0; informers && i < n; i++)
        vigil_informer_free(informers[i]);
    free(informers);
    vigil_client_free(client);
    return 0;
}
