/* fuzz_tokens.c - any bytes as a file of tokens: refused with a sentence, or rows that are found by
 * nothing but their tokens. */
#include <stdlib.h>

#include "tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_tokens *t;
    struct vg_status status = {0};
    int r = vg_tokens_parse("tokens", vg_slice(data, size), &t, &status);
    if (r < 0)
        return 0;
    /* The first bare field of the first row is its token, unless something precedes it. */
    size_t n = 0;
    while (n < size && data[n] != ',' && data[n] != '\n' && data[n] != '\r')
        n++;
    bool is_plain =
        n > 0 && n < size && data[n] == ',' && data[0] != '"' && data[0] != ' ' && data[0] != '#';
    if (is_plain && !vg_tokens_find(t, vg_slice(data, n)))
        abort();
    if (vg_tokens_find(t, VG_SLICE_LIT("a token that nobody has, 7f3b")))
        abort();
    vg_tokens_unref(t);
    return 0;
}
