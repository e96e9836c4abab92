/* openapi_paths.c - paths: which operations a kind has, with which parameters.
 * kubectl looks here for dryRun and fieldValidation, in the operations that carry a kind's group,
 * version and kind, and for the types of patches that are taken. */
#include <stdio.h>

#include "openapi_write.h"

enum body { NO_BODY, OBJECT_BODY, PATCH_BODY, DELETE_BODY };
enum answer { OBJECT_ANSWER, LIST_ANSWER, STATUS_ANSWER };

struct parameter {
    const char *name, *type, *about;
};

struct operation {
    enum vg_verb verb;
    const char *method, *action, *id, *about; /* id begins the operationId */
    const char *infix;                        /* stands before its scope; NULL: nothing */
    enum body body;
    enum answer answer;
    bool may_create;
    const struct parameter *v;
    size_t n;
};

/* ---- tables ---- */

/* clang-format off */
#define WRITE_PARAMETERS \
    {"dryRun", "string", "All: check and answer as usual, but store nothing."}, \
    {"fieldManager", "string", "Who makes the change."}, \
    {"fieldValidation", "string", "On unknown and duplicate fields: Ignore, Warn or Strict."}
#define LIST_PARAMETERS \
    {"allowWatchBookmarks", "boolean", "Send bookmarks in a watch."}, \
    {"continue", "string", "Token of the last page: give the next."}, \
    {"fieldSelector", "string", "Only objects with these fields."}, \
    {"labelSelector", "string", "Only objects with these labels."}, \
    {"limit", "integer", "At most so many items."}, \
    {"resourceVersion", "string", "Which version, or where a watch starts."}, \
    {"resourceVersionMatch", "string", "How resourceVersion is meant: Exact, NotOlderThan."}, \
    {"sendInitialEvents", "boolean", "Begin a watch with the objects that there are."}, \
    {"timeoutSeconds", "integer", "How long a watch may last."}
#define DELETE_PARAMETERS \
    {"dryRun", "string", "All: check and answer as usual, but delete nothing."}, \
    {"gracePeriodSeconds", "integer", "How long the deletion may take; 0: at once."}, \
    {"orphanDependents", "boolean", "As propagationPolicy, for older clients."}, \
    {"propagationPolicy", "string", "Of dependents: Orphan, Background or Foreground."}
/* clang-format on */

static const struct parameter list_parameters[] = {
    LIST_PARAMETERS, {"watch", "boolean", "Stream changes instead of a list."}};
static const struct parameter write_parameters[] = {WRITE_PARAMETERS};
static const struct parameter patch_parameters[] = {
    WRITE_PARAMETERS, {"force", "boolean", "Apply: take what other managers own."}};
static const struct parameter delete_parameters[] = {DELETE_PARAMETERS};
static const struct parameter sweep_parameters[] = {DELETE_PARAMETERS, LIST_PARAMETERS};
#define WITH(list) .v = list, .n = VG_ARRAY_LEN(list)

enum { CREATE = 1 }; /* among these */
static const struct operation on_collection[] = {
    {.verb = VG_VERB_LIST,
     .method = "get",
     .action = "list",
     .id = "list",
     .about = "List or watch objects.",
     .answer = LIST_ANSWER,
     WITH(list_parameters)},
    {.verb = VG_VERB_CREATE,
     .method = "post",
     .action = "post",
     .id = "create",
     .about = "Create an object.",
     .body = OBJECT_BODY,
     .may_create = true,
     WITH(write_parameters)},
    {.verb = VG_VERB_DELETECOLLECTION,
     .method = "delete",
     .action = "deletecollection",
     .id = "delete",
     .infix = "Collection",
     .about = "Delete all objects that are selected.",
     .body = DELETE_BODY,
     .answer = STATUS_ANSWER,
     WITH(sweep_parameters)},
};
static const struct operation on_object[] = {
    {.verb = VG_VERB_GET,
     .method = "get",
     .action = "get",
     .id = "read",
     .about = "Read an object."},
    {.verb = VG_VERB_UPDATE,
     .method = "put",
     .action = "put",
     .id = "replace",
     .about = "Replace an object.",
     .body = OBJECT_BODY,
     .may_create = true,
     WITH(write_parameters)},
    {.verb = VG_VERB_DELETE,
     .method = "delete",
     .action = "delete",
     .id = "delete",
     .about = "Delete an object.",
     .body = DELETE_BODY,
     .answer = STATUS_ANSWER,
     WITH(delete_parameters)},
    {.verb = VG_VERB_PATCH,
     .method = "patch",
     .action = "patch",
     .id = "patch",
     .about = "Change a part of an object.",
     .body = PATCH_BODY,
     .may_create = true,
     WITH(patch_parameters)},
};

