/* net/http_reply.c - responses: the head that every one of them has, and problems (RFC 9457). */
#include "net/http.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *http_status_text(int status)
{
	switch (status) {
	case 200: return "OK";
	case 201: return "Created";
	case 202: return "Accepted";
	case 204: return "No Content";
	case 304: return "Not Modified";
	case 400: return "Bad Request";
	case 401: return "Unauthorized";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 409: return "Conflict";
	case 410: return "Gone";
	case 411: return "Length Required";
	case 413: return "Content Too Large";
	case 414: return "URI Too Long";
	case 415: return "Unsupported Media Type";
	case 417: return "Expectation Failed";
	case 421: return "Misdirected Request";
	case 422: return "Unprocessable Content";
	case 429: return "Too Many Requests";
	case 431: return "Request Header Fields Too Large";
	case 500: return "Internal Server Error";
	case 501: return "Not Implemented";
	case 503: return "Service Unavailable";
	case 504: return "Gateway Timeout";
	case 505: return "HTTP Version Not Supported";
	case 507: return "Insufficient Storage";
	default:  return "Unknown";
	}
}

/* ── Date ── */

/* Of the worker: responses are written where nothing but the output is at hand. */
static _Thread_local char date[40];
static _Thread_local size_t date_len;
static _Thread_local uint64_t date_second;

void http_clock(uint64_t wall_ms)
{
	time_t second = (time_t)(wall_ms / 1000);
	struct tm utc;

	if ((uint64_t)second == date_second)
		return;
	date_second = (uint64_t)second;
	date_len = strftime(date, sizeof date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&second, &utc));
}

/* ── responses ── */

enum { HEAD_BYTES = 512 };         /* more than all that is in every head; without the type, and headers of the caller */

/* Into room that was made; returns the end. */
static inline char *add(char *to, const char *text, size_t len)
{
	memcpy(to, text, len);
	return to + len;
}
#define ADD(to, literal) add(to, literal, sizeof(literal) - 1)

static char *add_number(char *to, uint64_t n)
{
	char digits[20], *at = digits + sizeof digits;

	do {
		*--at = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	return add(to, at, (size_t)(digits + sizeof digits - at));
}

static char *add_status(char *to, int status)
{
	const char *text = http_status_text(status);

	to = ADD(to, "HTTP/1.1 ");
	to = add_number(to, (uint64_t)status);
	*to++ = ' ';
	to = add(to, text, strlen(text));
	return ADD(to, "\r\n");
}

static char *add_connection(char *to, uint8_t proto)
{
	if (proto & HTTP_CLOSE)
		return ADD(to, "Connection: close\r\n");
	return proto & HTTP_1_0 ? ADD(to, "Connection: keep-alive\r\n") : to;
}

/* Up to where the length of the body is said. */
static char *begin(char *to, uint8_t proto, int status, const char *content_type, size_t type_len)
{
	to = status == 200 ? ADD(to, "HTTP/1.1 200 OK\r\n") : add_status(to, status);
	to = add(to, date, date_len);
	to = add_connection(to, proto);
	if (!content_type)
		return to;
	to = ADD(to, "Content-Type: ");
	to = add(to, content_type, type_len);
	return ADD(to, "\r\n");
}

#define SAFE "X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n"
#define NO_STORE "Cache-Control: no-store\r\n"
#define NO_SOURCE "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"

static char *end(char *to, const char *headers, size_t headers_len)
{
	if (headers_len == 0)
		return ADD(to, SAFE NO_STORE NO_SOURCE "\r\n");
	to = ADD(to, SAFE);
	if (!strstr(headers, "Cache-Control:"))
		to = ADD(to, NO_STORE);
	if (!strstr(headers, "Content-Security-Policy:"))
		to = ADD(to, NO_SOURCE);
	to = add(to, headers, headers_len);
	return ADD(to, "\r\n");
}

void http_reply(struct out *o, int status, const char *content_type, const char *headers, const void *body, size_t len)
{
	size_t type_len = content_type ? strlen(content_type) : 0, headers_len = strlen(headers);
	char *to;

	if (!out_room(o, HEAD_BYTES + type_len + headers_len + len))
		return;
	to = begin(o->bytes + o->len, o->proto, status, content_type, type_len);
	if (status != 204 && status != 304) {
		to = ADD(to, "Content-Length: ");
		to = add_number(to, len);
		to = ADD(to, "\r\n");
	}
	to = end(to, headers, headers_len);
	if (len && !(o->proto & HTTP_HEAD))
		to = add(to, body, len);
	o->len = (size_t)(to - o->bytes);
}

void http_stream(struct out *o, const char *content_type, const char *headers)
{
	size_t type_len = strlen(content_type), headers_len = strlen(headers);
	char *to;

	if (!out_room(o, HEAD_BYTES + type_len + headers_len))
		return;
	to = begin(o->bytes + o->len, o->proto, 200, content_type, type_len);
	o->len = (size_t)(end(to, headers, headers_len) - o->bytes);
}

/* ── problems ── */

/* Of a text that may hold anything: the inside of a JSON string. What is not ASCII is shown as '?'. */
static size_t escape(char *to, size_t room, const char *text)
{
	size_t at = 0;

	for (; *text && at + 2 < room; text++) {
		if (*text == '"' || *text == '\\')
			to[at++] = '\\';
		to[at++] = *text >= ' ' && *text <= '~' ? *text : '?';
	}
	to[at] = 0;
	return at;
}

void http_problem(struct out *o, int status, const char *code, const char *headers, const char *format, ...)
{
	char detail[HTTP_DETAIL_MAX + 1], shown[2 * HTTP_DETAIL_MAX + 2], body[sizeof shown + 256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(detail, sizeof detail, format, args);
	va_end(args);
	(void)escape(shown, sizeof shown, detail);
	int len = snprintf(body, sizeof body,
			   "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\",\"code\":\"%s\"}\n",
			   http_status_text(status), status, shown, code);

	http_reply(o, status, "application/problem+json", headers, body, (size_t)len);
}
