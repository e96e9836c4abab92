/* config.c - the table of flags, and --help. */
#include "config.h"

#include <string.h>

#include "config_int.h"

#define AT(field) offsetof(struct vg_config, field)
#define PORT_MAX 65535
#define COUNT_MAX 100000000

static const struct vg_flag place_flags[] = {
    {"data-dir", "DIR", VG_FLAG_TEXT, AT(data_dir), "vigil-data", 0, 0,
     "where everything is kept: the store, keys and\nadmin.kubeconfig; made if absent, 0700"},
    {"storage", "lmdb|mem|etcd", VG_FLAG_CHOICE, AT(storage), "lmdb", 0, 0,
     "lmdb: durable, in DIR/store; mem: in memory,\ngone when vigild ends, for tests; etcd: in "
     "the\n"
     "cluster of --etcd-servers, which imply it"},
    {"bind-address", "ADDRESS", VG_FLAG_TEXT, AT(bind_address), "127.0.0.1", 0, 0,
     "address of the secure port; 0.0.0.0 or :: means\nevery interface"},
    {"advertise-address", "ADDRESS", VG_FLAG_TEXT, AT(advertise_address), NULL, 0, 0,
     "by which others reach this server: the endpoint of\nthe service kubernetes; else the bound "
     "one, or that\nof the default route; none if only this host can"},
    {"secure-port", "PORT", VG_FLAG_NUMBER, AT(secure_port), "6443", 0, PORT_MAX,
     "HTTPS; 0 picks a free port, which the line that\nis printed when ready tells"},
    {"insecure-port", "PORT", VG_FLAG_NUMBER, AT(insecure_port), "0", 0, PORT_MAX,
     "plain HTTP on 127.0.0.1, where everybody is\nadministrator; 0 = off. Browsers are kept out"},
    {"loops", "N", VG_FLAG_NUMBER, AT(loops), "0", 0, 64,
     "threads that serve; 0 = one for each CPU"},
    {0},
};

static const struct vg_flag access_flags[] = {
    {"tls-cert-file", "FILE", VG_FLAG_TEXT, AT(tls_cert_file), NULL, 0, 0,
     "PEM certificate chain to serve with; else one is\nmade in DIR/pki and renewed"},
    {"tls-private-key-file", "FILE", VG_FLAG_TEXT, AT(tls_key_file), NULL, 0, 0, "its PEM key"},
    {"tls-min-version", "VersionTLS12|VersionTLS13", VG_FLAG_CHOICE, AT(tls_min_version),
     "VersionTLS12", 0, 0, "refuse older versions of TLS"},
    {"tls-san", "NAMES", VG_FLAG_TEXT, AT(tls_san), NULL, 0, 0,
     "more names or addresses for the certificate that\nis made, parted by commas"},
    {"client-ca-file", "FILE", VG_FLAG_TEXT, AT(client_ca_file), NULL, 0, 0,
     "PEM bundle: certificates signed by one of these\nare clients too; CN: the user, O: groups"},
    {"token-auth-file", "FILE", VG_FLAG_TEXT, AT(token_auth_file), NULL, 0, 0,
     "bearer tokens: token,user,uid[,\"group,group\"];\nread again on SIGHUP"},
    {"service-account-issuer", "LIST", VG_FLAG_LIST, AT(account_issuers),
     "https://kubernetes.default.svc", 0, 0,
     "who issues tokens of service accounts: the first\nis in new ones; all are taken"},
    {"service-account-signing-key-file", "FILE", VG_FLAG_TEXT, AT(account_signing_key_file), NULL,
     0, 0, "PEM key, RSA or EC, that signs them; else one is\nmade in DIR/pki/sa.key"},
    {"service-account-key-file", "LIST", VG_FLAG_LIST, AT(account_key_files), NULL, 0, 0,
     "more PEM keys that tokens may be signed by"},
    {"api-audiences", "LIST", VG_FLAG_LIST, AT(account_audiences), NULL, 0, 0,
     "for whom tokens must be to be taken here; else the\nissuers"},
    {"service-account-max-token-expiration", "DURATION", VG_FLAG_SECONDS, AT(account_token_max_s),
     "0", 0, UINT64_C(1) << 32, "longest life of a token; 0: as long as was asked\nfor"},
    {"service-account-extend-token-expiration", NULL, VG_FLAG_BOOL, AT(account_token_extends),
     "true", 0, 0, "tokens that kubelets ask for, for 3607 seconds,\nlive for a year"},
    {"service-account-jwks-uri", "URI", VG_FLAG_TEXT, AT(account_jwks_uri), NULL, 0, 0,
     "where the discovery document says our keys are;\nelse on this server"},
    {"authorization-mode", "Masters|AlwaysAllow", VG_FLAG_CHOICE, AT(authorization_mode), "Masters",
     0, 0,
     "Masters: the group system:masters may do all,\nothers read health, version and discovery;\n"
     "AlwaysAllow: whoever is authenticated may do all"},
    {0},
};