static const char *const patch_types[] = {
    "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml"};
static const char *const any_type[] = {"*/*"};
static const char *const answer_types[] = {"application/json", "application/yaml"};

/* ---- pieces ---- */

static void put_texts(struct vg_openapi_writer *w, const char *key, const char *const *v, size_t n)
{
    vg_openapi_begin_list(w, key);
    for (size_t i = 0; i < n; i++)
        vg_json_put_string(&w->json, vg_slice_str(v[i]));
    vg_openapi_end_list(w);
}

static void put_required(struct vg_openapi_writer *w)
{
    vg_json_put_key(&w->json, VG_SLICE_LIT("required"));
    vg_json_put_bool(&w->json, true);
}

static void put_parameter(struct vg_openapi_writer *w, const struct parameter *p, const char *in)
{
    vg_json_put_begin_object(&w->json);
    vg_openapi_put_text(w, "name", p->name);
    vg_openapi_put_text(w, "in", in);
    vg_openapi_put_text(w, "description", p->about);
    if (strcmp(in, "path") == 0)
        put_required(w);
    if (w->is_v3)
        vg_openapi_begin_object(w, "schema");
    vg_openapi_put_text(w, "type", p->type);
    vg_json_put_key(&w->json, VG_SLICE_LIT("uniqueItems"));
    vg_json_put_bool(&w->json, true);
    if (w->is_v3)
        vg_openapi_end_object(w);
    vg_openapi_end_object(w);
}

/* "schema": a reference. */
static void put_schema(struct vg_openapi_writer *w, const char *definition)
{
    vg_openapi_begin_object(w, "schema");
    vg_openapi_put_ref(w, definition);
    vg_openapi_end_object(w);
}

static void put_content(struct vg_openapi_writer *w, const char *definition,
                        const char *const *types, size_t n)
{
    vg_openapi_begin_object(w, "content");
    for (size_t i = 0; i < n; i++) {
        vg_openapi_begin_object(w, types[i]);
        put_schema(w, definition);
        vg_openapi_end_object(w);
    }
    vg_openapi_end_object(w);
}

/* ---- bodies and answers ---- */

static void body_definition(char ret[VG_OPENAPI_NAME_MAX], const struct operation *o,
                            const struct vg_kind *kind)
{
    if (o->body == OBJECT_BODY)
        vg_openapi_definition(ret, kind->group, kind->version, kind->kind);
    else
        snprintf(ret, VG_OPENAPI_NAME_MAX, VG_OPENAPI_META "%s",
                 o->body == PATCH_BODY ? "Patch" : "DeleteOptions");
}

/* 2.0 has the body among the parameters. */
static void put_body_parameter(struct vg_openapi_writer *w, const struct operation *o,
                               const struct vg_kind *kind)
{
    char definition[VG_OPENAPI_NAME_MAX];
    body_definition(definition, o, kind);
    vg_json_put_begin_object(&w->json);
    vg_openapi_put_text(w, "name", "body");
    vg_openapi_put_text(w, "in", "body");
    if (o->body != DELETE_BODY)
        put_required(w);
    put_schema(w, definition);
    vg_openapi_end_object(w);
}

static void put_request_body(struct vg_openapi_writer *w, const struct operation *o,
                             const struct vg_kind *kind)
{
    char definition[VG_OPENAPI_NAME_MAX];
    body_definition(definition, o, kind);
    bool is_patch = o->body == PATCH_BODY;
    vg_openapi_begin_object(w, "requestBody");
    put_content(w, definition, is_patch ? patch_types : any_type,
                is_patch ? VG_ARRAY_LEN(patch_types) : VG_ARRAY_LEN(any_type));
    if (o->body != DELETE_BODY)
        put_required(w);
    vg_openapi_end_object(w);
}

