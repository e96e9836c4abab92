/* share_test.c - what requests may hold, of a connection, an address and in all; whose turn it is,
 * and who gives way. */
#include "server_testing.h"

#define MIB (1u << 20)

/* ---- the counters ---- */

static struct vg_conn *conn_of(struct net_test *t, struct vg_net_address *address)
{
    struct vg_conn *conn;
    assert_int_equal(vg_conn_new_detached(t->server, &conn), 0);
    assert_int_equal(vg_h1_new(conn, &conn->codec), 0);
    conn->address = address;
    return conn;
}

static void let_go(struct vg_conn *conn)
{
    vg_share_give(conn, conn->share.held);
    assert_int_equal(conn->share.charged, 0);
    vg_conn_free_detached(conn, VIGIL_E_CANCELED);
}

/* Takes steps of 4 KiB until it is refused; how much it has then. */
static uint64_t take_all(struct vg_conn *conn)
{
    while (vg_share_hold(conn, VG_SHARE_STEP) == 0)
        ;
    return conn->share.held;
}

static void a_connection_has_its_share(void **state)
{
    struct net_test *t = *state;
    struct vg_conn *conn = conn_of(t, NULL);
    assert_int_equal(take_all(conn), VG_SHARE_FREE + 2 * 64 * 1024);
    vg_share_authenticated(conn);
    assert_int_equal(take_all(conn), VG_SHARE_FREE + 64 * MIB);
    assert_int_equal(atomic_load(&t->shared->share.held), 64 * MIB);
    let_go(conn);
    assert_int_equal(atomic_load(&t->shared->share.held), 0);
    assert_int_equal(atomic_load(&t->shared->share.unauthenticated), 0);
}

#define MANY 1024

/* Unauthenticated connections of one address get a sixteenth, those of all addresses a quarter. One
 * more gets its free bytes, and all that is left once it has authenticated. */
static void unauthenticated_connections_leave_a_reserve(void **state)
{
    struct net_test *t = *state;
    static struct vg_net_address addresses[8];
    static struct vg_conn *conns[MANY];
    memset(addresses, 0, sizeof addresses);
    for (int i = 0; i < MANY; i++) {
        conns[i] = conn_of(t, &addresses[i / (MANY / 8)]);
        take_all(conns[i]);
        assert_true(conns[i]->share.held >= VG_SHARE_FREE);
        if (i == MANY / 8 - 1)
            assert_int_equal(atomic_load(&addresses[0].share.unauthenticated), 16 * MIB);
    }
    assert_int_equal(atomic_load(&t->shared->share.unauthenticated), 64 * MIB);
    assert_int_equal(atomic_load(&t->shared->share.held), 64 * MIB);
    struct vg_conn *admin = conn_of(t, &addresses[0]);
    assert_int_equal(take_all(admin), VG_SHARE_FREE);
    vg_share_authenticated(admin);
    assert_int_equal(take_all(admin), VG_SHARE_FREE + 64 * MIB);
    let_go(admin);
    for (int i = 0; i < MANY; i++)
        let_go(conns[i]);
    assert_int_equal(atomic_load(&addresses[0].share.held), 0);
    assert_int_equal(atomic_load(&t->shared->share.unauthenticated), 0);
}

static void authenticated_connections_of_an_address_have_a_half(void **state)
{
    struct net_test *t = *state;
    static struct vg_net_address here, there;
    struct vg_conn *conns[5];
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    uint64_t sum = 0;
    for (int i = 0; i < 5; i++) {
        conns[i] = conn_of(t, i < 4 ? &here : &there);
        vg_share_authenticated(conns[i]);
        take_all(conns[i]);
        sum += i < 4 ? conns[i]->share.charged : 0;
    }
    assert_int_equal(sum, 128 * MIB);
    assert_int_equal(conns[4]->share.charged, 64 * MIB);
    for (int i = 0; i < 5; i++)
        let_go(conns[i]);
}

/* ---- requests ---- */

/* An answer that nobody takes: its request is held no longer than until it is written. */
static void an_answered_request_holds_nothing(void **state)
{
    struct net_test *t = *state;
    static char field[30000];
    struct vg_conn *conn = conn_of(t, NULL);
    t->are_unauthenticated = true;
    memset(field, 'x', sizeof field - 1);
    vg_conn_feed(conn, "GET /now HTTP/1.1\r\nHost: a\r\nX: ", 31);
    vg_conn_feed(conn, field, sizeof field - 1);
    assert_true(conn->share.held >= sizeof field - 1);
    vg_conn_feed(conn, "\r\n\r\n", 4);
    vg_conn_turn(conn);
    assert_true(conn->out.n > 0);
    assert_int_equal(conn->share.held, 0);
    vg_conn_free_detached(conn, VIGIL_E_CANCELED);
}