static const struct vg_flag request_flags[] = {
    {"request-timeout", "DURATION", VG_FLAG_DURATION, AT(request_timeout_ms), "1m0s", 1000, 0,
     "longest time for a request that is not a watch,\nand for its body to come"},
    {"min-request-timeout", "SECONDS", VG_FLAG_SECONDS, AT(min_request_timeout_s), "1800", 1,
     31536000, "watches without timeoutSeconds live this long,\nup to twice, by chance"},
    {"enable-priority-and-fairness", NULL, VG_FLAG_BOOL, AT(has_fairness), "true", 0, 0,
     "share the server among users and levels, by\nFlowSchema and PriorityLevelConfiguration "
     "objects"},
    {"max-requests-inflight", "N", VG_FLAG_NUMBER, AT(max_inflight), "400", 0, COUNT_MAX,
     "with the next, the seats that priority levels\nshare; both 0: no limit. Without priority "
     "and\n"
     "fairness, reads at a time; 0: no limit"},
    {"max-mutating-requests-inflight", "N", VG_FLAG_NUMBER, AT(max_mutating), "200", 0, COUNT_MAX,
     "see above. Without priority and fairness, writes\nat a time; 0: no limit"},
    {"max-watches-per-user", "N", VG_FLAG_NUMBER, AT(max_watches_per_user), "100000", 1, COUNT_MAX,
     "watches that one user may have open"},
    {"max-request-body-bytes", "N", VG_FLAG_NUMBER, AT(max_body_bytes), "3145728", 1024, 67108864,
     "largest body; more gets 413"},
    {"max-request-body-depth", "N", VG_FLAG_NUMBER, AT(max_body_depth), "512", 32, 512,
     "objects and arrays of a body that lie in one\nanother; more gets 400"},
    {"max-request-bytes-inflight", "N", VG_FLAG_NUMBER, AT(max_request_bytes), "268435456", 1048576,
     UINT64_C(1) << 40, "heads and bodies of requests under way, in all;\nmore get 429"},
    {"slow-request-threshold", "DURATION", VG_FLAG_DURATION, AT(slow_ms), "500ms", 1, 0,
     "log requests that take longer, with their steps"},
    {0},
};

static const struct vg_flag connection_flags[] = {
    {"max-connections", "N", VG_FLAG_NUMBER, AT(max_connections), "100000", 1, COUNT_MAX,
     "connections at a time"},
    {"max-connections-per-address", "N", VG_FLAG_NUMBER, AT(max_connections_per_address), "0", 0,
     COUNT_MAX, "of one address; 0 = 50000 on loopback, else 5000"},
    {"max-tls-handshakes", "N", VG_FLAG_NUMBER, AT(max_handshakes), "1000", 1, COUNT_MAX,
     "TLS handshakes at a time"},
    {"max-tls-handshakes-per-address", "N", VG_FLAG_NUMBER, AT(max_handshakes_per_address), "0", 0,
     COUNT_MAX, "of one address; 0 = a quarter of all"},
    {"http2-max-streams-per-connection", "N", VG_FLAG_NUMBER, AT(max_streams), "1000", 1, 1000000,
     "requests at a time on one HTTP/2 connection"},
    {"http2-max-resets-per-second", "N", VG_FLAG_NUMBER, AT(max_resets), "200", 1, COUNT_MAX,
     "resets, settings and pings of one HTTP/2\nconnection; more ends it"},
    {"max-header-bytes", "N", VG_FLAG_NUMBER, AT(max_header_bytes), "65536", 1024, 1048576,
     "largest head of a request; more gets 431"},
    {"max-unsent-bytes", "N", VG_FLAG_NUMBER, AT(unsent_bytes), "65536", 4096, 16777216,
     "bytes that wait for one client before its answer\nor watch waits too"},
    {"min-response-rate", "N", VG_FLAG_NUMBER, AT(min_rate), "1024", 1, COUNT_MAX,
     "bytes per second that a client must take of an\nanswer that is not a watch"},
    {"tls-handshake-timeout", "DURATION", VG_FLAG_DURATION, AT(handshake_ms), "10s", 100, 0,
     "from accept to the end of the handshake"},
    {"header-timeout", "DURATION", VG_FLAG_DURATION, AT(header_ms), "32s", 100, 0,
     "from the first byte of a head to its end"},
    {"idle-timeout", "DURATION", VG_FLAG_DURATION, AT(idle_ms), "3m0s", 100, 0,
     "a connection without a request"},
    {"stall-timeout", "DURATION", VG_FLAG_DURATION, AT(stall_ms), "1m0s", 100, 0,
     "bytes wait and the client takes none"},
    {0},
};

