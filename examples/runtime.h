/* runtime.h - a runtime that does as if: a directory with a file for each pod that runs, named by
 * its uid. It outlives the agent, as containers do. */
#ifndef EXAMPLES_RUNTIME_H
#define EXAMPLES_RUNTIME_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pod_sources.h"

/* Start it unless it runs. When it was started; false: it cannot be. */
static inline bool runtime_run(const char *root, const struct vigil_object *pod,
                               struct timespec *ret_since)
{
    char *path = format("%s/%.*s", root, VIGIL_TEXT_ARG(vigil_object_uid(pod)));
    struct stat st;
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    bool is_running = fd >= 0 && fstat(fd, &st) == 0;
    if (is_running && st.st_size == 0 &&
        dprintf(fd, "%.*s\n", VIGIL_TEXT_ARG(vigil_object_key(pod))) > 0)
        say("started %.*s", VIGIL_TEXT_ARG(vigil_object_key(pod)));
    if (is_running)
        *ret_since = st.st_mtim;
    if (fd >= 0)
        close(fd);
    free(path);
    return is_running;
}

static inline void runtime_stop(const char *root, const char *uid)
{
    char *path = format("%s/%s", root, uid);
    if (unlink(path) == 0)
        say("ended %s", uid);
    free(path);
}

/* End what runs and is not among these. */
static inline void runtime_clean_up(const char *root, const struct pod_set *all)
{
    DIR *d = opendir(root);
    for (const struct dirent *e; d && (e = readdir(d));) {
        bool is_wanted = e->d_name[0] == '.';
        for (size_t i = 0; i < all->pods.n && !is_wanted; i++)
            is_wanted = vigil_text_is(vigil_object_uid(all->pods.v[i]), e->d_name);
        if (!is_wanted)
            runtime_stop(root, e->d_name);
    }
    if (d)
        closedir(d);
}

/* status.containerStatuses, without the brackets. */
static inline char *runtime_statuses(const struct vigil_object *pod, bool is_up, const char *since)
{
    struct vigil_value all = vigil_get(pod, "spec.containers"), one;
    struct vigil_iter at = {0};
    char *list = format("%s", "");
    while (vigil_value_next(all, &at, NULL, &one)) {
        struct vigil_value name = vigil_value_get(one, "name"),
                           image = vigil_value_get(one, "image");
        char *state = is_up ? format("\"running\":{\"startedAt\":\"%s\"}", since)
                            : format("\"waiting\":{\"reason\":\"ContainerCreating\"}");
        char *more =
            format("%s%s{\"name\":%.*s,\"image\":%.*s,\"imageID\":\"\",\"restartCount\":0,"
                   "\"ready\":%s,\"started\":%s,\"state\":{%s}}",
                   list, *list ? "," : "", VIGIL_TEXT_ARG(name.raw), VIGIL_TEXT_ARG(image.raw),
                   is_up ? "true" : "false", is_up ? "true" : "false", state);
        free(state);
        free(list);
        list = more;
    }
    return list;
}

#endif
