/* A wall clock that is wrong by the seconds that stand in the file CLOCK_OFFSET_FILE, for tests: LD_PRELOAD it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long offset(void) {
    const char *path = getenv("CLOCK_OFFSET_FILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    long seconds = 0;
    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
        fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
    int status = next(clock, now);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return status;
}

int gettimeofday(struct timeval *now, void *zone) {
    static int (*next)(struct timeval *, void *);
    if (!next) next = dlsym(RTLD_NEXT, "gettimeofday");
    int status = next(now, zone);
    if (status == 0) now->tv_sec += offset();
    return status;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
