/* h2_mem.h - memory for nghttp2, which never sees an allocation fail.
 * nghttp2 1.52 frees an item twice when its queue of streams cannot grow. So a failure is noted in
 * the flag, the memory is asked for once more, and the owner closes the connection as soon as
 * nghttp2 has returned. If even that fails there is nothing left to save. Thread: the owner's. */
#ifndef VG_NET_H2_MEM_H
#define VG_NET_H2_MEM_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

/* The flag outlives the session. */
nghttp2_mem vg_h2_mem(bool *is_out_of_memory);

#endif
