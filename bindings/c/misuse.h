/* What a build with debug assertions finds: handles that are none any more, or are of another type. This file comes before all
   other headers of a program. */

#pragma once

#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Calls `misuse` in a child process, while this one has no database open. It must end by abort() with `words` in its last ones. */
static inline void aborts(const char* words, void (*misuse)(void)) {
  int ends[2], status;
  char said[4096];
  size_t length = 0;
  ssize_t count;
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    misuse();
    _exit(0);
  }
  close(ends[1]);
  while ((count = read(ends[0], said + length, sizeof said - 1 - length)) > 0) length += (size_t)count;
  said[length] = 0;
  close(ends[0]);
  CHECK(waitpid(child, &status, 0) == child);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || strstr(said, words) == NULL) {
    fprintf(stderr, "no abort with \"%s\": status %d, %s\n", words, status, said);
    exit(1);
  }
}
