/* openapi_about.c - sentences for kubectl explain: the fields that every object has.
 * What a kind is, its row says; below spec and status nothing is told but names and types. */
#include <string.h>

#include "base/slice.h"
#include "openapi_write.h"

/* field NULL: of the type itself; type NULL: of a field of that name wherever it stands. */
static const struct {
    const char *type, *field, *about;
} texts[] = {
    {"DeleteOptions", NULL, "How to delete."},
    {"ListMeta", NULL, "Metadata of a list."},
    {"ManagedFieldsEntry", NULL, "Fields that one manager has set."},
    {"ObjectMeta", NULL, "Metadata that every object has."},
    {"OwnerReference", NULL, "An object that another depends on."},
    {"Status", NULL, "The outcome of a call that gives no object."},
    {"ObjectMeta", "annotations", "Notes for tools; not for selecting."},
    {"ObjectMeta", "creationTimestamp", "When it was created; set by the server."},
    {"ObjectMeta", "deletionGracePeriodSeconds", "How long a graceful deletion may take."},
    {"ObjectMeta", "deletionTimestamp", "When it will be gone; set by a deletion."},
    {"ObjectMeta", "finalizers", "Who must let go before it is removed."},
    {"ObjectMeta", "generateName", "The server makes a name that begins with this."},
    {"ObjectMeta", "generation", "Counts changes of what is wanted; set by the server."},
    {"ObjectMeta", "labels", "Keys and values to select by."},
    {"ObjectMeta", "managedFields", "Who set which fields."},
    {"ObjectMeta", "name", "Unique among the kind's objects in the namespace."},
    {"ObjectMeta", "namespace", "The namespace it lives in; empty for a kind of the cluster."},
    {"ObjectMeta", "ownerReferences", "Objects it depends on."},
    {"ObjectMeta", "resourceVersion", "Its version, to be compared for equality only."},
    {"ObjectMeta", "selfLink", "Not set any more."},
    {"ObjectMeta", "uid", "Unique over all time; set by the server."},
    {"ListMeta", "continue", "Token for the next page; empty: this is the last."},
    {"ListMeta", "remainingItemCount", "How many items follow, when that is known."},
    {"ListMeta", "resourceVersion", "The version of the list; a watch may start from it."},
    {"ListMeta", "selfLink", "Not set any more."},
    {"OwnerReference", "apiVersion", "Group and version of the owner."},
    {"OwnerReference", "blockOwnerDeletion",
     "A foreground deletion of the owner waits for this object."},
    {"OwnerReference", "controller", "The owner is the one that manages this object."},
    {"OwnerReference", "kind", "Kind of the owner."},
    {"OwnerReference", "name", "Name of the owner."},
    {"OwnerReference", "uid", "Uid of the owner."},
    {"ManagedFieldsEntry", "apiVersion", "Version of the kind that the fields are of."},
    {"ManagedFieldsEntry", "fieldsType", "FieldsV1."},
    {"ManagedFieldsEntry", "fieldsV1", "The fields, as a tree."},
    {"ManagedFieldsEntry", "manager", "Who set them."},
    {"ManagedFieldsEntry", "operation", "Apply or Update."},
    {"ManagedFieldsEntry", "subresource", "By which subresource; empty: by none."},
    {"ManagedFieldsEntry", "time", "When."},
    {"DeleteOptions", "dryRun", "All: nothing is deleted."},
    {"DeleteOptions", "gracePeriodSeconds", "How long the deletion may take; 0: at once."},
    {"DeleteOptions", "orphanDependents", "As propagationPolicy, for older clients."},
    {"DeleteOptions", "preconditions", "uid and resourceVersion that the object must have."},
    {"DeleteOptions", "propagationPolicy", "Orphan, Background or Foreground."},
    {"Status", "code", "The HTTP status."},
    {"Status", "details", "Name, kind, causes and when to try again."},
    {"Status", "message", "What went wrong, for people."},
    {"Status", "metadata", "Metadata."},
    {"Status", "reason", "Why, in one word, for machines."},
    {"Status", "status", "Success or Failure."},
    {NULL, "apiVersion", "Group and version of the kind."},
    {NULL, "kind", "The kind."},
    {NULL, "metadata", "Metadata of the object."},
    {NULL, "spec", "What is wanted."},
    {NULL, "status", "What was found; written by whoever observes it."},
};

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

const char *vg_openapi_about(const char *type, const char *field)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        if (is_same(texts[i].field, field) && (!texts[i].type || is_same(texts[i].type, type)))
            return texts[i].about;
    return NULL;
}
