/* fuzz_replay.c - main() for a fuzz target built without libFuzzer: runs it over the files and
 * folders named on the command line, so that every corpus entry is a regression test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    struct stat st;
    if (fstat(fileno(f), &st) < 0 || st.st_size < 0) {
        fclose(f);
        return -1;
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size ? size : 1); /* exact size: ASan sees one byte too far */
    int ok = data && fread(data, 1, size, f) == size;
    fclose(f);
    if (ok)
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    return ok ? 1 : -1;
}

static int replay(const char *path)
{
    DIR *d = opendir(path);
    if (!d)
        return replay_file(path);
    int total = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        char child[4096];
        snprintf(child, sizeof child, "%s/%s", path, e->d_name);
        int n = replay(child);
        if (n < 0) {
            closedir(d);
            return -1;
        }
        total += n;
    }
    closedir(d);
    return total;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = replay(argv[i]);
        if (n < 0)
            return 1;
        total += n;
    }
    printf("%d inputs replayed\n", total);
    return total > 0 ? 0 : 1;
}
