/* serve.c - the driver's server as a process, for tests in other languages: prints its port and
 * serves until its standard input ends. The first argument names the engine. */
#include <stdio.h>

#include "driver.h"

int main(int argc, char **argv)
{
    struct vg_adrv d;
    struct vg_adrv_opts opts = {
        .engine = argc > 1 ? argv[1] : "mem", .n_loops = 2, .storage = {.unsafe_no_fsync = true}};
    if (!vg_adrv_has(opts.engine))
        return 77;
    vg_adrv_open(&d, &opts);
    printf("port %u\n", d.port);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    vg_adrv_close(&d);
    return 0;
}