static const struct vg_flag store_flags[] = {
    {"watch-cache", NULL, VG_FLAG_BOOL, AT(watch_cache), "true", 0, 0,
     "serve reads and watches from memory"},
    {"default-watch-cache-size", "N", VG_FLAG_NUMBER, AT(watch_cache_size), "100", 0, COUNT_MAX,
     "0: no cache but for kinds in --watch-cache-sizes;\nelse sizes adjust themselves"},
    {"watch-cache-sizes", "LIST", VG_FLAG_TEXT, AT(watch_cache_sizes), NULL, 0, 0,
     "resource[.group]#size,...; size 0: no cache for\nthat kind"},
    {"watch-cache-window", "DURATION", VG_FLAG_DURATION, AT(watch_cache_window_ms), "1m15s", 1000,
     0, "history kept in memory at least; older is read\nfrom the store"},
    {"event-ttl", "DURATION", VG_FLAG_DURATION, AT(event_ttl_ms), "1h0m0s", 1000, 0,
     "how long events are kept"},
    {"etcd-compaction-interval", "DURATION", VG_FLAG_DURATION, AT(compaction_ms), "5m0s", 0, 0,
     "history kept in the store at least; 0 = for ever"},
    {"storage-scrub-interval", "DURATION", VG_FLAG_DURATION, AT(scrub_ms), "24h0m0s", 0, 0,
     "read data.mdb again from the disk so often, to find\ndamage; 0 = never"},
    {"unsafe-no-fsync", NULL, VG_FLAG_BOOL, AT(unsafe_no_fsync), "false", 0, 0,
     "do not wait for the disk: a power cut loses what\nwas acknowledged; for tests"},
    {0},
};

static const struct vg_flag control_flags[] = {
    {"service-cluster-ip-range", "RANGES", VG_FLAG_TEXT, AT(service_ips), "10.0.0.0/24", 0, 0,
     "addresses for services; one range, or one of\nIPv4 and one of IPv6, parted by a comma"},
    {"service-node-port-range", "FIRST-LAST", VG_FLAG_TEXT, AT(service_ports), "30000-32767", 0, 0,
     "ports of nodes for services"},
    {"enable-admission-plugins", "LIST", VG_FLAG_TEXT, AT(plugins_on), NULL, 0, 0,
     "plugins that are off by default: ServiceAccount,\nTaintNodesByCondition"},
    {"disable-admission-plugins", "LIST", VG_FLAG_TEXT, AT(plugins_off), NULL, 0, 0,
     "plugins that are on by default: DefaultIngressClass,\nDefaultStorageClass, LimitRanger, "
     "Priority,\nResourceQuota, RuntimeClass"},
    {"controllers", "LIST", VG_FLAG_TEXT, AT(controllers), "*", 0, 0,
     "what vigild does by itself: * is all, name on,\n-name off, an empty list nothing:\n"
     "bootstrap-controller, namespace-controller,\nserviceaccount-controller,\n"
     "root-ca-certificate-publisher-controller,\ngarbage-collector-controller,\n"
     "resourcequota-controller,\npriority-and-fairness-config-producer"},
    {"leader-elect-lease-duration", "DURATION", VG_FLAG_DURATION, AT(lease_ms), "15s", 3000, 0,
     "of several vigild on one etcd one runs the\ncontrollers: so long after its end another does"},
    {0},
};

