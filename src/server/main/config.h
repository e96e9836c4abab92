/* config.h - what vigild can be told, on the command line or in a file.
 * One table (config.c) has a row for each flag; parsing, defaults, --help and the file all come
 * from it. Names are kube-apiserver's where the meaning is the same. Everything is checked before
 * anything is opened. Thread: main; what was read does not change afterwards. */
#ifndef VG_MAIN_CONFIG_H
#define VG_MAIN_CONFIG_H

#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"

/* 8: flags that may be given several times. */
#define VG_CONFIG_LISTS_MAX 8u

struct vg_config {
    /* where and what */
    const char *data_dir, *storage;
    const char *bind_address, *advertise_address;
    uint64_t secure_port, insecure_port;
    uint64_t loops; /* 0: as many as there are CPUs */
    /* certificates, users, rights */
    const char *tls_cert_file, *tls_key_file, *tls_min_version, *tls_san, *client_ca_file;
    const char *token_auth_file, *authorization_mode;
    const char *account_issuers, *account_audiences, *account_key_files, *account_signing_key_file;
    const char *account_jwks_uri;
    uint64_t account_token_max_s;
    bool account_token_extends;
    /* requests */
    uint64_t request_timeout_ms, min_request_timeout_s;
    uint64_t max_inflight, max_mutating, max_watches_per_user, max_body_bytes;
    uint64_t max_request_bytes, max_body_depth;
    uint64_t slow_ms;
    /* connections */
    uint64_t max_connections, max_connections_per_address, max_handshakes, max_streams;
    uint64_t max_handshakes_per_address;
    uint64_t max_header_bytes, max_resets, unsent_bytes, min_rate;
    uint64_t idle_ms, header_ms, stall_ms, handshake_ms;
    /* cache and store */
    bool has_fairness;
    bool watch_cache;
    uint64_t watch_cache_size;
    const char *watch_cache_sizes;
    uint64_t watch_cache_window_ms;
    uint64_t scrub_ms;
    uint64_t event_ttl_ms;
    uint64_t compaction_ms;
    bool unsafe_no_fsync;
    /* what it does by itself */
    const char *controllers;
    uint64_t lease_ms;
    const char *service_ips, *service_ports;
    const char *plugins_on, *plugins_off;
    /* etcd */
    const char *etcd_servers, *etcd_ca_file, *etcd_cert_file, *etcd_key_file, *etcd_prefix;
    const char *etcd_username, *etcd_password_file, *storage_media_type;
    uint64_t etcd_connect_ms, etcd_health_ms;
    /* ending */
    uint64_t shutdown_delay_ms, shutdown_grace_ms;
    /* log */
    const char *log_level, *log_components, *log_format;
    uint64_t verbosity;
    /* the rest */
    const char *config_file;
    bool is_help, is_version; /* then nothing else counts */
    struct vg_arena arena;    /* of texts from the file */
    /* While it is read: the lists that this source has begun. */
    const void *begun[VG_CONFIG_LISTS_MAX];
    size_t n_begun;
};

/* argv is borrowed. VIGIL_E_INVALID or -errno with a sentence that says what to do. */
VG_CHECK int vg_config_read(int argc, char **argv, struct vg_config *ret_config,
                            struct vg_status *reterr_status);
void vg_config_done(struct vg_config *c);
void vg_config_help(FILE *to);

#endif
