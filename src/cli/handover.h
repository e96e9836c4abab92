/* handover.h - commands that other programs do: those that open a store, or speak to a server past
 * libvigil, must not be part of vigil, which sees nothing but the public headers.
 * Thread: main, before there is another. */
#ifndef VG_CLI_HANDOVER_H
#define VG_CLI_HANDOVER_H

/* If the first argument is such a command, its program takes the place of this process: found
 * beside vigil, else by PATH. Returns if it is not, or with an exit status if there is no such
 * program; -1: not such a command. */
int vg_handover(int argc, char **argv);

#endif
