// The two programs; each returns the exit code.
#ifndef ROLES_H
#define ROLES_H

struct options;
struct http;
struct exchange;

int server_run(const struct options *options);
int client_run(const struct options *options);
// A client of the HTTP cases; the server is the usual one, which answers with `http_respond` then.
int http_client_run(const struct options *options);
int http_respond(struct http *http, struct exchange *exchange);

#endif
