// The two programs; each returns the exit code.
#ifndef ROLES_H
#define ROLES_H

struct options;

int server_run(const struct options *options);
int client_run(const struct options *options);

#endif
