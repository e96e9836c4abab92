/* terminal.h - signals, keys and the screen of a program that draws on a terminal.
 * Signals are caught from vg_terminal_catch on and told by vg_terminal_turn. The screen is the
 * terminal's second one, so that what was there before comes back when it is left; a stop (Ctrl-Z)
 * leaves it and going on enters it again. Thread: the main one; one per process. */
#ifndef VG_CLI_TERMINAL_H
#define VG_CLI_TERMINAL_H

#include <stdbool.h>

#include "base/buf.h"

struct vigil_client;

/* What a turn saw. */
enum {
    VG_SAW_INTERRUPT = 1u << 0, /* SIGINT, SIGTERM, SIGHUP */
    VG_SAW_CHANGE = 1u << 1     /* size or keys: draw anew */
};

enum vg_key {
    VG_KEY_NONE,
    VG_KEY_QUIT,
    VG_KEY_UP,
    VG_KEY_DOWN,
    VG_KEY_PAGE_UP,
    VG_KEY_PAGE_DOWN,
    VG_KEY_HOME,
    VG_KEY_END
};

struct vg_terminal {
    bool is_on; /* the screen is ours */
    unsigned rows, columns;
    enum vg_key key; /* of the last turn */
};

/* Is the screen ours to draw on: standard input and output both a terminal that can be drawn on? */
bool vg_terminal_is_there(void);
/* Catch signals. 0 or -errno. */
VG_CHECK int vg_terminal_catch(void);
/* Enter the screen, leave it. */
VG_CHECK int vg_terminal_enter(struct vg_terminal *t);
void vg_terminal_leave(struct vg_terminal *t);
/* Wait for the client's loop, a signal, a key or max_ms (-1: for ever), and step the client. */
unsigned vg_terminal_turn(struct vg_terminal *t, struct vigil_client *c, int max_ms);
/* The first line that is shown, after the key of the last turn; it may be past `end`, where the key
 * End goes. False: the key was the one to quit with. */
bool vg_terminal_scroll(const struct vg_terminal *t, size_t page, size_t end, size_t *at);

/* ---- frames: built whole, written at once, without flicker ---- */
enum vg_style { VG_PLAIN, VG_HEAD, VG_ADDED, VG_CHANGED, VG_DELETED, VG_DIM };
VG_CHECK int vg_frame_begin(struct vg_buf *frame);
/* The text must fit the width: it is not cut here. The last line of a screen has no break. */
VG_CHECK int vg_frame_line(struct vg_buf *frame, enum vg_style style, struct vg_slice text,
                           bool is_last);
VG_CHECK int vg_frame_end(struct vg_buf *frame);

/* Write everything. 0 or -errno. */
VG_CHECK int vg_write_all(int fd, struct vg_slice s);

#endif
