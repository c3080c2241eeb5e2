#include "core/must.h"

#include <stdio.h>
#include <stdlib.h>

noreturn void must_fail(const char *what, const char *file, int line)
{
	fprintf(stderr, "noh: broken promise: %s (%s:%d)\n", what, file, line);
	abort();
}
