/* storage_driver_int.h - what the files of the driver share. */
#ifndef VG_TESTS_STORAGE_DRIVER_INT_H
#define VG_TESTS_STORAGE_DRIVER_INT_H

/* Say what went wrong and abort: a test cannot go on without its driver. */
_Noreturn void vg_drv_die(const char *what, int err);

/* From now on minutes without vg_drv_watchdog(NULL) end the process, naming `what`. One for the
 * whole process: drivers on several threads move each other's end, never before its time. */
void vg_drv_watchdog(const char *what);

/* Every file of one directory into another, which is there. */
void vg_drv_copy_files(const char *from, const char *to);

#endif
