/* tools/serve.h - noh serve: the server. */
#ifndef NOH_TOOLS_SERVE_H
#define NOH_TOOLS_SERVE_H

int serve_main(int argc, char **argv);   /* the exit code; argv[0] is "serve" */
void serve_help_more(void);              /* its settings and signals */

#endif