static void put_response(struct vg_openapi_writer *w, const char *code, const char *about,
                         const char *definition)
{
    vg_openapi_begin_object(w, code);
    vg_openapi_put_text(w, "description", about);
    if (definition && w->is_v3)
        put_content(w, definition, answer_types, VG_ARRAY_LEN(answer_types));
    else if (definition)
        put_schema(w, definition);
    vg_openapi_end_object(w);
}

static void put_responses(struct vg_openapi_writer *w, const struct operation *o,
                          const struct vg_kind *kind)
{
    char definition[VG_OPENAPI_NAME_MAX];
    if (o->answer == STATUS_ANSWER)
        snprintf(definition, sizeof definition, VG_OPENAPI_META "Status");
    else
        vg_openapi_definition(definition, kind->group, kind->version,
                              o->answer == LIST_ANSWER ? kind->list_kind : kind->kind);
    vg_openapi_begin_object(w, "responses");
    put_response(w, "200", "OK", definition);
    if (o->may_create)
        put_response(w, "201", "Created", definition);
    put_response(w, "401", "Unauthorized", NULL);
    vg_openapi_end_object(w);
}

/* ---- operations ---- */

/* core, apps, rbacAuthorization: the group without .k8s.io, in one word. */
static void group_word(const struct vg_kind *kind, char ret[VG_OPENAPI_NAME_MAX])
{
    const char *group = *kind->group ? kind->group : "core";
    const char *end = strstr(group, ".k8s.io");
    size_t n = 0;
    for (const char *p = group; *p && p != end && n < VG_OPENAPI_NAME_MAX - 1; p++)
        if (*p != '.')
            ret[n++] = p > group && p[-1] == '.' ? (char)(*p & ~0x20) : *p;
    ret[n] = '\0';
}

/* listCoreV1NamespacedPod, readAppsV1NamespacedDeployment */
static void put_operation_id(struct vg_openapi_writer *w, const struct operation *o,
                             const struct vg_kind *kind, const char *scope, const char *suffix)
{
    char id[2 * VG_OPENAPI_NAME_MAX], group[VG_OPENAPI_NAME_MAX];
    group_word(kind, group);
    snprintf(id, sizeof id, "%s%c%sV%s%s%s%s%s", o->id, group[0] & ~0x20, group + 1,
             kind->version + 1, o->infix ? o->infix : "", scope, kind->kind, suffix);
    vg_openapi_put_text(w, "operationId", id);
}

static void put_tag(struct vg_openapi_writer *w, const struct vg_kind *kind)
{
    char tag[2 * VG_OPENAPI_NAME_MAX], group[VG_OPENAPI_NAME_MAX];
    group_word(kind, group);
    snprintf(tag, sizeof tag, "%s_%s", group, kind->version);
    vg_openapi_begin_list(w, "tags");
    vg_json_put_string(&w->json, vg_slice_str(tag));
    vg_openapi_end_list(w);
}

static void put_parameters(struct vg_openapi_writer *w, const struct operation *o,
                           const struct vg_kind *kind)
{
    bool has_body_parameter = !w->is_v3 && o->body != NO_BODY;
    if (o->n == 0 && !has_body_parameter)
        return;
    vg_openapi_begin_list(w, "parameters");
    if (has_body_parameter)
        put_body_parameter(w, o, kind);
    for (size_t i = 0; i < o->n; i++)
        put_parameter(w, &o->v[i], "query");
    vg_openapi_end_list(w);
}

static void put_types_v2(struct vg_openapi_writer *w, const struct operation *o)
{
    bool is_patch = o->body == PATCH_BODY;
    put_texts(w, "consumes", is_patch ? patch_types : any_type,
              is_patch ? VG_ARRAY_LEN(patch_types) : VG_ARRAY_LEN(any_type));
    put_texts(w, "produces", answer_types, VG_ARRAY_LEN(answer_types));
}

/* of: what bodies are; the kind, or what its subresource has. */
static void put_operation(struct vg_openapi_writer *w, const struct operation *o,
                          const struct vg_kind *kind, const struct vg_kind *of, const char *scope,
                          const char *suffix)
{
    vg_openapi_begin_object(w, o->method);
    put_tag(w, kind);
    vg_openapi_put_text(w, "description", o->about);
    if (!w->is_v3)
        put_types_v2(w, o);
    put_operation_id(w, o, kind, scope, suffix);
    put_parameters(w, o, of);
    if (w->is_v3 && o->body != NO_BODY)
        put_request_body(w, o, of);
    put_responses(w, o, of);
    vg_openapi_put_text(w, "x-kubernetes-action", o->action);
    vg_json_put_key(&w->json, VG_SLICE_LIT("x-kubernetes-group-version-kind"));
    vg_openapi_put_gvk(w, of, of->kind);
    vg_openapi_end_object(w);
}

