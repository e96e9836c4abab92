/* slow_disk.c - slow_disk FILE PROGRAM ARGS...: runs a program whose syncs take as long as FILE
 * says. FILE holds a number of milliseconds and may change while the program runs. It works for
 * programs that make their system calls themselves, as Go's do: a seccomp filter sends fsync and
 * fdatasync to this process, which waits and then lets the kernel go on with the call. Needs no
 * privileges. The program is the child; what ends it ends this process too, with the same status,
 * and a signal to this process ends the child. Exit 77: this kernel does not allow it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_NOT_ALLOWED 77

/* Native calls alone: the number is looked at, and a program of another architecture is not ours.
 */
static int make_listener(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fsync, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fdatasync, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

/* The listener goes from the child, which has the filter, to the parent, which must not have it. */
static int send_fd(int socket, int fd)
{
    char byte = 0;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = sizeof control.room,
    };
    memset(&control, 0, sizeof control);
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

static int receive_fd(int socket)
{
    char byte;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = sizeof control.room,
    };
    int fd = -1;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || message.msg_controllen == 0)
        return -1;
    memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
    return fd;
}

static long milliseconds_in(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

static void wait_as_said(const char *path)
{
    long ms = milliseconds_in(path);
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    if (ms > 0)
        while (nanosleep(&left, &left) < 0 && errno == EINTR)
            ;
}

/* Until the listener has nobody left to listen to. */
static void serve(int listener, const char *path)
{
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    for (;;) {
        struct seccomp_notif call;
        struct seccomp_notif_resp answer;
        if (poll(&waiting, 1, -1) > 0 && (waiting.revents & (POLLHUP | POLLERR)))
            return;
        if (!(waiting.revents & POLLIN))
            continue;
        memset(&call, 0, sizeof call);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0) {
            if (errno == EINTR || errno == ENOENT) /* ENOENT: the caller died meanwhile */
                continue;
            return;
        }
        wait_as_said(path);
        memset(&answer, 0, sizeof answer);
        answer.id = call.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0 && errno != ENOENT)
            return;
    }
}

static void run_program(int socket, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* killed with the one that it cannot sync without */
    int listener = make_listener();
    if (listener < 0 || send_fd(socket, listener) < 0)
        _exit(EXIT_NOT_ALLOWED);
    close(listener);
    close(socket);
    execvp(argv[0], argv);
    fprintf(stderr, "slow_disk: cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(1);
}

int main(int argc, char **argv)
{
    int pair[2], status = 0;
    if (argc < 3) {
        fputs("write: slow_disk FILE PROGRAM ARGS...\n", stderr);
        return 2;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return 1;
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0)
        run_program(pair[1], argv + 2);
    close(pair[1]);
    int listener = receive_fd(pair[0]);
    if (listener >= 0)
        serve(listener, argv[1]);
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return 128 + WTERMSIG(status);
    return WEXITSTATUS(status);
}
