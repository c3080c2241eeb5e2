/* tools/demo.h - noh demo: a minute with a million actors. */
#ifndef NOH_TOOLS_DEMO_H
#define NOH_TOOLS_DEMO_H

int demo_main(int argc, char **argv);   /* the exit code; argv[0] is "demo" */

#endif