static void bytes_read_ahead_count(void **state)
{
    struct net_test *t = *state;
    static char junk[1000];
    struct vg_conn *conn = conn_of(t, NULL);
    vg_conn_feed(conn, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n", 31);
    uint64_t before = conn->share.held;
    vg_conn_feed(conn, junk, sizeof junk);
    assert_int_equal(conn->share.held, before + sizeof junk);
    vg_conn_free_detached(conn, VIGIL_E_CANCELED);
}

/* ---- turns ---- */

static int authenticated_client(struct net_test *t)
{
    int fd = adopt(t);
    t->are_unauthenticated = false;
    say(fd, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(t, fd, "now");
    t->are_unauthenticated = true;
    return fd;
}

static struct net_test *slow_test;
static int n_heads, first_authenticated;

/* Each unauthenticated request takes 2 ms of the loop. */
static void slow_on_head(struct vg_http_exchange *x, void *arg)
{
    net_on_head(x, arg);
    if (x->conn->share.is_authenticated && first_authenticated < 0)
        first_authenticated = n_heads;
    n_heads++;
    if (!x->conn->share.is_authenticated)
        vg_fake_clock_advance(&slow_test->clock, 2 * VG_NS_PER_MS);
}

/* Twenty unauthenticated clients and an administrator are ready together. Three of the twenty have
 * their turn, then the administrator is served, and then the others, in the turns to come. */
static void unauthenticated_connections_have_a_part_of_each_turn(void **state)
{
    struct net_test *t = *state;
    int others[20], admin = authenticated_client(t);
    slow_test = t;
    n_heads = 0;
    first_authenticated = -1;
    t->handler.on_head = slow_on_head;
    for (int i = 0; i < 20; i++) {
        others[i] = adopt(t);
        say(others[i], "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    vg_loop_turn(t->loop, false);
    assert_int_equal(n_heads, 3);
    say(admin, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    vg_loop_turn(t->loop, false);
    assert_int_equal(first_authenticated, 3); /* before the fourth */
    hear(t, admin, "now");
    for (int i = 0; i < 20; i++) {
        hear(t, others[i], "now");
        close(others[i]);
    }
    assert_int_equal(n_heads, 21);
    close(admin);
    net_turns(t, 3);
}

/* ---- giving way ---- */

static bool is_cut(struct net_test *t, int fd)
{
    for (int i = 0; i < 50; i++) {
        net_turns(t, 1);
        if (recv(fd, &(char){0}, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

/* The address has all the connections it may have: the oldest that has not
 * authenticated is cut for a new one when
 * it has had its second, and nobody else does. */
static void the_oldest_unauthenticated_connection_is_cut(void **state)
{
    (void)state;
    static struct net_test t;
    struct vg_http_limits limits = {.connections_per_address = 3};
    struct vg_listener *l = NULL;
    net_test_open(&t, &limits);
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
    assert_int_equal(vg_http_server_listen(t.server, l, NULL), 0);
    uint16_t port = vg_listener_port(l);
    int admin = connect_to(port);
    say(admin, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(&t, admin, "now");
    int old = connect_to(port), newer = connect_to(port);
    net_turns(&t, 3);
    int early = connect_to(port);
    assert_true(is_cut(&t, early)); /* nobody has had a second */
    net_pass(&t, 1001);
    int late = connect_to(port);
    assert_true(is_cut(&t, old));
    say(late, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(&t, late, "now");
    say(admin, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(&t, admin, "now");
    int fds[] = {admin, old, newer, early, late};
    for (size_t i = 0; i < VG_ARRAY_LEN(fds); i++)
        close(fds[i]);
    net_turns(&t, 3);
    vg_http_server_free(t.server);
    assert_int_equal(vg_http_server_new(t.shared, t.loop, &t.server), 0);
    vg_listener_free(l);
    net_test_close(&t);
}

/* ---- memory ---- */

/* When a crowd has left for two seconds, memory is given back once. */
static void memory_goes_back_after_a_crowd(void **state)
{
    struct net_test *t = *state;
    static int fds[300];
    for (size_t i = 0; i < VG_ARRAY_LEN(fds); i++)
        fds[i] = adopt(t);
    net_pass(t, 10000);
    assert_int_equal(t->server->counts.trims, 0);
    for (size_t i = 0; i < VG_ARRAY_LEN(fds); i++)
        close(fds[i]);
    for (int i = 0; i < 1000 && vg_http_server_connections(t->server); i++)
        net_pass(t, 1);
    assert_int_equal(vg_http_server_connections(t->server), 0);
    net_turns(t, 2);
    net_pass(t, 2001);
    assert_int_equal(t->server->counts.trims, 1);
    net_pass(t, 60000);
    assert_int_equal(t->server->counts.trims, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_connection_has_its_share),
        T(unauthenticated_connections_leave_a_reserve),
        T(authenticated_connections_of_an_address_have_a_half),
        T(an_answered_request_holds_nothing),
        T(bytes_read_ahead_count),
        T(unauthenticated_connections_have_a_part_of_each_turn),
        cmocka_unit_test(the_oldest_unauthenticated_connection_is_cut),
        T(memory_goes_back_after_a_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
