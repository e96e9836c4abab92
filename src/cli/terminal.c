/* terminal.c - the terminal: size, keys, signals, frames. Signals only leave a mark and wake the
 * poll through a pipe, so it does not matter which thread they hit. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "terminal.h"
#include "vigil/client.h"

static int wake[2] = {-1, -1};
static volatile sig_atomic_t was_interrupted, was_resized, was_stopped;
static struct termios saved;

/* ---- signals ---- */

static void on_signal(int number)
{
    int keep = errno;
    if (number == SIGWINCH)
        was_resized = 1;
    else if (number == SIGTSTP)
        was_stopped = 1;
    else
        was_interrupted = 1;
    ssize_t n = write(wake[1], "", 1); /* full: it wakes as well */
    (void)n;
    errno = keep;
}

int vg_terminal_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (wake[0] < 0 && pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < VG_ARRAY_LEN(numbers); i++)
        if ((numbers[i] != SIGTSTP || vg_terminal_is_there()) &&
            sigaction(numbers[i], &sa, NULL) < 0)
            return -errno;
    return 0;
}

/* ---- the screen ---- */

bool vg_terminal_is_there(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

static void measure(struct vg_terminal *t)
{
    struct winsize w = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0;
    t->rows = known && w.ws_row ? w.ws_row : 24;
    t->columns = known && w.ws_col ? VG_MAX(w.ws_col, 2u) : 80; /* the last one stays free */
}

int vg_write_all(int fd, struct vg_slice s)
{
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            if (poll(&p, 1, -1) < 0 && errno != EINTR)
                return -errno;
        } else if (n < 0 && errno != EINTR) {
            return -errno;
        } else if (n > 0) {
            s = (struct vg_slice){s.p + n, s.n - (size_t)n};
        }
    }
    return 0;
}

int vg_terminal_enter(struct vg_terminal *t)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &saved) < 0)
        return -errno;
    raw = saved;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return -errno;
    t->is_on = true;
    measure(t);
    /* The second screen, no cursor, long lines are not broken. */
    return vg_write_all(STDOUT_FILENO, VG_SLICE_LIT("\x1b[?1049h\x1b[?25l\x1b[?7l"));
}

void vg_terminal_leave(struct vg_terminal *t)
{
    if (!t->is_on)
        return;
    t->is_on = false;
    int r = vg_write_all(STDOUT_FILENO, VG_SLICE_LIT("\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"));
    (void)r; /* nobody is left to be told */
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
}

static void stop_and_go_on(struct vg_terminal *t)
{
    bool was_on = t->is_on;
    vg_terminal_leave(t);
    (void)raise(SIGSTOP);
    if (was_on && vg_terminal_enter(t) < 0)
        was_interrupted = 1;
}

/* ---- keys ---- */

static const struct {
    const char *bytes;
    enum vg_key key;
} keys[] = {
    {"q", VG_KEY_QUIT},
    {"k", VG_KEY_UP},
    {"\x1b[A", VG_KEY_UP},
    {"\x1bOA", VG_KEY_UP},
    {"j", VG_KEY_DOWN},
    {"\x1b[B", VG_KEY_DOWN},
    {"\x1bOB", VG_KEY_DOWN},
    {"\x1b[5~", VG_KEY_PAGE_UP},
    {"\x1b[6~", VG_KEY_PAGE_DOWN},
    {" ", VG_KEY_PAGE_DOWN},
    {"g", VG_KEY_HOME},
    {"\x1b[H", VG_KEY_HOME},
    {"G", VG_KEY_END},
    {"\x1b[F", VG_KEY_END},
};

/* Only the first of keys that come at once counts: held keys come again. false: standard input is
 * at its end. */
static bool read_key(struct vg_terminal *t)
{
    char bytes[64];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    for (size_t i = 0; i < VG_ARRAY_LEN(keys); i++)
        if (vg_slice_has_prefix(vg_slice(bytes, (size_t)n), vg_slice_str(keys[i].bytes)))
            t->key = keys[i].key;
    return true;
}

/* ---- turns ---- */

static int shorter(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : VG_MIN(a, b);
}

unsigned vg_terminal_turn(struct vg_terminal *t, struct vigil_client *c, int max_ms)
{
    struct pollfd fds[3] = {{.fd = vigil_client_fd(c), .events = POLLIN},
                            {.fd = wake[0], .events = POLLIN},
                            {.fd = t->is_on ? STDIN_FILENO : -1, .events = POLLIN}};
    unsigned saw = 0;
    char bytes[64];
    t->key = VG_KEY_NONE;
    int n = poll(fds, VG_ARRAY_LEN(fds), shorter(max_ms, vigil_client_timeout_ms(c)));
    if (n > 0 && fds[1].revents)
        while (read(wake[0], bytes, sizeof bytes) > 0)
            continue;
    if (n > 0 && fds[2].revents && !read_key(t))
        was_interrupted = 1;
    if (was_stopped) {
        was_stopped = 0;
        stop_and_go_on(t);
        saw |= VG_SAW_CHANGE;
    }
    if (was_resized) {
        was_resized = 0;
        measure(t);
        saw |= VG_SAW_CHANGE;
    }
    if (t->key)
        saw |= VG_SAW_CHANGE;
    vigil_client_step(c);
    return saw | (was_interrupted ? (unsigned)VG_SAW_INTERRUPT : 0);
}

bool vg_terminal_scroll(const struct vg_terminal *t, size_t page, size_t end, size_t *at)
{
    switch (t->key) {
    case VG_KEY_QUIT:
        return false;
    case VG_KEY_UP:
        *at -= *at > 0;
        break;
    case VG_KEY_DOWN:
        ++*at;
        break;
    case VG_KEY_PAGE_UP:
        *at -= VG_MIN(*at, page);
        break;
    case VG_KEY_PAGE_DOWN:
        *at += page;
        break;
    case VG_KEY_HOME:
        *at = 0;
        break;
    case VG_KEY_END:
        *at = end;
        break;
    case VG_KEY_NONE:
        break;
    }
    return true;
}

/* ---- frames ---- */

/* Terminals that know mode 2026 show a frame at once; others pass over it. */
int vg_frame_begin(struct vg_buf *frame)
{
    vg_buf_clear(frame);
    return vg_buf_printf(frame, "\x1b[?2026h\x1b[H");
}

int vg_frame_line(struct vg_buf *frame, enum vg_style style, struct vg_slice text, bool is_last)
{
    static const char *const styles[][2] = {
        [VG_PLAIN] = {"", ""},
        [VG_HEAD] = {"\x1b[1m", "\x1b[1m"},
        [VG_ADDED] = {"\x1b[1;32m", "\x1b[1m"},
        [VG_CHANGED] = {"\x1b[1;33m", "\x1b[1m"},
        [VG_DELETED] = {"\x1b[9;31m", "\x1b[9m"},
        [VG_DIM] = {"\x1b[2m", "\x1b[2m"},
    };
    const char *no_color = getenv("NO_COLOR"); /* see no-color.org */
    bool is_plain = no_color && *no_color;
    return vg_buf_printf(frame, "%s%.*s%s\x1b[K%s", styles[style][is_plain], VG_SLICE_ARG(text),
                         style == VG_PLAIN ? "" : "\x1b[0m", is_last ? "" : "\r\n");
}

int vg_frame_end(struct vg_buf *frame)
{
    return vg_buf_printf(frame, "\x1b[J\x1b[?2026l");
}
