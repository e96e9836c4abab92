/* fuzz_report.c - whatever the file holds, each form of the report is made or refused. */
#include "report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    VG_AUTO(report) r = {0};
    VG_AUTO(buf) out = {0};
    const char *name = "";
    if (vg_report_read(&r, vg_slice(data, size), NULL) < 0)
        return 0;
    if (vg_report_table(&r, &out) < 0 || vg_report_html(&r, &out) < 0 ||
        vg_report_markdown(&r, "charts", VG_SLICE_LIT(""), &out) < 0 ||
        vg_report_summary(&r, &out) < 0)
        __builtin_trap();
    for (size_t i = 0; name; i++)
        if (vg_report_chart(&r, i, &out, &name) < 0)
            __builtin_trap();
    return 0;
}
