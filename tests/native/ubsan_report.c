/* Preloaded beside gcc's runtimes of ASan and UBSan: writes the reports of UBSan to a file. UBSan's
 * own log_path has no effect there, because its function that sets the path is replaced by the one
 * of ASan, which has the same name. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void __ubsan_get_current_report_data(const char **kind, const char **message, const char **file,
                                     unsigned *line, unsigned *column, char **memory);
void __ubsan_on_report(void);

/* UBSan calls this function with every report; its own one does nothing. */
void __ubsan_on_report(void) {
    const char *kind, *message, *file, *directory = getenv("GPUPOOL_SANITIZER_REPORTS");
    unsigned line, column;
    char *memory, path[4096];
    if (!directory) return;
    __ubsan_get_current_report_data(&kind, &message, &file, &line, &column, &memory);
    snprintf(path, sizeof path, "%s/report.ubsan.%d", directory, (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return;
    dprintf(fd, "%s:%u:%u: UBSan: %s: %s\n", file, line, column, kind, message);
    close(fd);
}