static const struct vg_flag etcd_flags[] = {
    {"etcd-servers", "LIST", VG_FLAG_TEXT, AT(etcd_servers), NULL, 0, 0,
     "keep everything in this etcd cluster: addresses of\nits members, https://host:2379, parted "
     "by "
     "commas"},
    {"etcd-cafile", "FILE", VG_FLAG_TEXT, AT(etcd_ca_file), NULL, 0, 0,
     "PEM bundle that etcd's certificates are signed by;\nelse the system's"},
    {"etcd-certfile", "FILE", VG_FLAG_TEXT, AT(etcd_cert_file), NULL, 0, 0,
     "PEM certificate to show to etcd"},
    {"etcd-keyfile", "FILE", VG_FLAG_TEXT, AT(etcd_key_file), NULL, 0, 0, "its PEM key"},
    {"etcd-username", "NAME", VG_FLAG_TEXT, AT(etcd_username), NULL, 0, 0,
     "user of etcd, where it asks for one"},
    {"etcd-password-file", "FILE", VG_FLAG_TEXT, AT(etcd_password_file), NULL, 0, 0,
     "file with that user's password"},
    {"etcd-prefix", "PATH", VG_FLAG_TEXT, AT(etcd_prefix), "/registry", 0, 0,
     "what all keys in etcd begin with"},
    {"storage-media-type", "TYPE", VG_FLAG_TEXT, AT(storage_media_type),
     "application/vnd.kubernetes.protobuf", 0, 0,
     "how objects are written to etcd: so, or as JSON\n(application/json);\nboth are read"},
    {"etcd-connect-timeout", "DURATION", VG_FLAG_DURATION, AT(etcd_connect_ms), "20s", 100, 0,
     "how long a start waits for etcd to answer"},
    {"etcd-healthcheck-timeout", "DURATION", VG_FLAG_DURATION, AT(etcd_health_ms), "2s", 100, 0,
     "between looks at etcd's health, and how long one\nmay take"},
    {0},
};

static const struct vg_flag life_flags[] = {
    {"shutdown-delay-duration", "DURATION", VG_FLAG_DURATION, AT(shutdown_delay_ms), "0s", 0, 0,
     "after SIGTERM serve on for so long while /readyz\nfails"},
    {"shutdown-watch-termination-grace-period", "DURATION", VG_FLAG_DURATION, AT(shutdown_grace_ms),
     "10s", 0, 0, "then wait at most so long for requests and\nwatches to end in order"},
    {"log-level", "error|warn|info|debug", VG_FLAG_CHOICE, AT(log_level), "info", 0, 0,
     "how much is logged, on standard error"},
    {"log-components", "LIST", VG_FLAG_TEXT, AT(log_components), NULL, 0, 0,
     "levels of components, as gate,cacher=warn,-net"},
    {"logging-format", "text|json", VG_FLAG_CHOICE, AT(log_format), "text", 0, 0,
     "how a line looks"},
    {"v", "N", VG_FLAG_NUMBER, AT(verbosity), "0", 0, 10,
     "as in kube-apiserver: 4 and more is debug"},
    {"config", "FILE", VG_FLAG_TEXT, AT(config_file), NULL, 0, 0,
     "read flags from a file, a line each, name: value;\nwhat the command line says wins"},
    {"help", NULL, VG_FLAG_BOOL, AT(is_help), NULL, 0, 0, "this text"},
    {"version", NULL, VG_FLAG_BOOL, AT(is_version), NULL, 0, 0, "the version"},
    {0},
};

const struct vg_flag_group vg_flag_groups[] = {
    {"What to serve, and where", place_flags},
    {"Certificates, users and rights", access_flags},
    {"Requests", request_flags},
    {"Connections", connection_flags},
    {"Cache and store", store_flags},
    {"Services and controllers", control_flags},
    {"etcd", etcd_flags},
    {"Ending, logs and the rest", life_flags},
    {NULL, NULL},
};

/* ---- help ---- */

#define HELP_COLUMN 38

static void print_flag(FILE *to, const struct vg_flag *f)
{
    int used = fprintf(to, "  --%s%s%s", f->name, f->arg ? " " : "", f->arg ? f->arg : "");
    if (used > HELP_COLUMN - 2) {
        fputc('\n', to);
        used = 0;
    }
    for (const char *line = f->help; line; used = 0) {
        const char *end = strchr(line, '\n');
        int n = end ? (int)(end - line) : (int)strlen(line);
        fprintf(to, "%*s%.*s", HELP_COLUMN - used, "", n, line);
        line = end ? end + 1 : NULL;
        if (!line && f->value)
            fprintf(to, " (%s)", f->value);
        fputc('\n', to);
    }
}

void vg_config_help(FILE *to)
{
    fputs("vigild - a Kubernetes API server: list, watch and write, from one small process\n\n"
          "usage: vigild [flags]\n",
          to);
    for (const struct vg_flag_group *g = vg_flag_groups; g->title; g++) {
        fprintf(to, "\n%s:\n", g->title);
        for (const struct vg_flag *f = g->flags; f->name; f++)
            print_flag(to, f);
    }
    fputs("\nSIGTERM and SIGINT end it in order, a second one at once; SIGHUP reads certificates\n"
          "and tokens again. More: man vigild\n",
          to);
}