/* ---- paths ---- */

static void put_path_parameters(struct vg_openapi_writer *w, bool has_name, bool has_namespace)
{
    static const struct parameter name = {"name", "string", "Name of the object."};
    static const struct parameter ns = {"namespace", "string", "Namespace of the objects."};
    static const struct parameter pretty = {"pretty", "string", "true: indent the answer."};
    vg_openapi_begin_list(w, "parameters");
    if (has_name)
        put_parameter(w, &name, "path");
    if (has_namespace)
        put_parameter(w, &ns, "path");
    put_parameter(w, &pretty, "query");
    vg_openapi_end_list(w);
}

/* ns: "", or what stands before the resource. */
static void begin_path(struct vg_openapi_writer *w, const struct vg_kind *kind, const char *ns,
                       const char *name)
{
    char path[2 * VG_OPENAPI_NAME_MAX]; /* name alone may have as many as one of these */
    snprintf(path, sizeof path, "/%s/%s/%s%s%s", *kind->group ? "apis" : "api", kind->api_version,
             ns, kind->resource, name);
    vg_openapi_begin_object(w, path);
}

static void put_operations(struct vg_openapi_writer *w, const struct vg_kind *kind,
                           const struct operation *v, size_t n, const char *scope)
{
    for (size_t i = 0; i < n; i++)
        if (kind->verbs & (unsigned)v[i].verb)
            put_operation(w, &v[i], kind, kind, scope, "");
}

/* readAppsV1NamespacedDeploymentScale: its name follows the kind's. */
static void put_sub(struct vg_openapi_writer *w, const struct vg_kind *kind,
                    const struct vg_kind_sub *sub, const char *ns, const char *scope)
{
    struct vg_kind of = vg_openapi_sub_kind(kind, sub);
    char path[VG_OPENAPI_NAME_MAX], suffix[VG_OPENAPI_NAME_MAX];
    snprintf(path, sizeof path, "/{name}/%s", sub->name);
    snprintf(suffix, sizeof suffix, "%c%s", sub->name[0] & ~0x20, sub->name + 1);
    begin_path(w, kind, ns, path);
    for (size_t i = 0; i < VG_ARRAY_LEN(on_object); i++)
        if (sub->verbs & (unsigned)on_object[i].verb)
            put_operation(w, &on_object[i], kind, &of, scope, suffix);
    if (sub->verbs & VG_VERB_CREATE)
        put_operation(w, &on_collection[CREATE], kind, &of, scope, suffix);
    put_path_parameters(w, true, *ns != '\0');
    vg_openapi_end_object(w);
}

void vg_openapi_put_paths(struct vg_openapi_writer *w, const struct vg_kind *kind)
{
    bool is_namespaced = vg_kind_is(kind, VG_KIND_NAMESPACED);
    const char *ns = is_namespaced ? "namespaces/{namespace}/" : "";
    const char *scope = is_namespaced ? "Namespaced" : "";
    begin_path(w, kind, ns, "");
    put_operations(w, kind, on_collection, VG_ARRAY_LEN(on_collection), scope);
    put_path_parameters(w, false, is_namespaced);
    vg_openapi_end_object(w);
    if (kind->verbs & VG_VERB_GET) {
        begin_path(w, kind, ns, "/{name}");
        put_operations(w, kind, on_object, VG_ARRAY_LEN(on_object), scope);
        put_path_parameters(w, true, is_namespaced);
        vg_openapi_end_object(w);
    }
    for (size_t i = 0; i < kind->n_subs; i++)
        if (kind->subs[i].type != VG_SUB_CONNECT)
            put_sub(w, kind, &kind->subs[i], ns, scope);
    if (is_namespaced && kind->verbs & VG_VERB_LIST) {
        begin_path(w, kind, "", "");
        put_operation(w, &on_collection[0], kind, kind, "", "ForAllNamespaces");
        put_path_parameters(w, false, false);
        vg_openapi_end_object(w);
    }
}
